//! The figures of `completion`, and its findings for the terminal.

use crate::cell::{self, cell, quantity_cell, rate_from};
use crate::figure::Figure;
use crate::lines::Lines;
use netdyno_measure::completion::data::CompletionLaunch;
use netdyno_measure::completion::peak::PeakSource;
use netdyno_measure::completion::record::{COMPLETION_TIMES, Completion, CompletionTimes};
use netdyno_measure::overlap::record::Quantity;
use netdyno_measure::record::{Parameter, Status};
use netdyno_measure::show::{Bytes, NONE, rate, time, time_and_interval};
use netdyno_measure::stats::{Interval, median};

/// Widths of the columns: the size, the bandwidth, its share of the peak, and the ideal time.
pub const SIZE: usize = 10;
const BANDWIDTH: usize = 12;
const IDEAL: usize = 9;
/// The name of the bandwidth over the peak.
const SHARE: &str = "share_of_peak";
/// Headings of the times, in the order of [`COMPLETION_TIMES`].
pub const HEADINGS: [&str; COMPLETION_TIMES.len()] = ["half rtt", "per message"];

/// Writes a row for each size, and the peak.
pub fn write(lines: &mut Lines, found: &Completion) {
    lines.blank();
    let headings = HEADINGS.map(str::to_owned);
    row(lines, ["size", "bandwidth", "of peak", "ideal"].map(str::to_owned), &headings);
    for size in &found.sizes {
        let share = quantity_cell(&size.share_of_peak);
        let cells = [Bytes(size.size_bytes).to_string(), bandwidth(size), share, ideal(size)];
        row(lines, cells, &size.times().map(|(_, time)| cell(time)));
    }
    lines.wrapped(&peak(found), "  ", "    ");
}

fn row(lines: &mut Lines, [size, bandwidth, share, ideal]: [String; 4], times: &[String]) {
    let times: String = times.iter().map(|cell| format!("{cell:>width$}", width = cell::WIDTH)).collect();
    let width = cell::WIDTH;
    let line = format!("  {size:<SIZE$}{times}{bandwidth:>BANDWIDTH$} {share:>width$} {ideal:>IDEAL$}");
    lines.row(&line, "  ", "    ");
}

/// Returns the peak with its source, in words; the reason, if no peak is known.
pub fn peak(found: &Completion) -> String {
    let how = &found.peak.how;
    match (found.peak.source, found.peak.peak_bytes_per_s) {
        (PeakSource::Unknown, _) if how.is_empty() => "peak: not recorded".into(),
        (PeakSource::Unknown, _) => format!("peak unknown: {how}"),
        (_, Some(peak)) => format!("peak: {}, {how}", rate(peak)),
        (_, None) => format!("peak: {how}"),
    }
}

/// Returns the time of a message at the peak, in words.
pub fn ideal(size: &CompletionTimes) -> String {
    size.ideal_ns().map_or(NONE.into(), time)
}

/// Returns the bandwidth of a stream in words.
pub fn bandwidth(size: &CompletionTimes) -> String {
    rate_from(size.bandwidth(), &size.per_message)
}

/// Returns the half round trip of the smallest and of the largest message, for the line of a stratum.
pub fn of_stratum(found: &Completion) -> Vec<String> {
    let ends = found.sizes.first().into_iter().chain(found.sizes.last());
    let half_rtt = ends.filter_map(|size| {
        let time = time_and_interval(size.half_rtt.value_ns?, size.half_rtt.ci_ns);
        Some(format!("half rtt of {} {time}", Bytes(size.size_bytes)))
    });
    half_rtt.collect()
}

/// Returns the times of each size, its bandwidth, and its peak.
pub fn figures(found: &Completion) -> Vec<Figure> {
    found.sizes.iter().flat_map(of_size).collect()
}

fn of_size(size: &CompletionTimes) -> Vec<Figure> {
    let times = size.times().map(|(name, time)| Figure::time(name, size.size_bytes, time).compared_as(name));
    let of_peak = |name, unit, of: &Quantity| {
        Figure::median(name, unit, size.size_bytes, (of.value, of.ci), of.launches)
    };
    let share = of_peak(SHARE, "ratio", &size.share_of_peak).compared_as(SHARE);
    let peak = of_peak("peak", "bytes_per_s", &size.peak_bytes_per_s);
    times.into_iter().chain([of_bandwidth(size), peak, share]).collect()
}

/// Returns the bandwidth: measured as far as the time for each message is. An upper bound of that time is a lower
/// bound of the bandwidth, which has no status of its own: it has no value then.
fn of_bandwidth(size: &CompletionTimes) -> Figure {
    let Parameter { status, ci_ns, samples, launches, .. } = &size.per_message;
    let value = size.bandwidth().filter(|_| *status == Status::Measured);
    let bytes = size.size_bytes as f64 * 1e9;
    let ci = ci_ns.filter(|ci| ci.lo > 0.0).map(|ci| Interval { lo: bytes / ci.hi, hi: bytes / ci.lo });
    let ci = ci.filter(|_| value.is_some());
    let figure = Figure::median("bandwidth", "bytes_per_s", size.size_bytes, (value, ci), *launches);
    Figure { samples: *samples, ..figure }
}

/// Returns the times of each launch by itself, and its share of the peak.
pub fn of_launches(found: &Completion) -> Vec<Vec<Figure>> {
    found.launches.iter().map(of_launch).collect()
}

fn of_launch(launch: &CompletionLaunch) -> Vec<Figure> {
    let sizes = launch.shape.sizes.iter().zip(&launch.sizes).enumerate();
    let figures = sizes.flat_map(|(at, (shape, data))| {
        let figure = |name, unit, value| {
            Figure::median(name, unit, shape.size_bytes, (Some(value), None), 1).compared_as(name)
        };
        let batches = [&data.half_rtt_ns, data.per_message_ns()];
        let named = COMPLETION_TIMES.into_iter().zip(batches);
        let times = named.filter(|(_, batches)| !batches.is_empty());
        let times = times.map(|(name, batches)| figure(name, "ns", median(batches.iter().copied())));
        let share = launch.share_of_peak(at).map(|share| figure(SHARE, "ratio", share));
        times.chain(share).collect::<Vec<_>>()
    });
    figures.collect()
}
