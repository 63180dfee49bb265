//! The figures of `onesided`, and its findings for the terminal.

use crate::cell::{self, cell, rate_from};
use crate::figure::Figure;
use crate::lines::Lines;
use netdyno_measure::onesided::data::{Level, Memory, OnesidedLaunch, Operation, Synchronisation};
use netdyno_measure::onesided::record::{Onesided, OperationFigures, TIMES, TransferTimes};
use netdyno_measure::record::Status;
use netdyno_measure::show::{Bytes, number_and_interval, time_and_interval};
use netdyno_measure::stats::median;

/// Widths of the columns: the size, and the bandwidth.
const SIZE: usize = 10;
const BANDWIDTH: usize = 12;

/// Writes all findings.
pub fn write(lines: &mut Lines, found: &Onesided) {
    for words in setting_in_words(found) {
        lines.wrapped(words, "  ", "    ");
    }
    found.operations.iter().for_each(|operation| block(lines, operation));
}

/// Returns the reliability level and the synchronisation in words, as far as the layer has them.
pub fn setting_in_words(found: &Onesided) -> impl Iterator<Item = &'static str> {
    let synchronisation = found.synchronisation.map(synchronisation_in_words);
    let memory = found.memory.map(memory_in_words);
    found.level.map(level_in_words).into_iter().chain(synchronisation).chain(memory)
}

/// Returns in words whose memory it is.
pub fn memory_in_words(memory: Memory) -> &'static str {
    match memory {
        Memory::Registered => "memory of the program, registered",
        Memory::Allocated => "memory that the library has allocated",
    }
}

/// Returns the synchronisation in words.
pub fn synchronisation_in_words(synchronisation: Synchronisation) -> &'static str {
    match synchronisation {
        Synchronisation::Lock => "locked for all processes",
        Synchronisation::Fence => "epochs between fences",
        Synchronisation::Post => "epochs on posted memory; remote includes the target's reply",
    }
}

/// Returns the reliability level in words.
pub fn level_in_words(level: Level) -> &'static str {
    match level {
        Level::Unreliable => "unreliable delivery",
        Level::Delivery => "reliable delivery",
        Level::Reception => "reliable reception",
    }
}

/// Returns the operation in words.
pub fn title(operation: Operation) -> &'static str {
    match operation {
        Operation::Put => "put",
        Operation::PutNotify => "put+notify",
        Operation::Get => "get",
        Operation::FetchAdd => "fetch+add",
    }
}

/// Writes a row for each size of an operation, and its G.
fn block(lines: &mut Lines, operation: &OperationFigures) {
    lines.blank();
    let headings = TIMES.map(str::to_owned);
    row(lines, title(operation.operation), &headings, "bandwidth");
    for size in &operation.sizes {
        let cells = size.times().map(|(_, time)| cell(time));
        row(lines, &Bytes(size.size_bytes).to_string(), &cells, &bandwidth(size));
    }
    if let Some(per_byte) = operation.G.value_ns_per_byte {
        let text = number_and_interval(per_byte, operation.G.ci_ns_per_byte);
        let bound = if operation.G.status == Status::UpperBound { "≤ " } else { "" };
        lines.wrapped(&format!("G {bound}{text} ns/B"), "  ", "    ");
    }
}

fn row(lines: &mut Lines, name: &str, cells: &[String; TIMES.len()], bandwidth: &str) {
    let cells: String = cells.iter().map(|cell| format!("{cell:>width$}", width = cell::WIDTH)).collect();
    let line = format!("  {name:<SIZE$}{cells}{bandwidth:>BANDWIDTH$}");
    lines.row(&line, "  ", "    ");
}

/// Returns the time until the smallest of each operation is complete, for the line of a stratum.
pub fn of_stratum(found: &Onesided) -> Vec<String> {
    let smallest = found.operations.iter().filter_map(|operation| {
        let size = operation.sizes.first()?;
        let (complete, bytes) = (size.complete(), Bytes(size.size_bytes));
        let time = time_and_interval(complete.value_ns?, complete.ci_ns);
        Some(format!("{} of {bytes} {time}", title(operation.operation)))
    });
    smallest.collect()
}

/// Returns the bandwidth of a stream in words.
pub fn bandwidth(size: &TransferTimes) -> String {
    rate_from(size.bandwidth(), &size.gap)
}

/// Returns the times of each operation by size, then its G.
pub fn figures(found: &Onesided) -> Vec<Figure> {
    found.operations.iter().flat_map(of_operation).collect()
}

fn of_operation(operation: &OperationFigures) -> Vec<Figure> {
    let names = compared(operation.operation);
    let of_size = |size: &TransferTimes| {
        let times = size.times().map(|(_, time)| time);
        std::array::from_fn::<_, { TIMES.len() }, _>(|nth| {
            Figure::time(names[nth], size.size_bytes, times[nth]).compared_as(names[nth])
        })
    };
    let per_byte = operation.sizes.last().map(|last| {
        let name = match operation.operation {
            Operation::Put => "put.G",
            Operation::PutNotify => "put_notify.G",
            Operation::Get => "get.G",
            Operation::FetchAdd => "fetch_add.G",
        };
        Figure::per_byte(name, last.size_bytes, &operation.G).compared_as(name)
    });
    operation.sizes.iter().flat_map(of_size).chain(per_byte).collect()
}

/// Returns the names of an operation's times, in the order of [`TIMES`].
fn compared(operation: Operation) -> [&'static str; TIMES.len()] {
    match operation {
        Operation::Put => ["put.start", "put.local", "put.remote", "put.gap"],
        Operation::PutNotify => {
            ["put_notify.start", "put_notify.local", "put_notify.remote", "put_notify.gap"]
        }
        Operation::Get => ["get.start", "get.local", "get.remote", "get.gap"],
        Operation::FetchAdd => ["fetch_add.start", "fetch_add.local", "fetch_add.remote", "fetch_add.gap"],
    }
}

/// Returns the times of each launch by itself.
pub fn of_launches(found: &Onesided) -> Vec<Vec<Figure>> {
    found.launches.iter().map(of_launch).collect()
}

fn of_launch(launch: &OnesidedLaunch) -> Vec<Figure> {
    let transfers = launch.shape.transfers.iter().zip(&launch.transfers);
    let figures = transfers.flat_map(|(shape, data)| {
        let batches = [&data.start_ns, &data.local_ns, &data.remote_ns, &data.gap_ns];
        let named = compared(shape.operation).into_iter().zip(batches);
        named.filter(|(_, batches)| !batches.is_empty()).map(|(name, batches)| {
            let value = Some(median(batches.iter().copied()));
            Figure::median(name, "ns", shape.size_bytes, (value, None), 1).compared_as(name)
        })
    });
    figures.collect()
}
