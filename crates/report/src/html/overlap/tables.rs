//! Findings and phases as tables.

use super::{Subject, at};
use crate::html::grid::{grid, heads, row};
use crate::html::parts::with_minus;
use crate::html::tables::two_lines;
use crate::overlap::{in_percent, in_rate, in_time, percent_and_interval};
use maud::{Markup, html};
use netdyno_measure::overlap::record::{Progress, Quantity, SizeOverlap, WorkPoint};
use netdyno_measure::show::{NONE, Size, time_and_interval};

/// Returns the table of the findings, a row for each layer and size; nothing if only messages alone were measured.
pub fn findings(subjects: &[Subject<'_>]) -> Markup {
    if subjects.iter().all(|subject| subject.found.sizes.is_empty()) {
        return html! {};
    }
    let heads = html! {
        (heads(["layer, size"])) th.text scope="col" { "progress without a call" }
        (heads(["waiting hidden", "free work", "cycle", "in calls", "stolen", "other threads"]))
    };
    let cells = |size: &SizeOverlap| {
        let finding = &size.finding;
        html! {
            td.text { (progress(finding.progress)) }
            td { (two_lines(&percent_and_interval(&finding.hidden_share))) }
            td { (size.free.map_or(html! { (NONE) }, |free| two_lines(&with_interval(&free.work_ns)))) }
            td { (in_time(&finding.cycle_ns)) }
            @for of in [&finding.calls_ns, &finding.stolen_ns, &finding.others_ns] { td { (two_lines(&with_interval(of))) } }
        }
    };
    let rows = html! {
        @for subject in subjects {
            @for size in &subject.found.sizes {
                tr { th scope="row" { (subject.label) ", " (Size(size.size_bytes)) } (cells(size)) }
            }
        }
    };
    html! {
        (grid(true, &heads, &rows))
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
    let names =
        ["layer", "work alone", "post", "work", "wait", "stolen", "available", "bandwidth", "other threads"];
    let cells = |p: &WorkPoint| {
        let time = |of: &Quantity| with_minus(&in_time(of));
        let times = [&p.alone_ns, &p.post_ns, &p.work_ns, &p.wait_ns, &p.stolen_ns].map(time);
        let others = [in_percent(&p.availability), in_rate(&p.bandwidth_bytes_per_s), time(&p.others_ns)];
        times.into_iter().chain(others)
    };
    let rows = html! {
        @for subject in subjects {
            @for p in at(subject, size_bytes).map_or(&[][..], |size| &size.pww) { (row(&subject.label, cells(p))) }
        }
    };
    html! { details { summary { "Post, work and wait one by one" } (grid(true, &heads(names), &rows)) } }
}
