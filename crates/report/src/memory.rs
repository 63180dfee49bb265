//! The accesses of `memory` for the terminal: a table with a column for each layer. The figures of the verb.

use crate::cell::{self, cell, quantity_cell};
use crate::figure::Figure;
use crate::lines::Lines;
use crate::onesided::setting_in_words;
use netdyno_measure::memory::ratio::{launch_time_ns, parameter};
use netdyno_measure::memory::record::{Access, Pace, RemoteMemory, accesses};
use netdyno_measure::onesided::data::Operation;
use netdyno_measure::overlap::record::Quantity;
use netdyno_measure::record::{LayerResult, Ratio, Record};
use netdyno_measure::show::{Bytes, NONE, time_and_interval};

/// Width of the column of accesses.
const ACCESS: usize = 30;

/// A result of the verb.
type Measured<'a> = (&'a LayerResult, &'a RemoteMemory);

/// Writes how the layer reaches memory. The figures are in the table of all layers.
pub fn write(lines: &mut Lines, found: &RemoteMemory) {
    for words in setting_in_words(found) {
        lines.wrapped(words, "  ", "    ");
    }
}

/// Writes the accesses as rows and the layers as columns, in as many tables as the width asks for.
pub fn write_comparison(lines: &mut Lines, record: &Record) {
    let all: Vec<Measured<'_>> =
        record.results.iter().filter_map(|result| Some((result, result.found.memory()?))).collect();
    let Some((first, others)) = all.split_first() else { return };
    let columns = lines.width.saturating_sub(ACCESS) / cell::WIDTH;
    // Every table has the first layer, which the ratios are to.
    let tables = others.chunks(columns.saturating_sub(1).max(1));
    let tables: Vec<Vec<Measured<'_>>> = match others {
        [] => vec![vec![*first]],
        _ => tables.map(|others| [&[*first], others].concat()).collect(),
    };
    for layers in tables {
        lines.rule();
        table(lines, &layers, &record.ratios);
    }
    if !others.is_empty() {
        let name = first.0.name();
        lines.wrapped(&format!("below each time: its ratio to that of {name}, paired by launch"), "", "    ");
    }
}

fn table(lines: &mut Lines, layers: &[Measured<'_>], ratios: &[Ratio]) {
    row(lines, "", layers.iter().map(|(result, _)| result.name()));
    for access in accesses(layers.iter().map(|(_, found)| *found)) {
        let times = layers.iter().map(|(_, found)| found.time(access).map_or(NONE.into(), cell));
        row(lines, &title(access), times);
        let of_layer = |result: &LayerResult| ratio(ratios, &result.name(), access);
        if layers.iter().any(|(result, _)| of_layer(result).is_some()) {
            row(
                lines,
                "",
                layers.iter().map(|(result, _)| of_layer(result).map_or(String::new(), ratio_cell)),
            );
        }
    }
}

/// Returns the ratio of a layer's access to that of the first layer.
pub fn ratio<'a>(ratios: &'a [Ratio], layer: &str, access: Access) -> Option<&'a Ratio> {
    let parameter = parameter(access);
    ratios.iter().find(|ratio| ratio.numerator == layer && ratio.parameter == parameter)
}

fn ratio_cell(ratio: &Ratio) -> String {
    quantity_cell(&Quantity { value: Some(ratio.value), ci: ratio.ci, launches: ratio.pairs })
}

fn row(lines: &mut Lines, name: &str, cells: impl Iterator<Item = String>) {
    let cells: String = cells.map(|cell| format!("{cell:>width$}", width = cell::WIDTH)).collect();
    lines.row(&format!("{name:<ACCESS$}{cells}"), "", "    ");
}

/// Returns an access in words.
pub fn title(Access { operation, size_bytes, pace }: Access) -> String {
    let size = Bytes(size_bytes);
    match (operation, pace) {
        (Operation::Get, Pace::Blocking) => format!("read {size}"),
        (Operation::Get, Pace::Pipelined) => format!("read {size}, pipelined"),
        (Operation::FetchAdd, Pace::Blocking) => format!("fetch+add {size}"),
        (Operation::FetchAdd, Pace::Pipelined) => format!("fetch+add {size}, pipelined"),
        (Operation::Put, Pace::Blocking) => format!("write {size}"),
        (Operation::Put, Pace::Pipelined) => format!("store {size}, one way"),
        (Operation::PutNotify, Pace::Blocking) => format!("write {size}, told"),
        (Operation::PutNotify, Pace::Pipelined) => format!("write {size}, told, pipelined"),
    }
}

/// Returns the times of a word, for the line of a stratum.
pub fn of_stratum(found: &RemoteMemory) -> Vec<String> {
    let blocking = found.rows().into_iter().filter(|(access, _)| access.pace == Pace::Blocking);
    let words = blocking.filter_map(|(access, time)| {
        Some(format!("{} {}", title(access), time_and_interval(time.value_ns?, time.ci_ns)))
    });
    words.collect()
}

/// Returns the time of each access.
pub fn figures(found: &RemoteMemory) -> Vec<Figure> {
    let of_row = |(access, time): (Access, _)| {
        Figure::time(access.name(), access.size_bytes, time).compared_as(access.name())
    };
    found.rows().into_iter().map(of_row).collect()
}

/// Returns the times of each launch by itself.
pub fn of_launches(found: &RemoteMemory) -> Vec<Vec<Figure>> {
    let rows = found.rows();
    let of_launch = |launch| {
        let figures = rows.iter().filter_map(|&(access, _)| {
            let value = Some(launch_time_ns(launch, access)?);
            let median = Figure::median(access.name(), "ns", access.size_bytes, (value, None), 1);
            Some(median.compared_as(access.name()))
        });
        figures.collect()
    };
    found.launches.iter().map(of_launch).collect()
}
