//! The figures of `completion`, and its findings for the terminal.

use crate::cell::{self, cell};
use crate::figure::Figure;
use crate::lines::Lines;
use netdyno_measure::completion::data::CompletionLaunch;
use netdyno_measure::completion::record::{COMPLETION_TIMES, Completion, CompletionTimes};
use netdyno_measure::record::{Parameter, Status};
use netdyno_measure::show::{Bytes, NONE, rate, time_and_interval};
use netdyno_measure::stats::{Interval, median};

/// Widths of the columns: the size, and the bandwidth.
pub const SIZE: usize = 10;
const BANDWIDTH: usize = 12;
/// Headings of the times, in the order of [`COMPLETION_TIMES`].
pub const HEADINGS: [&str; COMPLETION_TIMES.len()] = ["half rtt", "per message"];

/// Writes a row for each size.
pub fn write(lines: &mut Lines, found: &Completion) {
    lines.blank();
    row(lines, "size", &HEADINGS.map(str::to_owned), "bandwidth");
    for size in &found.sizes {
        let cells = size.times().map(|(_, time)| cell(time));
        row(lines, &Bytes(size.size_bytes).to_string(), &cells, &bandwidth(size));
    }
}

fn row(lines: &mut Lines, name: &str, cells: &[String], bandwidth: &str) {
    let cells: String = cells.iter().map(|cell| format!("{cell:>width$}", width = cell::WIDTH)).collect();
    let line = format!("  {name:<SIZE$}{cells}{bandwidth:>BANDWIDTH$}");
    lines.row(&line, "  ", "    ");
}

/// Returns the bandwidth of a stream in words.
pub fn bandwidth(size: &CompletionTimes) -> String {
    size.bandwidth().map_or(NONE.into(), rate)
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

/// Returns the times of each size, and its bandwidth.
pub fn figures(found: &Completion) -> Vec<Figure> {
    found.sizes.iter().flat_map(of_size).collect()
}

fn of_size(size: &CompletionTimes) -> Vec<Figure> {
    let times = size.times().map(|(name, time)| Figure::time(name, size.size_bytes, time).compared_as(name));
    times.into_iter().chain([of_bandwidth(size)]).collect()
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

/// Returns the times of each launch by itself.
pub fn of_launches(found: &Completion) -> Vec<Vec<Figure>> {
    found.launches.iter().map(of_launch).collect()
}

fn of_launch(launch: &CompletionLaunch) -> Vec<Figure> {
    let sizes = launch.shape.sizes.iter().zip(&launch.sizes);
    let figures = sizes.flat_map(|(shape, data)| {
        let batches = [&data.half_rtt_ns, data.per_message_ns()];
        let named = COMPLETION_TIMES.into_iter().zip(batches);
        named.filter(|(_, batches)| !batches.is_empty()).map(|(name, batches)| {
            let value = Some(median(batches.iter().copied()));
            Figure::median(name, "ns", shape.size_bytes, (value, None), 1).compared_as(name)
        })
    });
    figures.collect()
}
