//! The figures of `validate`, and the tables of the dials for the terminal.

use crate::figure::Figure;
use crate::lines::{COLUMNS_FROM, Lines};
use netdyno_measure::show::{NONE, Percent, Unit};
use netdyno_measure::validation::data::NAMES;
use netdyno_measure::validation::record::{CrossTalk, Figure as Effect, Program, Row, Table, Validation};

/// Widths of the columns, which fill 80 characters.
const TIME: usize = 9;
const CELL: usize = 10;
/// Marks a figure beyond its tolerance.
const MARK: &str = "!";

/// Writes the tables, as the paper's 1 to 6, and the cross-talk.
pub fn write(lines: &mut Lines, found: &Validation) {
    for table in &found.tables {
        lines.blank();
        of_dial(lines, table);
    }
    lines.blank();
    lines.wrapped(
        "What a dial does, for each unit that it is turned by (in brackets: demanded by the model)",
        "  ",
        "    ",
    );
    let head: String = NAMES.iter().map(|name| format!("{name:>CELL$}")).collect();
    row(lines, &format!("{:<15}{head}", "dial"));
    for of_dial in found.cross_talk.chunk_by(|a, b| a.dial == b.dial) {
        let cells: String = of_dial.iter().map(|cell| format!("{:>CELL$}", slope(cell))).collect();
        row(lines, &format!("{:<15}{cells}", of_dial.first().map_or("", |cell| &cell.dial)));
    }
    of_programs(lines, &found.programs);
}

/// Writes the growth of plain MPI programs.
fn of_programs(lines: &mut Lines, programs: &[Program]) {
    if programs.is_empty() {
        return;
    }
    let unit = unit_of_programs(programs);
    lines.blank();
    let title = format!("Plain MPI programs, which know nothing of the dials; times in {}", unit.name);
    lines.wrapped(&title, "  ", "    ");
    let head = ["link", "wanted", "observed"].map(|name| in_column(name, TIME)).concat();
    let head = head + &in_column("error", CELL);
    row(lines, &format!("{:<14}{:<9}{:<10}{:>7}{head}", "dial", "", "operation", "bytes"));
    for program in programs {
        let times = [program.link_ns, Some(program.wanted_ns), program.observed_ns];
        let cells = times.map(|ns| in_column(&in_unit(ns, unit), TIME)).concat();
        let error = in_column(&off(program), CELL);
        row(
            lines,
            &format!(
                "{:<14}{:<9}{:<10}{:>7}{cells}{error}",
                program.dial, program.setting, program.pattern, program.size_bytes
            ),
        );
    }
}

/// Returns one unit for all times of programs.
pub fn unit_of_programs(programs: &[Program]) -> Unit {
    let times = |program: &Program| [program.link_ns, Some(program.wanted_ns), program.observed_ns];
    Unit::common(programs.iter().flat_map(times).flatten())
}

/// Returns the error of a program's operation, with a mark if it is beyond its tolerance.
pub fn off(program: &Program) -> String {
    let mark = if program.is_met == Some(false) { MARK } else { "" };
    program.error_ns.map_or(NONE.into(), |error| format!("{}{mark}", Percent(error / program.wanted_ns)))
}

/// Returns the shift of a parameter for each unit of a dial.
pub fn slope(cell: &CrossTalk) -> String {
    match cell.slope {
        None => NONE.into(),
        // No dial must be more precise than a thousandth.
        Some(slope) => {
            let text = format!("{:.3}", if slope.abs() < 5e-4 { 0.0 } else { slope });
            if cell.is_demanded { format!("[{text}]") } else { text }
        }
    }
}

/// Returns the title of a table.
pub fn title(table: &Table) -> String {
    let how = if table.adds { "added to the link" } else { "what the link is set to" };
    format!("{}: {} of messages of {} B, {how}", table.dial, table.parameter, table.size_bytes)
}

/// Returns one unit for all times of a table.
pub fn unit_of(table: &Table) -> Unit {
    let figures = table.link.iter().chain(table.rows.iter().flat_map(|row| &row.figures));
    let observed = table.rows.iter().flat_map(|row| [Some(row.wanted_ns), row.observed_ns]);
    Unit::common(figures.map(|figure| figure.value_ns).chain(observed).flatten())
}

