//! The ways to wait of each layer against each other, for the terminal.

use crate::cell::{self, quantity_cell};
use crate::completion::SIZE;
use crate::lines::Lines;
use netdyno_measure::completion::ways::Ways;
use netdyno_measure::record::Record;
use netdyno_measure::show::{Bytes, NONE};

/// Writes a table for each layer that `completion` measured in several ways.
pub fn write(lines: &mut Lines, record: &Record) {
    for ways in Ways::of(&record.results, record.options.confidence) {
        lines.rule();
        let title =
            format!("{}: half round trip over that of {}, paired by launch", ways.layer, ways.base.name);
        lines.wrapped(&title, "", "    ");
        let headings = ways.others.iter().map(|way| format!("{} / {}", way.name, ways.base.name));
        row(lines, "size", headings, "fastest");
        for bytes in ways.sizes() {
            let ratios = ways.others.iter().map(|way| quantity_cell(&ways.ratio(way, bytes)));
            row(lines, &Bytes(bytes).to_string(), ratios, &fastest(&ways, bytes));
        }
    }
}

/// Returns the fastest ways at a size; several if no interval tells them apart.
pub fn fastest(ways: &Ways<'_>, size_bytes: usize) -> String {
    let names = ways.fastest(size_bytes);
    if names.is_empty() { NONE.into() } else { names.join(" or ") }
}

fn row(lines: &mut Lines, name: &str, cells: impl Iterator<Item = String>, fastest: &str) {
    let cells: String = cells.map(|cell| format!("{cell:>width$}", width = cell::WIDTH)).collect();
    lines.row(&format!("  {name:<SIZE$}{cells}  {fastest}"), "  ", "    ");
}
