//! The figures of `overlap`, and its findings for the terminal.

use crate::figure::Figure;
use crate::lines::Lines;
use netdyno_measure::overlap::data::{OverlapLaunch, OverlapSizeData, ProgressBy};
use netdyno_measure::overlap::record::{Free, Overlap, PollPoint, Quantity, SizeOverlap, Trip, WorkPoint};
use netdyno_measure::show::{NONE, Size, percent, rate, time, time_and_interval};
use netdyno_measure::stats::median;
use std::borrow::Cow;

/// The name of the free work in comparisons.
pub(crate) const FREE_WORK: &str = "free_work";
/// The largest number of columns of a table. A table omits further columns from the middle.
const SHOWN: usize = 5;
/// Widths of the columns: the name of a row, and a figure.
const NAME: usize = 22;
const FIGURE: usize = 11;

/// Writes all findings.
pub fn write(lines: &mut Lines, overlap: &Overlap) {
    lines.blank();
    let trips: Vec<&Trip> = shown(&overlap.trips);
    row(lines, "messages of", &trips, |trip| Size(trip.size_bytes).to_string());
    row(lines, "half round trip", &trips, |trip| trip.half_rtt.value_ns.map_or(NONE.into(), time));
    row(lines, "one way", &trips, |trip| in_rate(&trip.bandwidth_bytes_per_s));
    if overlap.progress_by == ProgressBy::Thread {
        lines.wrapped("a thread of the layer makes progress as well, which the kernel wakes", "  ", "    ");
    }
    for size in &overlap.sizes {
        lines.blank();
        lines.wrapped(&format!("{}: {}", Size(size.size_bytes), size.finding.text), "  ", "    ");
        of_size(lines, size, overlap);
    }
}

fn of_size(lines: &mut Lines, size: &SizeOverlap, overlap: &Overlap) {
    if let Some(free) = &size.free {
        lines.wrapped(&free_work(free, overlap.batch), "    ", "      ");
    }
    if !size.polling.is_empty() {
        let points: Vec<&PollPoint> = shown(&size.polling);
        row(lines, &format!("polling, queue {}", overlap.queue), &points, |p| in_time(&p.interval_ns));
        row(lines, "  available", &points, |p| in_percent(&p.availability));
        row(lines, "  bandwidth", &points, |p| in_rate(&p.bandwidth_bytes_per_s));
    }
    if !size.pww.is_empty() {
        let points: Vec<&WorkPoint> = shown(&size.pww);
        let name = match overlap.batch {
            1 => "post, work, wait".into(),
            batch => format!("work with batch {batch}"),
        };
        row(lines, &name, &points, |p| in_time(&p.alone_ns));
        row(lines, "  post", &points, |p| in_time(&p.post_ns));
        row(lines, "  stolen from work", &points, |p| in_time(&p.stolen_ns));
        row(lines, "  wait", &points, |p| in_time(&p.wait_ns));
        row(lines, "  available", &points, |p| in_percent(&p.availability));
        row(lines, "  bandwidth", &points, |p| in_rate(&p.bandwidth_bytes_per_s));
    }
}

/// Describes the free work with its interval, and the number of messages in a cycle if there are several.
fn free_work(free: &Free, batch: usize) -> String {
    let number = |quantity: &Quantity| quantity.value.unwrap_or(f64::NAN);
    format!(
        "free work {}, {} of a cycle of {}{}",
        time_and_interval(number(&free.work_ns), free.work_ns.ci),
        in_percent(&free.share),
        in_time(&free.cycle_ns),
        if batch == 1 { String::new() } else { format!(" with batch {batch}") }
    )
}

/// Returns as many of `all` as a table shows, including the first and the last.
fn shown<T>(all: &[T]) -> Vec<&T> {
    let count = all.len().min(SHOWN);
    let at = |nth: usize| if count < 2 { 0 } else { nth * (all.len() - 1) / (count - 1) };
    (0..count).filter_map(|nth| all.get(at(nth))).collect()
}

fn row<T>(lines: &mut Lines, name: &str, points: &[&T], cell: impl Fn(&T) -> String) {
    let cells: String = points.iter().map(|&point| format!("{:>FIGURE$}", cell(point))).collect();
    let line = format!("    {name:<width$}{cells}", width = NAME - 4);
    lines.row(&line, "    ", "      ");
}

