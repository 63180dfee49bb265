//! The figures of `breakdown`, and its findings for the terminal.

use crate::cell::{self, cell};
use crate::figure::Figure;
use crate::lines::Lines;
use netdyno_measure::breakdown::anatomy::Table;
use netdyno_measure::breakdown::record::{Breakdown, OperationCosts};
use netdyno_measure::record::Parameter;
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
    if !operation.steps.is_empty() {
        let rest = &operation.unexplained;
        row(lines, &format!("  {UNEXPLAINED}"), rest, &share(rest, operation));
    }
}

/// Returns a step as a share of its operation.
fn share(cost: &Parameter, operation: &OperationCosts) -> String {
    let share = cost.value_ns.zip(operation.whole.value_ns).map(|(step, whole)| step / whole);
    share.map_or(String::new(), |share| Percent(share).to_string())
}

fn row(lines: &mut Lines, name: &str, cost: &Parameter, share: &str) {
    let line = format!("    {name:<NAME$}{:>width$}{share:>width$}", cell(cost), width = cell::WIDTH);
    lines.row(line.trim_end(), "  ", "    ");
}

/// Returns each operation as a whole, then its steps and what they leave unexplained.
pub fn figures(found: &Breakdown, size_bytes: usize) -> Vec<Figure> {
    let of_operation = |operation: &OperationCosts| {
        let name = name(operation.table, &operation.name);
        let steps = operation.steps.iter().map(|step| (step.name.as_str(), &step.cost));
        let rest = (!operation.steps.is_empty()).then_some((UNEXPLAINED, &operation.unexplained));
        let parts = steps.chain(rest);
        let parts = parts.map(|(step, cost)| Figure::time(format!("{name}.{step}"), size_bytes, cost));
        let whole = Figure::time(name.clone(), size_bytes, &operation.whole);
        std::iter::once(whole).chain(parts).collect::<Vec<_>>()
    };
    found.operations.iter().flat_map(of_operation).collect()
}

/// Returns the name of an operation in CSV and in comparisons. Operations of two tables may be called alike.
fn name(table: Table, operation: &str) -> String {
    match table {
        Table::Exchange => format!("plain {operation}"),
        Table::Crossing | Table::Operation => operation.into(),
    }
}
