//! The findings of `bulk`, for the terminal and for CSV.

mod verdict;

use netdyno_measure::bulk::record::{Bulk, Change, Classic, Segment, SizeFigures};
use netdyno_measure::record::{Parameter, Status};
use netdyno_measure::show::{NONE, bytes, number_and_interval, rate, time, time_and_interval};
use netdyno_measure::stats::Interval;
pub use verdict::verdict;

/// A short table shows the sizes of every second octave, besides those around changes.
const EVERY: u32 = 2;
/// Widths of the columns: the size, five times, and a rate.
const SIZE: usize = 9;
const TIME: usize = 11;
const RATE: usize = 12;

/// Returns the sizes of a short table: powers of four, the ends, and the two sizes around each change.
pub fn shown_sizes(bulk: &Bulk) -> Vec<&SizeFigures> {
    let is_power = |n: usize| n.is_power_of_two() && n.ilog2().is_multiple_of(EVERY);
    let is_end = |n: usize| bulk.sizes.last().is_some_and(|last| last.size_bytes == n);
    let encloses = |n: usize| bulk.changes.iter().any(|c| c.above_bytes == n || c.at_most_bytes == n);
    bulk.sizes
        .iter()
        .filter(|size| is_power(size.size_bytes) || is_end(size.size_bytes) || encloses(size.size_bytes))
        .collect()
}

/// Returns the table of sizes with its heading, one line for each size.
pub fn table(bulk: &Bulk) -> Vec<String> {
    let row = |cells: [String; 7]| {
        let [size, times @ .., rate] = cells;
        let times: String = times.iter().map(|cell| format!("{cell:>TIME$}")).collect();
        format!("{size:>SIZE$}{times}{rate:>RATE$}")
    };
    let head = row(["n", "T", "o_s", "o_r", "g", "L", "stream"].map(String::from));
    let rows = shown_sizes(bulk).into_iter().map(|size| {
        let [t, o_s, o_r, g, l] = size.times().map(|(_, p)| value(p));
        row([bytes(size.size_bytes as f64), t, o_s, o_r, g, l, rate(size.streaming.value_bytes_per_s)])
    });
    [head].into_iter().chain(rows).collect()
}

fn value(p: &Parameter) -> String {
    match (p.status, p.value_ns.filter(|ns| ns.is_finite())) {
        (Status::Measured, Some(ns)) => time(ns),
        (Status::UpperBound, Some(ns)) => format!("≤ {}", time(ns)),
        _ => NONE.into(),
    }
}

/// Returns the findings over all sizes, in sentences.
pub fn sentences(bulk: &Bulk) -> Vec<String> {
    let mut sentences: Vec<String> = bulk.segments.iter().map(segment).collect();
    sentences.extend(bulk.changes.iter().map(change));
    sentences.push(classic(&bulk.classic));
    sentences.push(bulk.overlap.finding.clone());
    sentences
}

/// Describes G of a segment.
pub fn segment(segment: &Segment) -> String {
    let gap = &segment.G;
    let figure = match (gap.status, gap.value_ns_per_byte) {
        (Status::Measured, Some(value)) => {
            format!("{} ns/B", number_and_interval(value, gap.ci_ns_per_byte))
        }
        (Status::UpperBound, Some(value)) => {
            format!("≤ {} ns/B", number_and_interval(value, gap.ci_ns_per_byte))
        }
        _ => "cannot be seen".into(),
    };
    format!("G {figure}, {}", range(segment))
}

/// Describes the sizes of a segment.
pub fn range(segment: &Segment) -> String {
    format!("{} to {}", bytes(segment.from_bytes as f64), bytes(segment.to_bytes as f64))
}

/// Describes the size at which T leaves its line, and the distance.
pub fn change(change: &Change) -> String {
    format!(
        "T leaves its line above {}, at {} at the latest: {} there, {} by the line below",
        bytes(change.above_bytes as f64),
        bytes(change.at_most_bytes as f64),
        time(change.measured_ns),
        time(change.extrapolated_ns)
    )
}

