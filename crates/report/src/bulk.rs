//! The figures of `bulk`, and its findings for the terminal.

mod verdict;

use crate::figure::{Figure, in_words};
use crate::lines::Lines;
use crate::logp::plateau;
use netdyno_measure::bulk::data::BulkLaunch;
use netdyno_measure::bulk::extract::extract;
use netdyno_measure::bulk::record::{Bulk, BulkSignature, Change, Classic, Segment, SizeFigures, TIMES};
use netdyno_measure::layer::Transfer;
use netdyno_measure::record::{Limit, Parameter, Status};
use netdyno_measure::show::{NONE, bytes, number_and_interval, rate, time, time_and_interval};
use netdyno_measure::stats::Interval;
use std::slice;
pub use verdict::verdict;

/// A short table shows the sizes of every second octave, besides those around changes.
const EVERY: u32 = 2;
/// Widths of the columns: the size, the times, and a rate.
const SIZE: usize = 9;
const TIME: usize = 10;
const RATE: usize = 11;

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

/// Writes all findings.
pub fn write(lines: &mut Lines, bulk: &Bulk) {
    lines.blank();
    for line in table(bulk) {
        lines.row(&line, "  ", "    ");
    }
    lines.blank();
    sentences(bulk).iter().for_each(|text| lines.wrapped(text, "  ", "    "));
}

/// Returns the table of sizes with its heading, one line for each size.
fn table(bulk: &Bulk) -> Vec<String> {
    let row = |size: &str, times: Vec<String>, rate: &str| {
        let times: String = times.iter().map(|cell| format!("{cell:>TIME$}")).collect();
        format!("{size:>SIZE$}{times}{rate:>RATE$}")
    };
    let head = row("n", TIMES.map(String::from).into(), "stream");
    let rows = shown_sizes(bulk).into_iter().map(|size| {
        let times = size.times().map(|(_, p)| in_words(p)).into();
        row(&bytes(size.size_bytes as f64), times, &rate(size.streaming.value_bytes_per_s))
    });
    [head].into_iter().chain(rows).collect()
}

/// Returns the findings over all sizes, in sentences.
fn sentences(bulk: &Bulk) -> Vec<String> {
    let mut sentences: Vec<String> = way(bulk).map(str::to_owned).into_iter().collect();
    sentences.extend(bulk.segments.iter().map(segment));
    sentences.extend(bulk.changes.iter().map(change));
    sentences.extend(classics(bulk));
    sentences.push(bulk.overlap.finding.clone());
    sentences.extend(bulk.signatures.iter().map(signature));
    sentences
}

/// Describes the way of the data of transfers and streams, unless requests carry them.
pub fn way(bulk: &Bulk) -> Option<&'static str> {
    match bulk.transfer {
        Transfer::Request | Transfer::Store => None,
        Transfer::Reply => Some("transfers and streams: a small request and a reply of n bytes"),
        Transfer::Get => Some("transfers and streams: gets of n bytes, the layer's own operation"),
    }
}

/// Describes the transfers of a signature.
pub fn transfers(transfer: Transfer, size_bytes: usize) -> String {
    let bytes = bytes(size_bytes as f64);
    match transfer {
        Transfer::Request => format!("requests of {bytes} and small replies"),
        Transfer::Store => format!("stores of {bytes}"),
        Transfer::Reply => format!("small requests and replies of {bytes}"),
        Transfer::Get => format!("gets of {bytes}"),
    }
}

/// Describes the parameters of a signature.
fn signature(of: &BulkSignature) -> String {
    let figure = |(name, p): (&str, &Parameter)| format!("{name} {}", in_words(p));
    let shown = of.parameters.times().into_iter().filter(|(name, _)| !["o_poll", "L"].contains(name));
    let figures: Vec<String> = shown.map(figure).collect();
    let pace = match of.signature.plateau.limited_by {
        Limit::Gap => "the slowest stage of the layer sets the pace",
        Limit::Processor => "the requester's processor sets the pace",
        Limit::Window => "the window sets the pace",
        Limit::Unknown => "no pace can be trusted",
    };
    format!("signature of {}: {}; {pace}", transfers(of.transfer, of.size_bytes), figures.join(", "))
}

