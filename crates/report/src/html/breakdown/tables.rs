//! The costs of steps as a table.

use super::Subject;
use crate::breakdown::{UNEXPLAINED, has_rest, of_table, share};
use crate::html::grid::{grid, heads};
use crate::html::tables::{marks, over_interval};
use crate::notes::Notes;
use maud::{Markup, html};
use netdyno_measure::breakdown::anatomy::Table;
use netdyno_measure::breakdown::record::OperationCosts;
use netdyno_measure::record::Parameter;

/// Returns the table: a row for each operation, and below it a row for each of its steps.
pub fn costs(subject: &Subject<'_>, table: Table, notes: &Notes<'_>) -> Markup {
    let heads = html! { (heads(["operation", "time", "share"])) };
    let rows = html! {
        @for operation in of_table(subject.found, table) {
            tr {
                th scope="row" { b { (operation.name) } (marks(&subject.about(notes, &operation.name))) }
                td { (over_interval(&operation.whole)) }
                td {}
            }
            @for step in &operation.steps { (part(operation, &step.name, &step.cost)) }
            @if has_rest(operation) { (part(operation, UNEXPLAINED, &operation.unexplained)) }
        }
    };
    grid(false, &heads, &rows)
}

fn part(operation: &OperationCosts, name: &str, cost: &Parameter) -> Markup {
    html! {
        tr {
            th.step scope="row" { (name) }
            td { (over_interval(cost)) }
            td { (share(cost, operation)) }
        }
    }
}
