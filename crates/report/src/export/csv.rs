//! Parameters by size as comma-separated values (RFC 4180): one row for each layer and size.

use crate::csv::{figure, line, status};
use netdyno_measure::bulk::record::{Bulk, Segment, SizeFigures};
use netdyno_measure::record::{Found, LayerResult, Parameter, PerByte, Status};
use netdyno_measure::stats::Interval;

/// The first columns of a row.
const FIRST: [&str; 4] = ["layer", "verb", "wait", "size_bytes"];
/// The parameters of a row. T is the one-way time: half of a round trip.
const PARAMETERS: [&str; 6] = ["T", "o_s", "o_r", "o_poll", "g", "L"];

/// A parameter in four cells, which are empty without a figure.
struct Cells {
    status: Option<Status>,
    value: Option<f64>,
    ci: Option<Interval>,
}

/// The cells of a parameter that the verb does not measure at each size.
const NO_CELLS: Cells = Cells { status: None, value: None, ci: None };

/// A row: a layer at one size.
struct Row<'a> {
    result: &'a LayerResult,
    size_bytes: usize,
    /// In the order of [`PARAMETERS`], then G.
    parameters: [Cells; 7],
}

/// Returns the table as CSV text. Lines end with CR LF. The smallest size of each layer comes first.
pub fn render(results: &[&LayerResult]) -> String {
    let mut rows: Vec<Row<'_>> = results.iter().flat_map(|result| rows(result)).collect();
    rows.sort_by(|a, b| (&a.result.layer, a.size_bytes).cmp(&(&b.result.layer, b.size_bytes)));
    let mut text = header();
    rows.iter().for_each(|row| text.push_str(&row.text()));
    text
}

fn rows(result: &LayerResult) -> Vec<Row<'_>> {
    let p = &result.parameters;
    match &result.found {
        Found::Registration(_) => Vec::new(),
        Found::Logp(_) | Found::Contention(_) | Found::Overlap(_) | Found::Validate(_) => {
            let parameters = [
                half(&p.rtt),
                whole(&p.o_s),
                whole(&p.o_r),
                whole(&p.o_poll),
                whole(&p.g),
                whole(&p.L),
                per_byte(&p.G),
            ];
            vec![Row { result, size_bytes: result.size_bytes, parameters }]
        }
        Found::Bulk(bulk) => bulk.sizes.iter().map(|size| of_size(result, bulk, size)).collect(),
    }
}

/// Returns the row of one size, with G of the segment that contains the size.
fn of_size<'a>(result: &'a LayerResult, bulk: &Bulk, size: &SizeFigures) -> Row<'a> {
    let in_it = |segment: &&Segment| (segment.from_bytes..=segment.to_bytes).contains(&size.size_bytes);
    let per_byte = bulk.segments.iter().find(in_it).map_or(NO_CELLS, |segment| per_byte(&segment.G));
    let parameters = [
        whole(&size.T),
        whole(&size.o_s),
        whole(&size.o_r),
        NO_CELLS,
        whole(&size.g),
        whole(&size.L),
        per_byte,
    ];
    Row { result, size_bytes: size.size_bytes, parameters }
}

fn header() -> String {
    let times = PARAMETERS.iter().flat_map(|p| columns(p, "ns"));
    let all: Vec<String> =
        FIRST.map(String::from).into_iter().chain(times).chain(columns("G", "ns_per_byte")).collect();
    line(&all)
}

fn columns(parameter: &str, unit: &str) -> [String; 4] {
    ["status".into(), unit.to_owned(), format!("ci_lo_{unit}"), format!("ci_hi_{unit}")]
        .map(|what| format!("{parameter}_{what}"))
}

impl Row<'_> {
    fn text(&self) -> String {
        let Self { result, size_bytes, .. } = self;
        let first = [result.layer.clone(), result.verb().into(), result.wait.clone(), size_bytes.to_string()];
        let all: Vec<String> =
            first.into_iter().chain(self.parameters.iter().flat_map(Cells::text)).collect();
        line(&all)
    }
}

fn per_byte(p: &PerByte) -> Cells {
    Cells { status: Some(p.status), value: p.value_ns_per_byte, ci: p.ci_ns_per_byte }
}

fn whole(p: &Parameter) -> Cells {
    Cells { status: Some(p.status), value: p.value_ns, ci: p.ci_ns }
}

fn half(p: &Parameter) -> Cells {
    let ci = p.ci_ns.map(|ci| Interval { lo: ci.lo / 2.0, hi: ci.hi / 2.0 });
    Cells { status: Some(p.status), value: p.value_ns.map(|ns| ns / 2.0), ci }
}

impl Cells {
    fn text(&self) -> [String; 4] {
        [
            self.status.map(status).unwrap_or_default().into(),
            figure(self.value),
            figure(self.ci.map(|ci| ci.lo)),
            figure(self.ci.map(|ci| ci.hi)),
        ]
    }
}
