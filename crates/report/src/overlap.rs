//! The findings of `overlap`, for the terminal and for CSV.

use crate::lines::{Lines, length};
use netdyno_measure::overlap::record::{Free, Overlap, PollPoint, Quantity, SizeOverlap, Trip, WorkPoint};
use netdyno_measure::record::{Parameter, Status};
use netdyno_measure::show::{NONE, Size, percent, rate, time, time_and_interval};
use netdyno_measure::stats::Interval;

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
    row(lines, "half round trip", &trips, |trip| value(&trip.half_rtt));
    row(lines, "one way", &trips, |trip| in_rate(&trip.bandwidth_bytes_per_s));
    for size in &overlap.sizes {
        lines.blank();
        lines.wrapped(&format!("{}: {}", Size(size.size_bytes), size.finding.text), "  ", "    ");
        of_size(lines, size, overlap.queue);
    }
}

fn of_size(lines: &mut Lines, size: &SizeOverlap, queue: usize) {
    if let Some(free) = &size.free {
        lines.wrapped(&free_work(free), "    ", "      ");
    }
    if !size.polling.is_empty() {
        let points: Vec<&PollPoint> = shown(&size.polling);
        row(lines, &format!("polling, queue {queue}"), &points, |p| in_time(&p.interval_ns));
        row(lines, "  available", &points, |p| in_percent(&p.availability));
        row(lines, "  bandwidth", &points, |p| in_rate(&p.bandwidth_bytes_per_s));
    }
    if !size.pww.is_empty() {
        let points: Vec<&WorkPoint> = shown(&size.pww);
        row(lines, "post, work, wait", &points, |p| in_time(&p.alone_ns));
        row(lines, "  post", &points, |p| in_time(&p.post_ns));
        row(lines, "  stolen from work", &points, |p| in_time(&p.stolen_ns));
        row(lines, "  wait", &points, |p| in_time(&p.wait_ns));
        row(lines, "  available", &points, |p| in_percent(&p.availability));
        row(lines, "  bandwidth", &points, |p| in_rate(&p.bandwidth_bytes_per_s));
    }
}

/// Describes the free work with its interval.
pub fn free_work(free: &Free) -> String {
    let number = |quantity: &Quantity| quantity.value.unwrap_or(f64::NAN);
    format!(
        "free work {}, {} of a cycle of {}",
        time_and_interval(number(&free.work_ns), free.work_ns.ci),
        in_percent(&free.share),
        in_time(&free.cycle_ns)
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
    if length(&line) <= lines.width {
        lines.push(&line);
    } else {
        lines.wrapped(line.trim_start(), "    ", "      ");
    }
}

fn value(p: &Parameter) -> String {
    p.value_ns.map_or(NONE.into(), time)
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

/// A figure for a row of CSV.
pub struct Figure {
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: &'static str,
    /// The size to which the figure belongs.
    pub size_bytes: usize,
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

/// Returns all figures for CSV. The name of a figure at an interval consists of the method, the quantity
/// and the number of the interval, as in `pww.wait.3`.
pub fn figures(overlap: &Overlap) -> Vec<Figure> {
    let mut figures = Vec::new();
    for trip in &overlap.trips {
        let p = &trip.half_rtt;
        figures.push(Figure {
            name: "half_rtt".into(),
            unit: "ns",
            size_bytes: trip.size_bytes,
            status: p.status,
            value: p.value_ns,
            ci: p.ci_ns,
            samples: p.samples,
            launches: p.launches,
        });
        figures.push(figure("one_way", "bytes_per_s", trip.size_bytes, &trip.bandwidth_bytes_per_s));
    }
    for size in &overlap.sizes {
        let bytes = size.size_bytes;
        for (nth, point) in size.polling.iter().enumerate() {
            let named = |name: &str, unit, quantity| {
                figure(&format!("polling.{name}.{}", nth + 1), unit, bytes, quantity)
            };
            figures.extend([
                named("interval", "ns", &point.interval_ns),
                named("availability", "ratio", &point.availability),
                named("bandwidth", "bytes_per_s", &point.bandwidth_bytes_per_s),
                named("others", "ratio", &point.others_share),
            ]);
        }
        for (nth, point) in size.pww.iter().enumerate() {
            let named = |name: &str, unit, quantity| {
                figure(&format!("pww.{name}.{}", nth + 1), unit, bytes, quantity)
            };
            figures.extend([
                named("alone", "ns", &point.alone_ns),
                named("post", "ns", &point.post_ns),
                named("work", "ns", &point.work_ns),
                named("wait", "ns", &point.wait_ns),
                named("stolen", "ns", &point.stolen_ns),
                named("availability", "ratio", &point.availability),
                named("bandwidth", "bytes_per_s", &point.bandwidth_bytes_per_s),
                named("others", "ns", &point.others_ns),
            ]);
        }
        if let Some(free) = &size.free {
            figures.push(figure("free.work", "ns", bytes, &free.work_ns));
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

fn figure(name: &str, unit: &'static str, size_bytes: usize, quantity: &Quantity) -> Figure {
    Figure {
        name: name.into(),
        unit,
        size_bytes,
        status: if quantity.value.is_some() { Status::Measured } else { Status::Unobservable },
        value: quantity.value,
        ci: quantity.ci,
        samples: quantity.launches as u64,
        launches: quantity.launches,
    }
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