/// Describes the classic fit and its prediction for small messages.
pub fn classic(classic: &Classic) -> String {
    let measured = classic.n_half_measured_bytes.map_or(NONE.into(), bytes);
    format!(
        "T0 + n / R∞: T0 {}, R∞ {}, n½ {} ({measured} as measured); for {} it predicts {}, measured {}",
        time_and_interval(classic.T0_ns, classic.T0_ci_ns),
        classic.R_inf.map_or(NONE.into(), |peak| rate(peak.value_bytes_per_s)),
        classic.n_half_bytes.map_or(NONE.into(), bytes),
        bytes(classic.small_bytes as f64),
        time(classic.small_predicted_ns),
        time(classic.small_measured_ns)
    )
}

/// A figure for a row of CSV.
pub struct Figure {
    /// Its name.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// The size to which the figure belongs; `None` for a figure of the whole result.
    pub size_bytes: Option<usize>,
    /// The status of the figure.
    pub status: Status,
    /// The value.
    pub value: Option<f64>,
    /// Its interval.
    pub ci: Option<Interval>,
    /// Samples behind it.
    pub samples: u64,
    /// Launches behind it.
    pub launches: usize,
}

/// Returns all figures for CSV: those of each size, then those of each segment, then the others.
pub fn figures(bulk: &Bulk) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (at, size) in bulk.sizes.iter().enumerate() {
        // At the smallest size all figures except T are the parameters of the result.
        let own = size.times().into_iter().filter(|(name, _)| at > 0 || *name == "T");
        figures.extend(own.map(|(name, p)| Figure {
            name,
            unit: "ns",
            size_bytes: Some(size.size_bytes),
            status: p.status,
            value: p.value_ns,
            ci: p.ci_ns,
            samples: p.samples,
            launches: p.launches,
        }));
        for (name, rate) in [("streaming", &size.streaming), ("single", &size.single)] {
            figures.push(Figure {
                name,
                unit: "bytes_per_s",
                size_bytes: Some(size.size_bytes),
                status: Status::Measured,
                value: Some(rate.value_bytes_per_s),
                ci: rate.ci_bytes_per_s,
                samples: size.T.samples,
                launches: size.T.launches,
            });
        }
    }
    figures.extend(bulk.segments.iter().map(|segment| Figure {
        name: "G.segment",
        unit: "ns_per_byte",
        size_bytes: Some(segment.from_bytes),
        status: segment.G.status,
        value: segment.G.value_ns_per_byte,
        ci: segment.G.ci_ns_per_byte,
        samples: segment.G.samples,
        launches: segment.G.launches,
    }));
    figures.extend(whole(bulk));
    figures
}

/// Returns the figures that belong to no single size.
fn whole(bulk: &Bulk) -> Vec<Figure> {
    let launches = bulk.launches.len();
    let figure = |name, unit, value, ci| Figure {
        name,
        unit,
        size_bytes: None,
        status: Status::Measured,
        value,
        ci,
        samples: launches as u64,
        launches,
    };
    let classic = &bulk.classic;
    let enclosed = |c: &Change| Interval { lo: c.above_bytes as f64, hi: c.at_most_bytes as f64 };
    let changes = bulk
        .changes
        .iter()
        .map(|c| figure("change", "bytes", Some(c.at_most_bytes as f64), Some(enclosed(c))));
    changes
        .chain([
            figure("T0", "ns", Some(classic.T0_ns), classic.T0_ci_ns),
            figure(
                "R_inf",
                "bytes_per_s",
                classic.R_inf.map(|peak| peak.value_bytes_per_s),
                classic.R_inf.and_then(|peak| peak.ci_bytes_per_s),
            ),
            figure("n_half", "bytes", classic.n_half_measured_bytes, classic.n_half_measured_ci_bytes),
        ])
        .collect()
}
