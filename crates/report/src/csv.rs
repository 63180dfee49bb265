//! A record as comma-separated values (RFC 4180): one row per layer and parameter.
//!
//! Cells are empty if the record has no figure. The doubts of a row are those about its parameter, about
//! its layer as a whole, and about the run as a whole.

use crate::bulk;
use crate::overlap;
use crate::registration;
use crate::validation;
use netdyno_measure::contention::record::{Contention, Quotient};
use netdyno_measure::record::{Doubt, Found, LayerResult, Parameter, PerByte, Record, Status};
use netdyno_measure::stats::Interval;

/// The header row.
pub const COLUMNS: [&str; 14] = [
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
    "label",
    "stratum",
];

/// A parameter in any unit.
struct Row {
    parameter: String,
    unit: &'static str,
    /// The size to which the figure belongs, if it is not that of the result.
    size_bytes: Option<usize>,
    status: Status,
    value: Option<f64>,
    ci: Option<Interval>,
    samples: u64,
    launches: usize,
}

/// Returns the record as CSV text. Lines end with CR LF.
pub fn render(record: &Record) -> String {
    let mut text = line(&COLUMNS.map(String::from));
    for result in &record.results {
        for row in rows(result) {
            text.push_str(&line(&cells(record, result, &row)));
        }
        let others = (0..result.strata.len()).filter(|&at| !result.strata[at].is_headline);
        for other in others.filter_map(|at| result.of_stratum(at)) {
            for row in rows(&other) {
                text.push_str(&line(&cells(record, &other, &row)));
            }
        }
    }
    text
}

fn rows(result: &LayerResult) -> Vec<Row> {
    let mut rows: Vec<Row> = result.parameters.times().map(|(name, p)| in_ns(name, p)).into();
    rows.push(per_byte("G", &result.parameters.G));
    match &result.found {
        Found::Logp(logp) => rows.extend([
            in_ns("rtt_after_pause", &logp.checks.rtt_after_pause),
            in_ns("o_r_away", &logp.checks.o_r_away),
        ]),
        Found::Bulk(found) => rows.extend(bulk::figures(found).into_iter().map(of_bulk)),
        Found::Contention(found) => rows.extend(contention(found)),
        Found::Overlap(found) => rows.extend(overlap::figures(found).into_iter().map(of_overlap)),
        Found::Registration(found) => {
            let row =
                |(name, size_bytes, cost): registration::Figure<'_>| Row { size_bytes, ..in_ns(&name, cost) };
            rows.extend(registration::figures(found).into_iter().map(row));
        }
        Found::Validate(found) => rows.extend(validation::figures(found).into_iter().map(of_validation)),
    }
    rows
}

fn of_bulk(figure: bulk::Figure) -> Row {
    let bulk::Figure { name, unit, size_bytes, status, value, ci, samples, launches } = figure;
    Row { parameter: name.into(), unit, size_bytes, status, value, ci, samples, launches }
}

fn of_overlap(figure: overlap::Figure) -> Row {
    let overlap::Figure { name, unit, size_bytes, status, value, ci, samples, launches } = figure;
    Row { parameter: name, unit, size_bytes: Some(size_bytes), status, value, ci, samples, launches }
}

fn of_validation(figure: validation::InRow) -> Row {
    let validation::InRow { name, size_bytes, status, value, ci, samples } = figure;
    // Each block is compared with its own neighbours, so that every block counts as a launch.
    Row {
        parameter: name,
        unit: "ns",
        size_bytes: Some(size_bytes),
        status,
        value,
        ci,
        samples,
        launches: samples as usize,
    }
}

