//! The times of an operation as a table.

use super::Subject;
use crate::html::grid::{grid, heads, row};
use crate::html::tables::{marks, over_interval, per_byte};
use crate::notes::Notes;
use crate::onesided::bandwidth;
use maud::{Markup, html};
use netdyno_measure::onesided::record::{OperationFigures, TIMES, TransferTimes};
use netdyno_measure::show::Bytes;

/// Returns the letters of the doubts about a layer that concern no single time.
pub fn letters(subject: &Subject<'_>, notes: &Notes<'_>) -> Markup {
    marks(&subject.elsewhere(notes, &TIMES))
}

/// Returns the table of sizes as rows and times as columns, with the letters of doubts in the heading, and
/// the gap per byte.
pub fn sizes(subject: &Subject<'_>, operation: &OperationFigures, notes: &Notes<'_>) -> Markup {
    let about = |name: &str| marks(&subject.about_of(notes, operation.operation.name(), name));
    let heads = html! {
        (heads(["size"]))
        @for name in TIMES { th scope="col" { (name) (about(name)) } }
        th scope="col" { "bandwidth" }
    };
    let rows = html! {
        @for size in &operation.sizes { (row(Bytes(size.size_bytes).to_string(), cells(size))) }
    };
    html! {
        (grid(true, &heads, &rows))
        @if operation.G.value_ns_per_byte.is_some() { p { "G " (per_byte(&operation.G)) } }
    }
}

fn cells(size: &TransferTimes) -> impl Iterator<Item = Markup> {
    let bandwidth = bandwidth(size);
    size.times().map(|(_, time)| over_interval(time)).into_iter().chain([html! { (bandwidth) }])
}
