//! The costs of a layer as tables: sizes as rows.

use super::Subject;
use crate::html::grid::{grid, heads, row};
use crate::html::parts::{sound, with_minus};
use crate::html::tables::{over_interval, two_lines};
use crate::utilisation::{idle as idle_of, is_bound, short_share};
use maud::{Markup, html};
use netdyno_measure::show::{Bytes, NONE, number_and_interval};
use netdyno_measure::stats::Interval;
use netdyno_measure::utilisation::record::{Cost, CounterFigure, SideCosts};

/// Says what others do while nothing is sent.
pub fn idle(subject: &Subject<'_>) -> String {
    let text = idle_of(subject.found, sound);
    with_minus(&format!("Shares are of one processor. While nothing is sent, {text}."))
}

/// Returns the table of a side: all work with its parts, and the processor time of a message.
pub fn side(subject: &Subject<'_>, kind: usize, side: usize) -> Markup {
    let counters = counter_names(subject, kind);
    let heads = html! {
        (heads(["size", "utilisation", "user", "system", "other threads", "a message"]))
        @for name in &counters { th scope="col" { (name.replace('_', " ")) ", a message" } }
    };
    let rows = html! {
        @for size in &subject.found.sizes {
            (row(Bytes(size.size_bytes).to_string(), cells(size.kinds()[kind].1.sides()[side].1, &counters)))
        }
    };
    grid(true, &heads, &rows)
}

fn cells(side: &SideCosts, counters: &[String]) -> Vec<Markup> {
    let shares = [&side.busy, &side.user, &side.system, &side.helpers].map(share);
    let counted = |name: &String| {
        let counter = side.counters.iter().find(|counter| counter.name == *name);
        let figure = counter.and_then(|CounterFigure { per_message, .. }| {
            Some(number_and_interval(per_message.value?, sound(per_message.ci)))
        });
        two_lines(&figure.unwrap_or(NONE.into()))
    };
    let each = [over_interval(&side.busy.per_message)];
    shares.into_iter().chain(each).chain(counters.iter().map(counted)).collect()
}

/// Returns the names of the counters that a side has at any size.
fn counter_names(subject: &Subject<'_>, kind: usize) -> Vec<String> {
    let mut names = Vec::new();
    for size in &subject.found.sizes {
        let sides = size.kinds()[kind].1.sides();
        for counter in sides.into_iter().flat_map(|(_, side)| &side.counters) {
            if !names.contains(&counter.name) {
                names.push(counter.name.clone());
            }
        }
    }
    names
}

/// Returns the table of the machine, or of both machines.
pub fn machines(subject: &Subject<'_>, kind: usize) -> Markup {
    let has_two = subject.found.sizes.iter().any(|size| size.kinds()[kind].1.replier_machine.is_some());
    let prefixes = if has_two { &["requester's ", "replier's "][..] } else { &[""] };
    let costs = ["all work", "soft interrupts", "kernel elsewhere", "unexplained"];
    let heads = html! {
        (heads(["size"]))
        @for prefix in prefixes { @for cost in costs { th scope="col" { (prefix) (cost) } } }
    };
    let rows = html! {
        @for size in &subject.found.sizes {
            @let machines = size.kinds()[kind].1.machines();
            @let cells = machines.flat_map(|(_, machine)| machine.all().map(|(_, cost)| share(cost)));
            (row(Bytes(size.size_bytes).to_string(), cells))
        }
    };
    grid(true, &heads, &rows)
}

/// Returns a share in steps of a millionth, because less of it comes from rounding.
fn rounded(share: f64) -> f64 {
    let millionths = (share * 1e6).round();
    if millionths == 0.0 { 0.0 } else { millionths / 1e6 }
}

/// Returns a share over its interval.
fn share(cost: &Cost) -> Markup {
    let value = cost.share.value.filter(|value| value.is_finite());
    match value.filter(|_| !is_bound(cost)) {
        Some(value) => {
            let ci = sound(cost.share.ci).map(|ci| Interval { lo: rounded(ci.lo), hi: rounded(ci.hi) });
            two_lines(&number_and_interval(rounded(value), ci))
        }
        None => html! { (short_share(cost)) },
    }
}
