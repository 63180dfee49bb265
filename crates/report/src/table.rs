//! A record as a table for a terminal, plain text.
//!
//! Each layer has a block: the parameters, each over its interval, then the round trips. Letters refer to the
//! doubts below. Below 80 characters of width each parameter has a line of its own.

use crate::breakdown;
use crate::bulk;
use crate::completion;
use crate::contention;
use crate::figure::in_words;
pub use crate::lines::{COLUMNS_FROM, WIDTH_AT_LEAST};
use crate::lines::{Lines, length};
use crate::logp;
use crate::memory;
use crate::notes::{Note, Notes, marks};
use crate::onesided;
use crate::overlap;
use crate::paper;
use crate::registration;
use crate::strata;
use crate::utilisation;
use crate::validation;
use crate::ways;
use netdyno_measure::record::{
    Environment, Found, LayerResult, Options, Parameter, Ratio, Record, Status, TIMES,
};
use netdyno_measure::show::{counted, number_and_interval, percent, time_interval};

/// Six columns and an indent fill 80 characters.
const COLUMN: usize = 13;
const INDENT: usize = 2;
/// An interval ends one character before the end of its column, so that two intervals do not touch.
const INTERVAL: usize = 12;
/// A value ends here, which leaves room for the letter of a doubt.
const VALUE: usize = 10;

/// Returns the table, ended by a line feed. No line is longer than `width`, or than [`WIDTH_AT_LEAST`] if
/// that is more.
pub fn render(record: &Record, width: usize) -> String {
    let notes = Notes::of(std::slice::from_ref(record));
    let mut lines = Lines::of(width);
    lines.wrapped(&machine(record), "", "");
    if let Some(environment) = &record.peer_environment {
        lines.wrapped(&peer(environment), "", "");
    }
    lines.wrapped(&asked_for(&record.options), "", "");
    lines.blank();
    if record.results.is_empty() {
        lines.wrapped("no layer was measured", "", "");
    }
    if lines.width >= COLUMNS_FROM && record.results.iter().any(has_parameters) {
        lines.push(&columns(TIMES.map(|name| format!("{name:>VALUE$}"))));
        lines.rule();
    }
    for (at, result) in record.results.iter().enumerate() {
        if at > 0 {
            lines.blank();
        }
        layer(&mut lines, &notes, at, result, &record.ratios);
    }
    memory::write_comparison(&mut lines, record);
    ways::write(&mut lines, record);
    ways::write_spin_times(&mut lines, record);
    // The table of accesses has its ratios.
    if record.results.iter().all(|result| result.found.memory().is_none()) {
        ratios(&mut lines, &record.ratios);
    }
    doubts(&mut lines, &notes, record);
    verdicts(&mut lines, record);
    of_paper(&mut lines, record);
    lines.text
}

/// Writes the verdict of each layer that was measured by size.
fn verdicts(lines: &mut Lines, record: &Record) {
    let sized: Vec<_> =
        record.results.iter().filter_map(|result| Some((result.name(), result.found.bulk()?))).collect();
    if sized.is_empty() {
        return;
    }
    lines.rule();
    for (name, bulk) in sized {
        lines.wrapped(&format!("{name}: {}", bulk::verdict(bulk)), "", "    ");
    }
}

/// Writes what the repetition of a paper's experiment says.
fn of_paper(lines: &mut Lines, record: &Record) {
    let sentences = paper::sentences(record);
    if !sentences.is_empty() {
        lines.rule();
    }
    sentences.iter().for_each(|sentence| lines.wrapped(sentence, "", "    "));
}

fn layer(lines: &mut Lines, notes: &Notes<'_>, at: usize, result: &LayerResult, ratios: &[Ratio]) {
    let about_layer = marks(&notes.elsewhere(0, at, &TIMES));
    let title = format!("{}  {}  {about_layer}", result.name(), circumstances(result));
    lines.wrapped(title.trim_end(), "", "    ");
    if has_parameters(result) {
        parameters(lines, notes, at, result);
    }
    strata::lines(result).iter().for_each(|line| lines.wrapped(line, "  ", "    "));
    found(lines, result, ratios);
}

