//! A bar for each operation, stacked from its steps. A line marks where the operation ends as a whole.

use super::Subject;
use crate::breakdown::{UNEXPLAINED, has_rest, of_table};
use crate::html::chart::{WIDE, chart, uprights};
use crate::html::parts::{
    COLOURS, colour, cut, line, parameter_tip, rect_with_tip, round_time, shown, text, time,
};
use crate::html::scale::Scale;
use maud::{Markup, html};
use netdyno_measure::breakdown::anatomy::Table;
use netdyno_measure::breakdown::record::OperationCosts;
use netdyno_measure::record::{Parameter, Status};

const LEFT: f64 = 190.0;
/// Room for the time of the longest operation behind its bar.
const RIGHT: f64 = WIDE - 90.0;
const TOP: f64 = 8.0;
const ROW: f64 = 34.0;
const BAR: f64 = 20.0;
/// Room below the bars for the axis, and for the key of the steps.
const AXIS: f64 = 30.0;
const KEY: f64 = 24.0;
/// Width of an entry of the key.
const ENTRY: f64 = 160.0;

/// Returns the figure of a table with its caption.
pub fn bars(subject: &Subject<'_>, table: Table) -> Markup {
    let operations: Vec<&OperationCosts> = of_table(subject.found, table).collect();
    let names = names(&operations);
    let longest = operations.iter().map(|one| reach(one)).fold(0.0, f64::max);
    let scale = Scale::linear([0.0, longest], LEFT, RIGHT);
    let bottom = TOP + ROW * operations.len() as f64;
    let per_line = ((WIDE / ENTRY) as usize).max(1);
    let height = bottom + AXIS + KEY * names.len().div_ceil(per_line) as f64;
    let drawn = html! {
        (uprights((TOP, bottom), bottom + 18.0, &scale.named(5, round_time)))
        @for (at, operation) in operations.iter().enumerate() {
            (bar(subject, operation, &names, TOP + ROW * at as f64, &scale))
        }
        @for (at, name) in names.iter().enumerate() {
            (key(name, class(&names, name), ENTRY * (at % per_line) as f64, bottom + AXIS + KEY * (at / per_line) as f64))
        }
    };
    html! {
        figure {
            (chart(WIDE, height, &format!("{} of {}", table.title(), subject.label), &drawn))
            figcaption {
                "Each bar is stacked from the steps of an operation whose cost is measured. The line is its end as a whole. "
                "Hatched: what no step explains. A bar beyond its line has steps that overlap in the operation."
            }
        }
    }
}

/// Returns the names of all steps, each once, in their order, and of the unexplained part at the end.
fn names(operations: &[&OperationCosts]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for step in operations.iter().flat_map(|operation| &operation.steps) {
        if !names.contains(&step.name) {
            names.push(step.name.clone());
        }
    }
    if operations.iter().any(|operation| has_rest(operation)) {
        names.push(UNEXPLAINED.into());
    }
    names
}

/// Returns the class of a step. The unexplained part is hatched.
fn class(names: &[String], name: &str) -> String {
    let at = names.iter().position(|other| other == name).unwrap_or(0);
    // Colours repeat, paler.
    let again = if at >= COLOURS { " again" } else { "" };
    if name == UNEXPLAINED { "bound".into() } else { format!("bar {}{again}", colour(at)) }
}

/// Returns how far the bar or the line of an operation reaches, in nanoseconds.
fn reach(operation: &OperationCosts) -> f64 {
    let steps: f64 = operation.steps.iter().filter_map(|step| length(&step.cost)).sum();
    steps.max(shown(&operation.whole).unwrap_or(0.0))
}

/// Returns the length of a part of a bar. A bound has none: the unexplained part already has what it may be.
fn length(cost: &Parameter) -> Option<f64> {
    shown(cost).filter(|ns| *ns > 0.0 && cost.status == Status::Measured)
}

fn bar(
    subject: &Subject<'_>,
    operation: &OperationCosts,
    names: &[String],
    top: f64,
    scale: &Scale,
) -> Markup {
    let (from, to) = (top + (ROW - BAR) / 2.0, top + (ROW + BAR) / 2.0);
    let rest = has_rest(operation).then_some((UNEXPLAINED, &operation.unexplained));
    let steps = operation.steps.iter().map(|step| (&step.name[..], &step.cost)).chain(rest);
    let mut parts = Vec::new();
    let mut sum = 0.0;
    for (name, cost) in steps {
        let Some(ns) = length(cost) else { continue };
        if let (Some(begin), Some(end)) = (scale.at(sum), scale.at(sum + ns)) {
            parts.push((name, cost, begin, end));
        }
        sum += ns;
    }
    let end = shown(&operation.whole).and_then(|ns| scale.at(ns));
    let behind = scale.at(reach(operation)).unwrap_or(LEFT);
    html! {
        (text("", 0.0, from + 14.0, &cut(&operation.name, 26)))
        @for (name, cost, begin, end) in parts {
            @let tip = parameter_tip(&operation.name, name, cost, subject.confidence());
            (rect_with_tip(&class(names, name), (begin, from), (end, to), &tip))
        }
        @if let Some(end) = end {
            (line("axis", (end, from - 4.0), (end, to + 4.0)))
            (text("", behind + 6.0, from + 14.0, &time(shown(&operation.whole).unwrap_or(0.0))))
        }
    }
}

fn key(name: &str, class: String, x: f64, y: f64) -> Markup {
    html! {
        (rect_with_tip(&class, (x, y), (x + 12.0, y + 12.0), name))
        (text("", x + 18.0, y + 10.5, name))
    }
}