fn of_dial(lines: &mut Lines, table: &Table) {
    let unit = unit_of(table);
    lines.wrapped(&format!("{}; times in {}", title(table), unit.name), "  ", "    ");
    let line = |wanted: &str, observed: &str, error: &str, figures: String| {
        let columns = [(wanted, TIME), (observed, CELL), (error, CELL)];
        columns.map(|(text, width)| in_column(text, width)).concat() + &figures
    };
    let cells = |figures: &[Effect]| figures.iter().map(|figure| cell(figure, unit)).collect::<String>();
    let head = NAMES.map(|name| in_column(name, CELL)).concat();
    row(lines, &line("wanted", "observed", "error", head));
    row(lines, &line("link", "", "", cells(&table.link)));
    for at in &table.rows {
        let (wanted, observed) = (unit.number(at.wanted_ns), in_unit(at.observed_ns, unit));
        row(lines, &line(&wanted, &observed, &error(at), cells(&at.figures)));
    }
    lines.wrapped(&mean(table), "  ", "    ");
}

/// Writes a line of a table, wrapped if the terminal is narrow.
fn row(lines: &mut Lines, line: &str) {
    if lines.width >= COLUMNS_FROM {
        lines.push(&format!("  {line}"));
    } else {
        lines.wrapped(line, "  ", "    ");
    }
}

/// Returns a cell whose last character is the place of a mark, so that figures are aligned.
fn in_column(text: &str, width: usize) -> String {
    if text.ends_with(MARK) { format!("{text:>width$}") } else { format!("{:>width$}", format!("{text} ")) }
}

fn in_unit(ns: Option<f64>, unit: Unit) -> String {
    ns.map_or(NONE.into(), |ns| unit.number(ns))
}

fn cell(figure: &Effect, unit: Unit) -> String {
    let mark = if figure.is_steady == Some(false) { MARK } else { "" };
    in_column(&format!("{}{mark}", in_unit(figure.value_ns, unit)), CELL)
}

/// Returns the error, with a mark if it is beyond its tolerance.
pub fn error(row: &Row) -> String {
    match (row.error_ns, row.is_met) {
        (Some(_), None) => "link's".into(),
        (Some(error), met) => {
            let mark = if met == Some(false) { MARK } else { "" };
            format!("{}{mark}", Percent(error / row.wanted_ns))
        }
        (None, _) => NONE.into(),
    }
}

/// Returns mean and standard deviation of the errors, as under the paper's tables.
pub fn mean(table: &Table) -> String {
    let errors = table.rows.iter().filter(|row| row.is_met.is_some());
    let errors: Vec<f64> = errors.filter_map(|row| Some((row.error_ns? / row.wanted_ns).abs())).collect();
    if errors.is_empty() {
        return "no value that the link does not have already".into();
    }
    let count = errors.len() as f64;
    let mean = errors.iter().sum::<f64>() / count;
    let spread = (errors.iter().map(|error| (error - mean).powi(2)).sum::<f64>() / count).sqrt();
    let met = table.rows.iter().filter(|row| row.is_met == Some(true)).count();
    format!(
        "mean error {}, standard deviation {}; {met} of {} values within 1 % or 150 ns",
        Percent(mean),
        Percent(spread),
        errors.len()
    )
}

/// Returns the observed value for each value of each dial, and the shifts of all parameters.
pub fn figures(found: &Validation) -> Vec<Figure> {
    let mut figures = Vec::new();
    for table in &found.tables {
        for row in &table.rows {
            let name = format!("{}.{}", table.dial, row.wanted_ns);
            // Each block is compared with its own neighbours, so that every block counts as a launch.
            let figure = |name, value| Figure::median(name, "ns", table.size_bytes, value, row.samples);
            figures.push(figure(format!("{name}.observed"), (row.observed_ns, row.ci_ns)));
            figures.extend(
                row.figures
                    .iter()
                    .map(|of| figure(format!("{name}.{}.shift", of.name), (of.shift_ns, of.shift_ci_ns))),
            );
        }
    }
    figures
}
