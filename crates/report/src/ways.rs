//! The ways to wait of each layer against each other, and the best time to spin before blocking, for the terminal.

use crate::cell::{self, quantity_cell};
use crate::completion::SIZE;
use crate::lines::Lines;
use netdyno_measure::completion::record::SpinTimes;
use netdyno_measure::completion::spin_time::NEAR;
use netdyno_measure::completion::ways::Ways;
use netdyno_measure::record::Record;
use netdyno_measure::show::{Bytes, NONE, number, percent, round_time};

/// The most ways in the columns of a table.
const COLUMNS: usize = 3;
/// The most ways that are named as the fastest ones.
const NAMED_AT_MOST: usize = 2;

/// Writes a table for each layer that `completion` measured in several ways.
pub fn write(lines: &mut Lines, record: &Record) {
    for ways in Ways::of(&record.results, record.options.confidence) {
        lines.rule();
        let title =
            format!("{}: half round trip over that of {}, paired by launch", ways.layer, ways.base.name);
        lines.wrapped(&title, "", "    ");
        let tables = ways.others.chunks(COLUMNS);
        let last = tables.len() - 1;
        for (nth, others) in tables.enumerate() {
            // The fastest way stands in the last table.
            let fastest = |bytes| if nth == last { fastest(&ways, bytes) } else { String::new() };
            let heading = if nth == last { "fastest" } else { "" };
            row(lines, "size", others.iter().map(|way| way.name.to_owned()), heading);
            for bytes in ways.sizes() {
                let ratios = others.iter().map(|way| quantity_cell(&ways.ratio(way, bytes)));
                row(lines, &Bytes(bytes).to_string(), ratios, &fastest(bytes));
            }
        }
    }
}

/// Writes the best time to spin of each layer.
pub fn write_spin_times(lines: &mut Lines, record: &Record) {
    if !record.spin_times.is_empty() {
        lines.rule();
    }
    record.spin_times.iter().for_each(|times| lines.wrapped(&spin_times(times), "", "    "));
}

/// Returns the best time to spin before blocking in a sentence.
pub fn spin_times(times: &SpinTimes) -> String {
    let SpinTimes { layer, polling, tried, .. } = times;
    let near = percent(NEAR - 1.0);
    let Some(best) = times.best() else {
        let longest = tried.last().map_or(NONE.into(), |spin| round_time(spin.spin_ns));
        return format!(
            "{layer}: no time to spin before blocking, of those up to {longest}, is within {near} of {polling} at the \
             smallest size, as far as the intervals tell"
        );
    };
    let reach = match best.near_to_bytes {
        Some(to) if to > best.from_bytes => format!("from {} to {}", Bytes(best.from_bytes), Bytes(to)),
        _ => format!("at {}", Bytes(best.from_bytes)),
    };
    let within = match best.near_ratio_at_most {
        Some(most) if most > 1.0 => format!("within {} % of {polling}", number(100.0 * (most - 1.0))),
        _ => format!("not slower than {polling}"),
    };
    let above = best.ratio_above.map_or(String::new(), |ratio| {
        format!(
            "; not shown to be within {near} above, where the largest ratio to {polling} is {}",
            number(ratio)
        )
    });
    let how = match best.spin_ns > 0.0 {
        true => format!("spin for {} before blocking", round_time(best.spin_ns)),
        false => "block at once".into(),
    };
    format!("{layer}: {how}: {reach} {within}{above}")
}

/// Returns the fastest ways at a size; several if no interval tells them apart.
pub fn fastest(ways: &Ways<'_>, size_bytes: usize) -> String {
    let names = ways.fastest(size_bytes);
    match names[..] {
        [] => NONE.into(),
        [first, ..] if names.len() > NAMED_AT_MOST => format!("{first} or {} others", names.len() - 1),
        _ => names.join(" or "),
    }
}

fn row(lines: &mut Lines, name: &str, cells: impl Iterator<Item = String>, fastest: &str) {
    let cells: String = cells.map(|cell| format!("{cell:>width$}", width = cell::WIDTH)).collect();
    lines.row(format!("  {name:<SIZE$}{cells}  {fastest}").trim_end(), "  ", "    ");
}
