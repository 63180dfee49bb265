//! The figures of `breakdown`, and its findings for the terminal.

use crate::cell::{self, cell};
use crate::figure::Figure;
use crate::lines::Lines;
use netdyno_measure::breakdown::anatomy::{Operation, Table, Term};
use netdyno_measure::breakdown::data::BreakdownLaunch;
use netdyno_measure::breakdown::record::{Breakdown, OperationCosts};
use netdyno_measure::record::{Parameter, Status};
use netdyno_measure::show::Percent;

/// Width of the column of names.
const NAME: usize = 26;
/// The name of the part that no step explains.
pub const UNEXPLAINED: &str = "unexplained";
/// The tables, in their order.
pub const TABLES: [Table; 3] = [Table::Crossing, Table::Exchange, Table::Operation];

/// Returns the operations of a table.
pub fn of_table(found: &Breakdown, table: Table) -> impl Iterator<Item = &OperationCosts> {
    found.operations.iter().filter(move |operation| operation.table == table)
}

/// Reports whether a part of an operation may be unexplained. The steps of a system call are differences that sum to
/// it.
pub fn has_rest(operation: &OperationCosts) -> bool {
    operation.table != Table::Crossing && !operation.steps.is_empty()
}

/// Writes the tables: a block for each operation, with a row for each step.
pub fn write(lines: &mut Lines, found: &Breakdown) {
    for table in TABLES {
        if of_table(found, table).next().is_none() {
            continue;
        }
        lines.blank();
        lines.row(&format!("  {}", table.title()), "  ", "    ");
        of_table(found, table).for_each(|operation| write_operation(lines, operation));
    }
}

fn write_operation(lines: &mut Lines, operation: &OperationCosts) {
    row(lines, &operation.name, &operation.whole, "");
    for step in &operation.steps {
        row(lines, &format!("  {}", step.name), &step.cost, &share(&step.cost, operation));
    }
    if has_rest(operation) {
        let rest = &operation.unexplained;
        row(lines, &format!("  {UNEXPLAINED}"), rest, &share(rest, operation));
    }
}

/// Returns a step as a share of its operation, in words.
pub fn share(cost: &Parameter, operation: &OperationCosts) -> String {
    let share = cost.value_ns.zip(operation.whole.value_ns).map(|(step, whole)| step / whole);
    let at_most = if cost.status == Status::UpperBound { "≤ " } else { "" };
    share.map_or(String::new(), |share| format!("{at_most}{}", Percent(share)))
}

fn row(lines: &mut Lines, name: &str, cost: &Parameter, share: &str) {
    let line = format!("    {name:<NAME$}{:>width$}{share:>width$}", cell(cost), width = cell::WIDTH);
    lines.row(line.trim_end(), "  ", "    ");
}

/// Returns each operation as a whole, then its steps and what they leave unexplained.
pub fn figures(found: &Breakdown, size_bytes: usize) -> Vec<Figure> {
    let of_operation = |operation: &OperationCosts| {
        let name = &operation.name;
        let steps = operation.steps.iter().map(|step| (step.name.as_str(), &step.cost));
        let rest = has_rest(operation).then_some((UNEXPLAINED, &operation.unexplained));
        let parts = steps.chain(rest);
        let parts = parts.map(|(step, cost)| Figure::time(format!("{name}.{step}"), size_bytes, cost));
        let whole = Figure::time(name.clone(), size_bytes, &operation.whole).compared_as(name.clone());
        std::iter::once(whole).chain(parts).collect::<Vec<_>>()
    };
    found.operations.iter().flat_map(of_operation).collect()
}

/// Returns the operations as wholes of each launch by itself.
pub fn of_launches(found: &Breakdown, size_bytes: usize) -> Vec<Vec<Figure>> {
    let of_operation = |launch: &BreakdownLaunch, operation: &Operation| {
        let ns = launch.sum(&[Term { probe: operation.whole, times: 1.0 }]);
        let name = operation.name.clone();
        Figure::median(name.clone(), "ns", size_bytes, (Some(ns), None), 1).compared_as(name)
    };
    let of_launch = |launch: &BreakdownLaunch| {
        launch.shape.anatomy.operations.iter().map(|operation| of_operation(launch, operation)).collect()
    };
    found.launches.iter().map(of_launch).collect()
}