/// Returns the rows of contention. The rows of a comparison have names with dots, such as
/// `many_to_one.3.ratio`.
fn contention(found: &Contention) -> Vec<Row> {
    let mut rows = vec![
        in_ns("pairs.least", &found.pairs.least.rtt),
        in_ns("pairs.most", &found.pairs.most.rtt),
        quotient("pairs.ratio", "ratio", found.pairs.most_over_least),
        in_ns("one_to_many", &found.one_to_many.gap),
        quotient("one_to_many.ratio", "ratio", found.one_to_many.ratio),
    ];
    for compared in &found.halves.compared {
        let name = format!("halves.{}", compared.parameter);
        rows.push(in_ns(&name, &compared.crowd));
        rows.extend(compared.ratio.map(|ratio| quotient(&format!("{name}.ratio"), "ratio", ratio)));
        rows.push(quotient(&format!("{name}.difference"), "ns", compared.difference_ns));
    }
    for at in &found.many_to_one {
        let name = format!("many_to_one.{}", at.requesters);
        rows.push(in_ns(&name, &at.gap));
        rows.push(quotient(&format!("{name}.ratio"), "ratio", at.ratio));
        rows.push(quotient(&format!("{name}.slowest_over_fastest"), "ratio", at.slowest_over_fastest));
    }
    for rate in &found.rates {
        let name = format!("rate.{}", rate.pairs);
        rows.push(quotient(&name, "messages_per_s", rate.messages_per_s));
        rows.push(quotient(&format!("{name}.ratio"), "ratio", rate.ratio));
    }
    rows
}

fn quotient(parameter: &str, unit: &'static str, quotient: Quotient) -> Row {
    let is_known = quotient.launches > 0;
    Row {
        parameter: parameter.into(),
        unit,
        size_bytes: None,
        status: if is_known { Status::Measured } else { Status::Unobservable },
        value: is_known.then_some(quotient.value),
        ci: quotient.ci,
        samples: quotient.launches as u64,
        launches: quotient.launches,
    }
}

fn in_ns(parameter: &str, p: &Parameter) -> Row {
    Row {
        parameter: parameter.into(),
        unit: "ns",
        size_bytes: None,
        status: p.status,
        value: p.value_ns,
        ci: p.ci_ns,
        samples: p.samples,
        launches: p.launches,
    }
}

fn per_byte(parameter: &str, p: &PerByte) -> Row {
    Row {
        parameter: parameter.into(),
        unit: "ns_per_byte",
        size_bytes: None,
        status: p.status,
        value: p.value_ns_per_byte,
        ci: p.ci_ns_per_byte,
        samples: p.samples,
        launches: p.launches,
    }
}

fn cells(record: &Record, result: &LayerResult, row: &Row) -> [String; 14] {
    let is_about = |about: &str| {
        row.parameter.strip_prefix(about).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let concerns = |doubt: &&Doubt| doubt.about.as_deref().is_none_or(is_about);
    let doubts = result.doubts.iter().filter(concerns).chain(&record.doubts);
    [
        result.layer.clone(),
        result.verb().into(),
        row.size_bytes.unwrap_or(result.size_bytes).to_string(),
        row.parameter.clone(),
        status(row.status).into(),
        row.unit.into(),
        figure(row.value),
        figure(row.ci.map(|ci| ci.lo)),
        figure(row.ci.map(|ci| ci.hi)),
        row.samples.to_string(),
        row.launches.to_string(),
        doubts.map(|doubt| doubt.name.as_str()).collect::<Vec<_>>().join(";"),
        result.label.clone().unwrap_or_default(),
        result.headline().map(|stratum| stratum.name.clone()).unwrap_or_default(),
    ]
}

/// Returns the status as a record spells it.
pub(crate) fn status(status: Status) -> &'static str {
    match status {
        Status::Measured => "measured",
        Status::UpperBound => "upper_bound",
        Status::Unobservable => "unobservable",
    }
}

/// Returns the value with all digits. Returns an empty text without a finite value.
pub(crate) fn figure(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map(|value| value.to_string()).unwrap_or_default()
}

/// Returns the cells as a line.
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
            let cells: [String; 14] = std::array::from_fn(|at| format!("{cell}{at}"));
            prop_assert_eq!(parsed(&line(&cells)), cells.to_vec());
        }
    }
}