/// Returns a time, or a dash without one.
pub fn in_time(quantity: &Quantity) -> String {
    quantity.value.map_or(NONE.into(), time)
}

/// Returns a rate, or a dash without one.
pub fn in_rate(quantity: &Quantity) -> String {
    quantity.value.map_or(NONE.into(), rate)
}

/// Returns a share in percent, or a dash without one.
pub fn in_percent(quantity: &Quantity) -> String {
    quantity.value.map_or(NONE.into(), |share| percent((share * 1e3).round() / 1e3))
}

/// Returns all figures. The name of a figure at an interval consists of the method, the quantity and the
/// number of the interval, as in `pww.wait.3`.
pub fn figures(overlap: &Overlap) -> Vec<Figure> {
    let mut figures = Vec::new();
    for trip in &overlap.trips {
        let bytes = trip.size_bytes;
        figures.push(Figure::time("half_rtt", bytes, &trip.half_rtt).compared_as("half_rtt"));
        figures.push(figure("one_way", "bytes_per_s", bytes, &trip.bandwidth_bytes_per_s));
    }
    for size in &overlap.sizes {
        let bytes = size.size_bytes;
        for (nth, p) in size.polling.iter().enumerate() {
            let named = |name, unit, of| figure(format!("polling.{name}.{}", nth + 1), unit, bytes, of);
            figures.extend([
                named("interval", "ns", &p.interval_ns),
                named("availability", "ratio", &p.availability),
                named("bandwidth", "bytes_per_s", &p.bandwidth_bytes_per_s),
                named("others", "ratio", &p.others_share),
            ]);
        }
        for (nth, p) in size.pww.iter().enumerate() {
            let named = |name, unit, of| figure(format!("pww.{name}.{}", nth + 1), unit, bytes, of);
            figures.extend([
                named("alone", "ns", &p.alone_ns),
                named("post", "ns", &p.post_ns),
                named("work", "ns", &p.work_ns),
                named("wait", "ns", &p.wait_ns),
                named("stolen", "ns", &p.stolen_ns),
                named("availability", "ratio", &p.availability),
                named("bandwidth", "bytes_per_s", &p.bandwidth_bytes_per_s),
                named("others", "ns", &p.others_ns),
            ]);
        }
        if let Some(free) = &size.free {
            let work = figure("free.work", "ns", bytes, &free.work_ns);
            // A comparison does not know the batch, and different batches have different cycles.
            figures.push(if overlap.batch == 1 { work.compared_as(FREE_WORK) } else { work });
            figures.push(figure("free.share", "ratio", bytes, &free.share));
        }
        let finding = &size.finding;
        figures.extend([
            figure("hidden", "ratio", bytes, &finding.hidden_share),
            figure("calls", "ns", bytes, &finding.calls_ns),
            figure("stolen", "ns", bytes, &finding.stolen_ns),
            figure("others", "ns", bytes, &finding.others_ns),
        ]);
    }
    figures
}

fn figure(name: impl Into<Cow<'static, str>>, unit: &'static str, bytes: usize, of: &Quantity) -> Figure {
    Figure::median(name, unit, bytes, (of.value, of.ci), of.launches)
}

/// Returns the half round trips and the free work of each launch by itself.
pub fn of_launches(overlap: &Overlap) -> Vec<Vec<Figure>> {
    let figure = |name, bytes, ns| Figure::median(name, "ns", bytes, (Some(ns), None), 1).compared_as(name);
    let of = |launch: &OverlapLaunch| {
        let trips = launch.trips.iter();
        let trips = trips.map(|of| figure("half_rtt", of.size_bytes, median(of.half_rtt_ns.iter().copied())));
        let free = |of: &OverlapSizeData| Some(figure(FREE_WORK, of.size_bytes, of.knee.as_ref()?.free_ns));
        trips.chain(launch.sizes.iter().filter_map(free)).collect()
    };
    overlap.launches.iter().map(of).collect()
}

/// Returns a share with its interval, as `87 % [86.2, 88]`.
pub fn percent_and_interval(quantity: &Quantity) -> String {
    let percents = |share: f64| with_one_decimal(100.0 * share);
    match quantity.ci.filter(|_| quantity.value.is_some()) {
        Some(ci) => format!("{} [{}, {}]", in_percent(quantity), percents(ci.lo), percents(ci.hi)),
        None => in_percent(quantity),
    }
}

fn with_one_decimal(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(String::from).unwrap_or(text)
}
