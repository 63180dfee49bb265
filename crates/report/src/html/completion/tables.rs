//! The times of one way to wait as a table, the ways of a layer against each other, and its times to spin.

use super::Subject;
use crate::completion::{HEADINGS, bandwidth, ideal};
use crate::html::grid::{grid, heads, row};
use crate::html::tables::{marks, over_interval, two_lines};
use crate::notes::Notes;
use crate::ways::fastest;
use maud::{Markup, html};
use netdyno_measure::completion::record::{COMPLETION_TIMES, CompletionTimes, SpinTimes};
use netdyno_measure::completion::spin_time::NEAR;
use netdyno_measure::completion::ways::Ways;
use netdyno_measure::overlap::record::Quantity;
use netdyno_measure::show::{Bytes, NONE, number, number_and_interval, percent};

/// The name of the share in doubts.
const SHARE: &str = "share_of_peak";

/// Returns the letters of the doubts about a result that concern no column.
pub fn letters(subject: &Subject<'_>, notes: &Notes<'_>) -> Markup {
    marks(&subject.elsewhere(notes, &[&COMPLETION_TIMES[..], &[SHARE]].concat()))
}

/// Returns the table of sizes as rows, with the letters of doubts in the heading.
pub fn sizes(subject: &Subject<'_>, notes: &Notes<'_>) -> Markup {
    let about = |name: &str| marks(&subject.about(notes, name));
    let heads = html! {
        (heads(["size"]))
        @for (name, heading) in COMPLETION_TIMES.iter().zip(HEADINGS) { th scope="col" { (heading) (about(name)) } }
        (heads(["bandwidth"]))
        th scope="col" { "of the peak" (about(SHARE)) }
        (heads(["ideal"]))
    };
    let rows = html! {
        @for size in &subject.found.sizes { (row(Bytes(size.size_bytes).to_string(), cells(size))) }
    };
    grid(true, &heads, &rows)
}

fn cells(size: &CompletionTimes) -> impl Iterator<Item = Markup> {
    let others = [html! { (bandwidth(size)) }, of_quantity(&size.share_of_peak), html! { (ideal(size)) }];
    size.times().map(|(_, time)| over_interval(time)).into_iter().chain(others)
}

fn of_quantity(of: &Quantity) -> Markup {
    match of.value {
        Some(value) => two_lines(&number_and_interval(value, of.ci)),
        None => html! { span.none { (NONE) } },
    }
}

/// Returns the ratios of the ways to wait by size, and the fastest way.
pub fn ways(ways: &Ways<'_>) -> Markup {
    let heads = html! {
        (heads(["size"]))
        @for way in &ways.others { th scope="col" { (way.name) } }
        (heads(["fastest"]))
    };
    let cells = |size_bytes: usize| {
        let ratios = ways.others.iter().map(move |way| of_quantity(&ways.ratio(way, size_bytes)));
        ratios.chain([html! { (fastest(ways, size_bytes)) }]).collect::<Vec<_>>()
    };
    let rows = html! { @for bytes in ways.sizes() { (row(Bytes(bytes).to_string(), cells(bytes))) } };
    html! {
        p.facts { "Half round trip over that of " (ways.base.name) ", paired by launch." }
        (grid(ways.others.len() > 2, &heads, &rows))
    }
}

/// Returns how far each time to spin before blocking is near polling.
pub fn spin_times(times: &SpinTimes) -> Markup {
    let near = format!("within {} of {} up to", percent(NEAR - 1.0), times.polling);
    let heads = heads(["way", &near, "ratio there at most", "largest ratio above"]);
    let or_none = |ratio: Option<f64>| ratio.map_or(NONE.into(), number);
    let rows = html! {
        @for spin in &times.tried {
            (row(&spin.wait, [
                spin.near_to_bytes.map_or(NONE.into(), |to| Bytes(to).to_string()),
                or_none(spin.near_ratio_at_most),
                or_none(spin.ratio_above),
            ]))
        }
    };
    grid(false, &heads, &rows)
}
