//! Sizes by parameters as comma-separated values (RFC 4180): one row for each layer and size.

use crate::csv::{figure, line, status};
use netdyno_measure::record::{LayerResult, Parameter, Status};
use netdyno_measure::stats::Interval;

/// What a row begins with.
const FIRST: [&str; 4] = ["layer", "verb", "wait", "size_bytes"];
/// The parameters of a row, T being the one-way time: half of a round trip.
const PARAMETERS: [&str; 6] = ["T", "o_s", "o_r", "o_poll", "g", "L"];

/// A parameter in four cells; empty where there is no figure.
struct Cells {
    status: Option<Status>,
    value: Option<f64>,
    ci: Option<Interval>,
}

/// The table in CSV text, lines ended by CR LF, the smallest size of each layer first.
pub fn render(results: &[&LayerResult]) -> String {
    let mut results = results.to_vec();
    results.sort_by_key(|result| (result.layer.clone(), result.size_bytes));
    let mut text = header();
    results.iter().for_each(|result| text.push_str(&row(result)));
    text
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

fn row(result: &LayerResult) -> String {
    let p = &result.parameters;
    let per_byte = Cells { status: Some(p.G.status), value: p.G.value_ns_per_byte, ci: p.G.ci_ns_per_byte };
    let parameters =
        [half(&p.rtt), whole(&p.o_s), whole(&p.o_r), whole(&p.o_poll), whole(&p.g), whole(&p.L), per_byte];
    let first =
        [result.layer.clone(), result.verb().into(), result.wait.clone(), result.size_bytes.to_string()];
    let all: Vec<String> = first.into_iter().chain(parameters.iter().flat_map(Cells::text)).collect();
    line(&all)
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
