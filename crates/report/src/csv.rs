//! A record as comma-separated values (RFC 4180): one row per layer and parameter.
//!
//! Cells are empty if the record has no figure. The doubts of a row are those about its parameter, about
//! its layer as a whole, and about the run as a whole.

use crate::figure::Figure;
use crate::figures::figures;
use netdyno_measure::record::{Doubt, LayerResult, Record, Status};
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

/// Returns the record as CSV text. Lines end with CR LF.
pub fn render(record: &Record) -> String {
    let mut text = line(&COLUMNS.map(String::from));
    for result in &record.results {
        text.push_str(&rows(record, result));
        let others = (0..result.strata.len()).filter(|&at| !result.strata[at].is_headline);
        for other in others.filter_map(|at| result.of_stratum(at)) {
            text.push_str(&rows(record, &other));
        }
    }
    text
}

fn rows(record: &Record, result: &LayerResult) -> String {
    let rows = figures(result).into_iter().filter(|figure| figure.has_row);
    rows.map(|figure| line(&cells(record, result, &figure))).collect()
}

fn cells(record: &Record, result: &LayerResult, of: &Figure) -> [String; COLUMNS.len()] {
    let doubts = result.doubts.iter().filter(|doubt| concerns(doubt, &of.name)).chain(&record.doubts);
    let [status, value, lo, hi] = claim(of.status, of.value, of.ci);
    [
        result.layer.clone(),
        result.verb().into(),
        of.size_bytes.to_string(),
        of.name.to_string(),
        status,
        of.unit.into(),
        value,
        lo,
        hi,
        of.samples.to_string(),
        of.launches.to_string(),
        doubts.map(|doubt| doubt.name.as_str()).collect::<Vec<_>>().join(";"),
        result.label.clone().unwrap_or_default(),
        result.headline().map(|stratum| stratum.name.clone()).unwrap_or_default(),
    ]
}

/// Reports whether a doubt concerns the figure of that name: one of its parameter, and of its operation if it has one.
fn concerns(doubt: &Doubt, name: &str) -> bool {
    let Some(about) = &doubt.about else { return true };
    let name = match &doubt.operation {
        None => Some(name),
        Some(operation) => name.strip_prefix(&**operation).and_then(|rest| rest.strip_prefix('.')),
    };
    let rest = name.and_then(|name| name.strip_prefix(&**about));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Returns the cells of a figure: its status as a record spells it, its value, and the ends of its interval.
pub(crate) fn claim(status: Status, value: Option<f64>, ci: Option<Interval>) -> [String; 4] {
    let status = match status {
        Status::Measured => "measured",
        Status::UpperBound => "upper_bound",
        Status::Unobservable => "unobservable",
    };
    [status.into(), figure(value), figure(ci.map(|ci| ci.lo)), figure(ci.map(|ci| ci.hi))]
}

/// Returns the value with all digits. Returns an empty text without a finite value.
pub(crate) fn figure(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map(|value| value.to_string()).unwrap_or_default()
}

/// Returns the cells as a line.
pub(crate) fn line(cells: &[String]) -> String {
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    writer.write_record(cells).expect("memory takes every line");
    String::from_utf8(writer.into_inner().expect("memory takes every line")).expect("cells are text")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        let cells = ["am+shm", "sim:o_s=1us,o_r=2us", "a \"b\"", ""].map(String::from);
        assert_eq!(line(&cells), "am+shm,\"sim:o_s=1us,o_r=2us\",\"a \"\"b\"\"\",\r\n");
    }

    #[test]
    fn a_doubt_concerns_the_rows_of_its_parameter_and_operation() {
        let doubt = Doubt::about("gap_hidden", "gap", String::new());
        let concerned =
            |doubt: &Doubt| ["gap", "gap.3", "gaps", "put.gap", "get.gap"].map(|name| concerns(doubt, name));
        assert_eq!(concerned(&doubt), [true, true, false, false, false]);
        assert_eq!(concerned(&doubt.of("put")), [false, false, false, true, false]);
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
            let line = line(&cells);
            let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(line.as_bytes());
            prop_assert_eq!(reader.records().next().unwrap().unwrap(), cells.to_vec());
        }
    }
}
