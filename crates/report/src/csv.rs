//! A record as comma-separated values (RFC 4180): one row per layer and parameter.
//!
//! Cells are empty where a record has no figure. The doubts of a row are those about its
//! parameter, about its layer as a whole and about the run as a whole.

use crate::bulk;
use netdyno_measure::record::{Doubt, Found, LayerResult, Parameter, PerByte, Record, Status};
use netdyno_measure::stats::Interval;

/// The header row.
pub const COLUMNS: [&str; 12] = [
    "layer",
    "verb",
    "size_bytes",
    "parameter",
    "status",
    "unit",
    "value",
    "ci_lo",
    "ci_hi",
    "samples",
    "launches",
    "doubts",
];

/// A parameter, whatever its unit.
struct Row<'a> {
    parameter: &'a str,
    unit: &'a str,
    /// The size it is about, where that is not the result's.
    size_bytes: Option<usize>,
    status: Status,
    value: Option<f64>,
    ci: Option<Interval>,
    samples: u64,
    launches: usize,
}

/// The record in CSV text, lines ended by CR LF.
pub fn render(record: &Record) -> String {
    let mut text = line(&COLUMNS.map(String::from));
    for result in &record.results {
        for row in rows(result) {
            text.push_str(&line(&cells(record, result, &row)));
        }
    }
    text
}

fn rows(result: &LayerResult) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = result.parameters.times().map(|(name, p)| in_ns(name, p)).into();
    rows.push(per_byte("G", &result.parameters.G));
    match &result.found {
        Found::Logp(logp) => rows.extend([
            in_ns("rtt_after_pause", &logp.checks.rtt_after_pause),
            in_ns("o_r_away", &logp.checks.o_r_away),
        ]),
        Found::Bulk(found) => rows.extend(bulk::figures(found).into_iter().map(of_bulk)),
    }
    rows
}

fn of_bulk(figure: bulk::Figure) -> Row<'static> {
    let bulk::Figure { name, unit, size_bytes, status, value, ci, samples, launches } = figure;
    Row { parameter: name, unit, size_bytes, status, value, ci, samples, launches }
}

fn in_ns<'a>(parameter: &'a str, p: &Parameter) -> Row<'a> {
    Row {
        parameter,
        unit: "ns",
        size_bytes: None,
        status: p.status,
        value: p.value_ns,
        ci: p.ci_ns,
        samples: p.samples,
        launches: p.launches,
    }
}

fn per_byte<'a>(parameter: &'a str, p: &PerByte) -> Row<'a> {
    Row {
        parameter,
        unit: "ns_per_byte",
        size_bytes: None,
        status: p.status,
        value: p.value_ns_per_byte,
        ci: p.ci_ns_per_byte,
        samples: p.samples,
        launches: p.launches,
    }
}

fn cells(record: &Record, result: &LayerResult, row: &Row<'_>) -> [String; 12] {
    let concerns = |doubt: &&Doubt| doubt.about.as_deref().is_none_or(|about| about == row.parameter);
    let doubts = result.doubts.iter().filter(concerns).chain(&record.doubts);
    [
        result.layer.clone(),
        result.verb().into(),
        row.size_bytes.unwrap_or(result.size_bytes).to_string(),
        row.parameter.into(),
        status(row.status).into(),
        row.unit.into(),
        figure(row.value),
        figure(row.ci.map(|ci| ci.lo)),
        figure(row.ci.map(|ci| ci.hi)),
        row.samples.to_string(),
        row.launches.to_string(),
        doubts.map(|doubt| doubt.name.as_str()).collect::<Vec<_>>().join(";"),
    ]
}

/// As it is spelled in a record.
pub(crate) fn status(status: Status) -> &'static str {
    match status {
        Status::Measured => "measured",
        Status::UpperBound => "upper_bound",
        Status::Unobservable => "unobservable",
    }
}

/// All digits; empty where there is no number.
pub(crate) fn figure(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map(|value| value.to_string()).unwrap_or_default()
}

/// Cells as a line.
pub(crate) fn line(cells: &[String]) -> String {
    cells.iter().map(|cell| quoted(cell)).collect::<Vec<_>>().join(",") + "\r\n"
}

fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reads one line back by the grammar of RFC 4180.
    fn parsed(line: &str) -> Vec<String> {
        let (mut cells, mut cell, mut inside) = (Vec::new(), String::new(), false);
        let mut chars = line.strip_suffix("\r\n").unwrap().chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '"' if inside && chars.peek() == Some(&'"') => cell.push(chars.next().unwrap()),
                '"' => inside = !inside,
                ',' if !inside => cells.push(std::mem::take(&mut cell)),
                c => cell.push(c),
            }
        }
        cells.push(cell);
        cells
    }

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        assert_eq!(quoted("am+shm"), "am+shm");
        assert_eq!(quoted("sim:o_s=1us,o_r=2us"), "\"sim:o_s=1us,o_r=2us\"");
        assert_eq!(quoted("a \"b\""), "\"a \"\"b\"\"\"");
    }

    #[test]
    fn what_is_no_number_is_empty() {
        assert_eq!(figure(Some(0.1)), "0.1");
        assert_eq!(figure(Some(f64::NAN)) + &figure(None), "");
    }

    proptest! {
        #[test]
        fn every_cell_reads_back(cell in "[a-z,\"\r\n ]{0,12}") {
            let cells: [String; 12] = std::array::from_fn(|at| format!("{cell}{at}"));
            prop_assert_eq!(parsed(&line(&cells)), cells.to_vec());
        }
    }
}