/// Describes G of a segment.
fn segment(segment: &Segment) -> String {
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

/// Describes the classic fits to T(n) and to transfer(n).
pub fn classics(bulk: &Bulk) -> Vec<String> {
    let of_transfer = bulk.classic_of_transfer.as_ref().map(|fit| classic("transfer(n)", fit));
    [classic("T(n)", &bulk.classic)].into_iter().chain(of_transfer).collect()
}

/// Describes the classic fit to a time, and its prediction for small messages.
fn classic(of: &str, classic: &Classic) -> String {
    let measured = classic.n_half_measured_bytes.map_or(NONE.into(), bytes);
    format!(
        "{of} as T0 + n / R∞: T0 {}, R∞ {}, n½ {} ({measured} as measured); for {} it predicts {}, measured {}",
        time_and_interval(classic.T0_ns, classic.T0_ci_ns),
        classic.R_inf.map_or(NONE.into(), |peak| rate(peak.value_bytes_per_s)),
        classic.n_half_bytes.map_or(NONE.into(), bytes),
        bytes(classic.small_bytes as f64),
        time(classic.small_predicted_ns),
        time(classic.small_measured_ns)
    )
}

/// Returns the figures of each size, then those of each segment, then the others.
pub fn figures(bulk: &Bulk, size_bytes: usize) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (at, size) in bulk.sizes.iter().enumerate() {
        let n = size.size_bytes;
        for (name, p) in size.times() {
            let figure = Figure::time(name, n, p).compared_as(name);
            // The parameters of the result are those of the smallest size, except the times of transfers.
            figures.push(if at > 0 || ["T", "transfer"].contains(&name) {
                figure
            } else {
                figure.without_row()
            });
        }
        figures.push(plateau(&size.plateau, n, bulk.launches.len()));
        let rates = [("streaming", Some(&size.streaming)), ("single", Some(&size.single))];
        let rates = rates.into_iter().chain([("transferred", size.transferred.as_ref())]);
        for (name, rate) in rates.filter_map(|(name, rate)| Some((name, rate?))) {
            let value = (Some(rate.value_bytes_per_s), rate.ci_bytes_per_s);
            let median = Figure::median(name, "bytes_per_s", n, value, size.T.launches);
            figures.push(Figure { samples: size.T.samples, ..median });
        }
    }
    figures.extend(bulk.segments.iter().map(|s| Figure::per_byte("G.segment", s.from_bytes, &s.G)));
    figures.extend(whole(bulk, size_bytes));
    figures.extend(bulk.signatures.iter().flat_map(of_signature));
    figures
}

/// Returns the figures of a signature, with names such as `signature.o_s`.
fn of_signature(of: &BulkSignature) -> Vec<Figure> {
    let n = of.size_bytes;
    let times = of.parameters.times().into_iter();
    let mut figures: Vec<Figure> =
        times.map(|(name, p)| Figure::time(format!("signature.{name}"), n, p)).collect();
    let plateau = &of.signature.plateau;
    let value = (Some(plateau.value_ns), plateau.ci_ns);
    figures.push(Figure::median("signature.plateau", "ns", n, value, of.parameters.rtt.launches));
    figures
}

/// Returns the figures that belong to no single size.
fn whole(bulk: &Bulk, size_bytes: usize) -> Vec<Figure> {
    let figure = |name, unit, value| Figure::median(name, unit, size_bytes, value, bulk.launches.len());
    let change = |c: &Change| {
        let enclosed = Interval { lo: c.above_bytes as f64, hi: c.at_most_bytes as f64 };
        figure("change", "bytes", (Some(enclosed.hi), Some(enclosed)))
    };
    let mut figures: Vec<Figure> = bulk.changes.iter().map(change).collect();
    let fits = [(["T0", "R_inf", "n_half"], Some(&bulk.classic))];
    let names = ["T0.transfer", "R_inf.transfer", "n_half.transfer"];
    for ([start_up, peak, half], fit) in fits.into_iter().chain([(names, bulk.classic_of_transfer.as_ref())])
    {
        let Some(fit) = fit else { continue };
        let rate = (fit.R_inf.map(|rate| rate.value_bytes_per_s), fit.R_inf.and_then(|r| r.ci_bytes_per_s));
        figures.extend([
            figure(start_up, "ns", (Some(fit.T0_ns), fit.T0_ci_ns)),
            figure(peak, "bytes_per_s", rate),
            figure(half, "bytes", (fit.n_half_measured_bytes, fit.n_half_measured_ci_bytes)),
        ]);
    }
    figures
}

/// Returns the figures of each launch by itself. G has none, because a launch may give other segments.
/// Signatures have none, because they are not compared.
pub fn of_launches(bulk: &Bulk, size_bytes: usize) -> Vec<Vec<Figure>> {
    let of = |launch: &BulkLaunch| {
        let launch = BulkLaunch { signatures: Vec::new(), ..launch.clone() };
        extract(slice::from_ref(&launch), 0.95, 0.0)
    };
    bulk.launches
        .iter()
        .map(|launch| of(launch).map_or(Vec::new(), |own| figures(&own.found, size_bytes)))
        .collect()
}
