//! Findings and phases as tables.

use super::Subject;
use crate::html::parts::with_minus;
use crate::html::tables::{marks, two_lines};
use crate::notes::Notes;
use crate::overlap::{in_percent, in_rate, in_time, percent_and_interval};
use maud::{Markup, html};
use netdyno_measure::overlap::record::{Progress, Quantity};
use netdyno_measure::show::{NONE, Size, time_and_interval};

/// Returns the letters of the doubts about a layer.
pub fn letters(subject: &Subject<'_>, notes: &Notes<'_>) -> Markup {
    marks(&notes.elsewhere(subject.record_at, subject.layer_at, &[]))
}

/// Returns the table of the findings, a row for each layer and size.
pub fn findings(subjects: &[Subject<'_>]) -> Markup {
    html! {
        div.scroll {
            table.wide {
                thead {
                    tr {
                        th scope="col" { "layer, size" } th.text scope="col" { "progress without a call" } th scope="col" { "waiting hidden" }
                        th scope="col" { "free work" } th scope="col" { "cycle" }
                        th scope="col" { "in calls" } th scope="col" { "stolen" } th scope="col" { "other threads" }
                    }
                }
                tbody {
                    @for subject in subjects {
                        @for size in &subject.overlap.sizes {
                            @let finding = &size.finding;
                            tr {
                                th scope="row" { (subject.label) ", " (Size(size.size_bytes)) }
                                td.text { (progress(finding.progress)) }
                                td { (two_lines(&percent_and_interval(&finding.hidden_share))) }
                                td { (size.free.map_or(html! { (NONE) }, |free| two_lines(&with_interval(&free.work_ns)))) }
                                td { (in_time(&finding.cycle_ns)) }
                                td { (two_lines(&with_interval(&finding.calls_ns))) }
                                td { (two_lines(&with_interval(&finding.stolen_ns))) }
                                td { (two_lines(&with_interval(&finding.others_ns))) }
                            }
                        }
                    }
                }
            }
        }
        p.none { "Waiting hidden: the share of it that goes behind work. Cycle: post and wait, without work. In calls, stolen, other threads: processor time in a cycle of post, work, wait whose work is at least twice as long as a cycle without." }
    }
}

fn progress(progress: Progress) -> &'static str {
    match progress {
        Progress::ByItself => "yes",
        Progress::Partly => "partly",
        Progress::OnlyInCalls => "inside calls only",
        Progress::CannotTell => "cannot tell",
    }
}

fn with_interval(quantity: &Quantity) -> String {
    quantity.value.map_or(NONE.into(), |ns| time_and_interval(ns, quantity.ci))
}

/// Returns the table of every cycle of every layer.
pub fn phases(subjects: &[Subject<'_>], size_bytes: usize) -> Markup {
    html! {
        details {
            summary { "Post, work and wait one by one" }
            div.scroll {
                table.wide {
                    thead {
                        tr {
                            th scope="col" { "layer" }
                            @for head in ["work alone", "post", "work", "wait", "stolen", "available", "bandwidth", "other threads"] { th scope="col" { (head) } }
                        }
                    }
                    tbody {
                        @for subject in subjects {
                            @for p in subject.at(size_bytes).map_or(&[][..], |size| &size.pww) {
                                tr {
                                    th scope="row" { (subject.label) }
                                    @for quantity in [&p.alone_ns, &p.post_ns, &p.work_ns, &p.wait_ns, &p.stolen_ns] { td { (with_minus(&in_time(quantity))) } }
                                    td { (in_percent(&p.availability)) } td { (in_rate(&p.bandwidth_bytes_per_s)) } td { (with_minus(&in_time(&p.others_ns))) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