/// Reports whether a result has parameters: registration and one-sided operations send no message that a receiver
/// handles. Breakdown has its own. Completion times whole round trips and streams alone, and utilisation counts
/// processor time.
fn has_parameters(result: &LayerResult) -> bool {
    !matches!(
        result.found,
        Found::Breakdown(_)
            | Found::Completion(_)
            | Found::Registration(_)
            | Found::Memory(_)
            | Found::Onesided(_)
            | Found::Utilisation(_)
    )
}

fn parameters(lines: &mut Lines, notes: &Notes<'_>, at: usize, result: &LayerResult) {
    let cells = result.parameters.times().map(|(name, p)| Cell {
        value: in_words(p),
        interval: interval(p),
        marks: marks(&notes.about(0, at, name, None)),
    });
    if lines.width >= COLUMNS_FROM {
        lines.push(&columns(cells.each_ref().map(Cell::first_line)));
        lines.push(&columns(cells.map(|cell| format!("{:>INTERVAL$}", cell.interval))));
    } else {
        for (name, cell) in TIMES.iter().zip(&cells) {
            let line = format!("{name:<6} {:>10}  {:<12} {}", cell.value, cell.interval, cell.marks);
            lines.wrapped(line.trim_end(), "  ", "    ");
        }
    }
}

/// Writes the findings of the verb beside the parameters.
fn found(lines: &mut Lines, result: &LayerResult, ratios: &[Ratio]) {
    match &result.found {
        Found::Logp(found) => logp::write(lines, result, found, ratios),
        Found::Breakdown(found) => breakdown::write(lines, found),
        Found::Bulk(found) => bulk::write(lines, found),
        Found::Completion(found) => completion::write(lines, found),
        Found::Contention(found) => contention::write(lines, found),
        Found::Memory(found) => memory::write(lines, found),
        Found::Onesided(found) => onesided::write(lines, found),
        Found::Overlap(found) => overlap::write(lines, found),
        Found::Registration(found) => registration::write(lines, found),
        Found::Utilisation(found) => utilisation::write(lines, found),
        Found::Validate(found) => validation::write(lines, found),
    }
}

/// A figure in the table.
struct Cell {
    value: String,
    interval: String,
    marks: String,
}

impl Cell {
    /// Returns the value with its letters behind it. Many letters push the value to the left.
    fn first_line(&self) -> String {
        if self.marks.is_empty() {
            return format!("{:>VALUE$}", self.value);
        }
        let room = COLUMN.saturating_sub(length(&self.value) + 1);
        let marks = if length(&self.marks) > room { "…" } else { &self.marks };
        let text = format!("{} {marks}", self.value);
        let end = (VALUE + 1 + length(marks)).min(COLUMN);
        format!("{text:>end$}")
    }
}

fn columns(cells: [String; TIMES.len()]) -> String {
    let row: String = cells.iter().map(|cell| format!("{cell:<COLUMN$}")).collect();
    format!("{:INDENT$}{}", "", row.trim_end())
}

fn interval(p: &Parameter) -> String {
    match (p.status, p.value_ns, p.ci_ns) {
        (Status::Measured | Status::UpperBound, Some(ns), Some(ci)) => time_interval(ns, ci, INTERVAL),
        _ => String::new(),
    }
}

/// Returns the circumstances in which a layer was measured.
fn circumstances(result: &LayerResult) -> String {
    let mut parts: Vec<String> = result.behind().collect();
    parts.extend(has_parameters(result).then(|| format!("{} B", result.size_bytes)));
    parts.push(result.wait.clone());
    if !result.cpus.is_empty() {
        let cpus: Vec<String> = result.cpus.iter().map(usize::to_string).collect();
        let distance = result.distance.as_ref().map(|text| format!(" ({text})")).unwrap_or_default();
        let noun = if cpus.len() == 1 { "CPU" } else { "CPUs" };
        let cpus = if cpus.len() > 2 { in_turn(&cpus) } else { cpus.join(" and ") };
        parts.push(format!("{noun} {cpus}{distance}"));
    }
    parts.push(launches(result));
    parts.join(", ")
}

