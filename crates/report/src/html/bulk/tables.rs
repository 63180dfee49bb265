//! The figures of one layer by size, and its lines.

use super::subject::Subject;
use crate::bulk::{range, shown_sizes};
use crate::html::parts::{figure, pretty, shown, sound, time, with_minus};
use crate::html::tables::{marks, per_byte};
use crate::notes::Notes;
use maud::{Markup, html};
use netdyno_measure::bulk::record::Linear;
use netdyno_measure::record::Parameter;
use netdyno_measure::show::{bytes, number, percent, rate, time_interval};

/// The times with a column.
const COLUMNS: [&str; 5] = ["T", "o_s", "o_r", "g", "L"];

/// Returns the table of sizes as rows and figures as columns, with the letters of doubts in the heading.
pub fn sizes(subject: &Subject<'_>, notes: &Notes<'_>) -> Markup {
    let about = |name| marks(&notes.about(subject.record_at, subject.layer_at, Some(name)));
    html! {
        div.scroll {
            table.wide {
                thead {
                    tr {
                        th scope="col" { i { "n" } }
                        @for name in COLUMNS { th scope="col" { (pretty(name)) "(" i { "n" } ")" (about(name)) } }
                        th scope="col" { "stream" } th scope="col" { "one at a time" }
                    }
                }
                tbody {
                    @for size in shown_sizes(subject.bulk) {
                        tr {
                            th scope="row" { (bytes(size.size_bytes as f64)) }
                            @for (_, p) in size.times() { td { (cell(p)) } }
                            td { (rate(size.streaming.value_bytes_per_s)) }
                            td { (rate(size.single.value_bytes_per_s)) }
                        }
                    }
                }
            }
        }
    }
}

fn cell(p: &Parameter) -> Markup {
    html! {
        (figure(p))
        @if let (Some(ns), Some(ci)) = (shown(p), sound(p.ci_ns)) {
            span.ci { (with_minus(&time_interval(ns, ci, 24))) }
        }
    }
}

/// Returns the table of segments as rows.
pub fn segments(subject: &Subject<'_>) -> Markup {
    html! {
        div.scroll {
            table.wide {
                thead {
                    tr {
                        th scope="col" { "sizes" } th scope="col" { i { "G" } }
                        @for name in ["T", "o_s", "o_r"] { th scope="col" { (pretty(name)) "(" i { "n" } ")" } }
                        th scope="col" { "stream" } th scope="col" { "farthest off" }
                    }
                }
                tbody {
                    @for segment in &subject.bulk.segments {
                        tr {
                            th scope="row" { (range(segment)) }
                            td { (per_byte(&segment.G)) }
                            td { (linear(&segment.T)) } td { (linear(&segment.o_s)) } td { (linear(&segment.o_r)) }
                            td { (linear(&segment.steady)) }
                            td { (percent((segment.T.largest_residual * 1e3).round() / 1e3)) }
                        }
                    }
                }
            }
        }
        p.none { "Lines are base + slope · n, each size counting by its relative distance; farthest off: the largest distance of a T(n) from its line." }
    }
}

fn linear(line: &Linear) -> Markup {
    html! {
        (time(line.base_ns))
        span.ci { "+ " (with_minus(&number(line.slope_ns_per_byte))) " ns/B · n" }
    }
}
