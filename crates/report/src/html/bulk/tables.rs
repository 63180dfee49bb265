//! The figures of one layer by size, and its lines.

use super::Subject;
use crate::bulk::{range, shown_sizes};
use crate::html::grid::{grid, heads, row};
use crate::html::parts::{figure, pretty, time, with_minus};
use crate::html::tables::{interval, marks, per_byte};
use crate::notes::Notes;
use maud::{Markup, html};
use netdyno_measure::bulk::record::{Linear, Segment, SizeFigures, TIMES};
use netdyno_measure::record::Parameter;
use netdyno_measure::show::{bytes, number, percent, rate};

/// Returns the table of sizes as rows and figures as columns, with the letters of doubts in the heading.
pub fn sizes(subject: &Subject<'_>, notes: &Notes<'_>) -> Markup {
    let about = |name| marks(&subject.about(notes, name));
    let heads = html! {
        (heads([html! { i { "n" } }]))
        @for name in TIMES { th scope="col" { (of_size(name)) (about(name)) } }
        (heads(["stream", "one at a time"]))
    };
    let cell = |(_, p): (&str, &Parameter)| html! { (figure(p)) (interval(p)) };
    let rates =
        |size: &SizeFigures| [&size.streaming, &size.single].map(|of| html! { (rate(of.value_bytes_per_s)) });
    let rows = html! {
        @for size in shown_sizes(subject.found) {
            (row(bytes(size.size_bytes as f64), size.times().map(cell).into_iter().chain(rates(size))))
        }
    };
    grid(true, &heads, &rows)
}

/// Returns a name as a function of the size.
fn of_size(name: &str) -> Markup {
    html! { (pretty(name)) "(" i { "n" } ")" }
}

/// Returns the table of segments as rows.
pub fn segments(subject: &Subject<'_>) -> Markup {
    let heads = html! {
        (heads(["sizes"])) th scope="col" { i { "G" } }
        (heads(["T", "o_s", "o_r"].map(of_size))) (heads(["stream", "farthest off"]))
    };
    let cells = |of: &Segment| {
        let lines = [&of.T, &of.o_s, &of.o_r, &of.steady].map(linear);
        let farthest = percent((of.T.largest_residual * 1e3).round() / 1e3);
        [per_byte(&of.G)].into_iter().chain(lines).chain([html! { (farthest) }])
    };
    let rows = html! { @for segment in &subject.found.segments { (row(range(segment), cells(segment))) } };
    html! {
        (grid(true, &heads, &rows))
        p.none { "Lines are base + slope · n, each size counting by its relative distance; farthest off: the largest distance of a T(n) from its line." }
    }
}

fn linear(line: &Linear) -> Markup {
    html! {
        (time(line.base_ns))
        span.ci { "+ " (with_minus(&number(line.slope_ns_per_byte))) " ns/B · n" }
    }
}