/// Returns the number of launches behind the figures, and their stratum.
fn launches(result: &LayerResult) -> String {
    let all: usize = result.strata.iter().map(|stratum| stratum.launches).sum();
    match result.headline().filter(|_| result.is_split()) {
        Some(headline) => format!("{} of {all} launches, {}", result.launches(), headline.name),
        None => counted(result.launches(), "launch", "launches"),
    }
}

/// Returns the processors by rank, as `0, 1 in turn` if they repeat.
pub(crate) fn in_turn(cpus: &[String]) -> String {
    let again = cpus.iter().skip(1).position(|cpu| *cpu == cpus[0]).map_or(cpus.len(), |at| at + 1);
    let turn = cpus[..again].join(", ");
    let comes_again = again < cpus.len() && cpus.iter().zip(cpus.iter().skip(again)).all(|(a, b)| a == b);
    match comes_again {
        true => format!("{turn} in turn"),
        false => cpus.join(", "),
    }
}

fn machine(record: &Record) -> String {
    let parts = [format!("netdyno {}", record.version), described(&record.environment)];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

fn peer(environment: &Environment) -> String {
    let described = described(environment);
    let colon = if described.is_empty() { "" } else { ": " };
    format!("with {}{colon}{described}", environment.host)
}

fn described(environment: &Environment) -> String {
    let Environment { cpu_model, kernel, virtualised, .. } = environment;
    let model = cpu_model.replace("(R)", "").replace("(TM)", "").replace(" CPU", "");
    let machine = if *virtualised { "virtual machine" } else { "" };
    let parts = [model, kernel.clone(), machine.into()];
    let known: Vec<String> = parts.into_iter().filter(|part| !part.trim().is_empty()).collect();
    known.join(", ")
}

fn asked_for(options: &Options) -> String {
    format!(
        "medians over launches, {} intervals, precision asked for ±{}",
        percent(options.confidence),
        percent(options.precision)
    )
}

/// Writes the ratios between layers, except those that stand with their layer.
fn ratios(lines: &mut Lines, ratios: &[Ratio]) {
    let ratios: Vec<&Ratio> = ratios.iter().filter(|ratio| !ratio.to_reference).collect();
    if ratios.is_empty() {
        return;
    }
    lines.rule();
    let pair = |ratio: &Ratio| format!("{} / {}", ratio.numerator, ratio.denominator);
    let longest = ratios.iter().map(|ratio| length(&pair(ratio))).max().unwrap_or(0);
    let parameter = ratios.iter().map(|ratio| length(&ratio.parameter)).max().unwrap_or(0);
    for ratio in ratios {
        let figures = number_and_interval(ratio.value, ratio.ci);
        let text = format!("{:<longest$}  {:<parameter$}  {figures}", pair(ratio), ratio.parameter);
        lines.wrapped(&text, "", "    ");
    }
}

fn doubts(lines: &mut Lines, notes: &Notes<'_>, record: &Record) {
    if notes.all().is_empty() {
        return;
    }
    lines.rule();
    for note in notes.all() {
        let text = format!("{}: {}", concern(note, record), note.doubt.text);
        lines.wrapped(&text, &format!("{:<3}", note.mark()), "   ");
    }
}

/// Returns the subject of a doubt.
fn concern(note: &Note<'_>, record: &Record) -> String {
    let layer = note.layer().and_then(|at| record.results.get(at)).map(LayerResult::name);
    match (layer, note.figure()) {
        (Some(layer), Some(figure)) => format!("{figure} of {layer}"),
        (Some(layer), None) => layer,
        (None, Some(figure)) => figure,
        (None, None) => "this run".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_take_their_place_from_the_value() {
        let cell = |value: &str, marks: &str| {
            Cell { value: value.into(), interval: String::new(), marks: marks.into() }.first_line()
        };
        assert_eq!(cell("71.2 ns", ""), "   71.2 ns");
        assert_eq!(cell("71.2 ns", "a"), "   71.2 ns a");
        assert_eq!(cell("71.2 ns", "abcd"), " 71.2 ns abcd");
        assert_eq!(cell("≤ -71.2 ns", "a,aa,ab"), "≤ -71.2 ns …");
    }
}
