//! The figures of `registration`, and its findings for the terminal.

use crate::cell::{self, cell};
use crate::figure::Figure;
use crate::lines::Lines;
use netdyno_measure::registration::data::RegionData;
use netdyno_measure::registration::record::{Registration, SizeCosts};
use netdyno_measure::show::Bytes;
use netdyno_measure::stats::median;

/// Width of the column of sizes.
const SIZE: usize = 8;

/// The operations on a region, as headings.
pub const HEADINGS: [&str; 8] =
    ["first touch", "touched", "again", "cached", "deregister", "mlock, first", "mlock", "munlock"];
/// The number of operations of the layer; the others are those of the operating system.
pub const OF_LAYER: usize = 5;

/// Writes all findings.
pub fn write(lines: &mut Lines, registration: &Registration) {
    block(lines, "register", registration, 0..OF_LAYER);
    block(lines, "lock", registration, OF_LAYER..HEADINGS.len());
    if !registration.fixed.is_empty() {
        lines.blank();
        for fixed in &registration.fixed {
            lines.wrapped(&format!("{} {}", fixed.name, cell(&fixed.cost)), "  ", "    ");
        }
    }
}

/// Writes a row for each size, with a range of the costs.
fn block(lines: &mut Lines, title: &str, registration: &Registration, costs: std::ops::Range<usize>) {
    lines.blank();
    row(lines, title, HEADINGS[costs.clone()].iter().map(|heading| (*heading).into()));
    for size in &registration.sizes {
        let cells = size.times().map(|(_, cost)| cell(cost));
        row(lines, &Bytes(size.size_bytes).to_string(), cells[costs.clone()].iter().cloned());
    }
}

fn row(lines: &mut Lines, name: &str, cells: impl Iterator<Item = String>) {
    let cells: String = cells.map(|cell| format!("{cell:>width$}", width = cell::WIDTH)).collect();
    let line = format!("  {name:<SIZE$}{cells}");
    lines.row(&line, "  ", "    ");
}

/// Returns the cost of each operation by size, then the costs that do not depend on the size.
pub fn figures(registration: &Registration, size_bytes: usize) -> Vec<Figure> {
    let of_size = |size: &SizeCosts| {
        size.times().map(|(name, cost)| Figure::time(name, size.size_bytes, cost).compared_as(name))
    };
    let fixed = registration.fixed.iter();
    let fixed = fixed.map(|fixed| Figure::time(format!("fixed.{}", fixed.name), size_bytes, &fixed.cost));
    registration.sizes.iter().flat_map(of_size).chain(fixed).collect()
}

/// Returns the costs of each launch by itself.
pub fn of_launches(registration: &Registration) -> Vec<Vec<Figure>> {
    let Some(names) = registration.sizes.first().map(|size| size.times().map(|(name, _)| name)) else {
        return Vec::new();
    };
    let of_size = |size: &RegionData| {
        let medians = size.batches().map(|batches| median(batches.iter().copied()));
        let figure = |(name, ns): (&'static str, f64)| {
            Figure::median(name, "ns", size.size_bytes, (Some(ns), None), 1).compared_as(name)
        };
        names.into_iter().zip(medians).map(figure).collect::<Vec<_>>()
    };
    registration.launches.iter().map(|launch| launch.sizes.iter().flat_map(of_size).collect()).collect()
}
