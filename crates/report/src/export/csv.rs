//! Parameters by size as comma-separated values (RFC 4180): one row for each layer and size.

use super::ExportError;
use crate::csv::{claim, line};
use crate::figure::{Figure, times};
use netdyno_measure::bulk::record::{Bulk, Segment, SizeFigures};
use netdyno_measure::record::{Found, LayerResult};
use netdyno_measure::stats::Interval;

/// The first columns of a row.
const FIRST: [&str; 4] = ["layer", "verb", "wait", "size_bytes"];
/// The last columns: the label of a result, and what was done to its link on purpose.
const LAST: [&str; 3] = ["label", "faults", "dials"];
/// The parameters of a row, each with its unit. T is the one-way time: half of a round trip.
const PARAMETERS: [(&str, &str); 7] = [
    ("T", "ns"),
    ("o_s", "ns"),
    ("o_r", "ns"),
    ("o_poll", "ns"),
    ("g", "ns"),
    ("L", "ns"),
    ("G", "ns_per_byte"),
];

/// A row: a layer at one size.
struct Row<'a> {
    result: &'a LayerResult,
    size_bytes: usize,
    figures: Vec<Figure>,
}

/// Returns the table as CSV text. Lines end with CR LF. The smallest size of each layer comes first.
///
/// # Errors
/// No result has parameters of the LogP model.
pub fn render(results: &[&LayerResult]) -> Result<String, ExportError> {
    let mut rows: Vec<Row<'_>> = results.iter().flat_map(|result| rows(result)).collect();
    if rows.is_empty() {
        let first = results.first().ok_or(ExportError::Nothing)?;
        return Err(ExportError::OtherFigures(first.verb().to_owned()));
    }
    rows.sort_by(|a, b| (&a.result.layer, a.size_bytes).cmp(&(&b.result.layer, b.size_bytes)));
    let columns = PARAMETERS.iter().flat_map(|(name, unit)| {
        ["status", unit, &format!("ci_lo_{unit}"), &format!("ci_hi_{unit}")]
            .map(|what| format!("{name}_{what}"))
    });
    let header: Vec<String> =
        FIRST.map(String::from).into_iter().chain(columns).chain(LAST.map(String::from)).collect();
    Ok([line(&header)].into_iter().chain(rows.iter().map(Row::text)).collect())
}

fn rows(result: &LayerResult) -> Vec<Row<'_>> {
    match &result.found {
        Found::Breakdown(_)
        | Found::Completion(_)
        | Found::Registration(_)
        | Found::Memory(_)
        | Found::Onesided(_)
        | Found::Utilisation(_) => Vec::new(),
        Found::Logp(_) | Found::Contention(_) | Found::Overlap(_) | Found::Validate(_) => {
            let size_bytes = result.size_bytes;
            let mut figures = times(&result.parameters, size_bytes);
            figures.push(half(Figure::time("T", size_bytes, &result.parameters.rtt)));
            figures.push(Figure::per_byte("G", size_bytes, &result.parameters.G));
            vec![Row { result, size_bytes, figures }]
        }
        Found::Bulk(bulk) => bulk.sizes.iter().map(|size| of_size(result, bulk, size)).collect(),
    }
}

/// Returns the row of one size, with G of the segment that contains the size.
fn of_size<'a>(result: &'a LayerResult, bulk: &Bulk, size: &SizeFigures) -> Row<'a> {
    let size_bytes = size.size_bytes;
    let in_it = |segment: &&Segment| (segment.from_bytes..=segment.to_bytes).contains(&size_bytes);
    let per_byte = bulk.segments.iter().find(in_it);
    let per_byte = per_byte.map(|segment| Figure::per_byte("G", size_bytes, &segment.G));
    let times = size.times().map(|(name, p)| Figure::time(name, size_bytes, p));
    Row { result, size_bytes, figures: times.into_iter().chain(per_byte).collect() }
}

fn half(of: Figure) -> Figure {
    let ci = of.ci.map(|ci| Interval { lo: ci.lo / 2.0, hi: ci.hi / 2.0 });
    Figure { value: of.value.map(|ns| ns / 2.0), ci, ..of }
}

impl Row<'_> {
    fn text(&self) -> String {
        let Self { result, size_bytes, .. } = self;
        let first = [result.layer.clone(), result.verb().into(), result.wait.clone(), size_bytes.to_string()];
        let cells = |(name, _): &(&str, &str)| {
            let figure = self.figures.iter().find(|figure| figure.name == *name);
            figure.map_or_else(Default::default, |of| claim(of.status, of.value, of.ci))
        };
        let last =
            [&result.label, &result.faults, &result.dials].map(|text| text.clone().unwrap_or_default());
        let all: Vec<String> =
            first.into_iter().chain(PARAMETERS.iter().flat_map(cells)).chain(last).collect();
        line(&all)
    }
}
