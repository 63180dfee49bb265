//! The figures of `contention`, and its lines below a layer's parameters in a table.

use crate::figure::{Figure, times};
use crate::lines::Lines;
use crate::logp::plateau;
use netdyno_measure::contention::extract::extract;
use netdyno_measure::contention::places::Bisected;
use netdyno_measure::contention::record::{Bisection, Compared, Contention, ManyToOne, Quotient, Rate};
use netdyno_measure::record::Parameter;
use netdyno_measure::show::{NONE, counted, number_and_interval, per_second, time, time_and_interval};
use std::slice;

/// The largest number of counts of requesters that each get a line. With more counts only powers of two and
/// the last one do.
const LINES_AT_MOST: usize = 8;

/// Writes all findings.
pub fn write(lines: &mut Lines, found: &Contention) {
    for line in plain_lines(found) {
        let indent = if line.starts_with("  ") { "    " } else { "  " };
        lines.wrapped(&line, indent, "      ");
    }
}

/// Returns the lines. Those of tables begin with two blanks.
fn plain_lines(found: &Contention) -> Vec<String> {
    let mut lines = vec![format!(
        "{}; above: ranks 0 and 1 alone; ratios are paired by launch",
        counted(found.procs, "process", "processes")
    )];
    lines.push(round_trips(found));
    lines.extend(halves(found));
    lines.extend(many_to_one(found));
    lines.push(one_to_many(found));
    lines.extend(rates(&found.rates));
    lines.extend(found.bisection.as_ref().map(bisection));
    lines
}

/// Describes the shortest and the longest round trip.
fn round_trips(found: &Contention) -> String {
    let pairs = &found.pairs;
    format!(
        "round trips, one pair at a time: {} ({} → {}) to {} ({} → {}), longest / shortest {}",
        shown(&pairs.least.rtt),
        pairs.least.requester,
        pairs.least.replier,
        shown(&pairs.most.rtt),
        pairs.most.requester,
        pairs.most.replier,
        ratio(Some(pairs.most_over_least)),
    )
}

fn halves(found: &Contention) -> Vec<String> {
    let pairs = counted(found.halves.pairs, "pair", "pairs");
    let mut lines = vec![format!("{pairs} at once, ranks 0 and 1 among them:")];
    lines.push(format!("  {:<5}{:>9} {:>9}  {:<22} crowd - alone", "of", "alone", "crowd", "crowd / alone"));
    lines.extend(found.halves.compared.iter().map(|compared| {
        let Compared { parameter, alone, crowd, .. } = compared;
        let difference = compared.difference_ns;
        let difference = if difference.launches > 0 {
            time_and_interval(difference.value, difference.ci)
        } else {
            NONE.into()
        };
        format!(
            "  {parameter:<5}{:>9} {:>9}  {:<22} {difference}",
            shown(alone),
            shown(crowd),
            ratio(compared.ratio)
        )
    }));
    lines
}

/// Returns a time without its interval.
fn shown(parameter: &Parameter) -> String {
    parameter.value_ns.map_or(NONE.into(), time)
}

/// Returns a ratio with its interval.
pub fn ratio(quotient: Option<Quotient>) -> String {
    match quotient {
        Some(quotient) if quotient.launches > 0 => number_and_interval(quotient.value, quotient.ci),
        _ => NONE.into(),
    }
}

fn many_to_one(found: &Contention) -> Vec<String> {
    let mut lines = vec!["K requesters to one replier:".into()];
    lines
        .push(format!("  {:<3} {:>9}  {:<22} {:>5}  slowest / fastest", "K", "g(K)", "g(K) / g(1)", "model"));
    lines.extend(chosen(&found.many_to_one).map(|at| {
        format!(
            "  {:<3} {:>9}  {:<22} {:>5}  {}",
            at.requesters,
            shown(&at.gap),
            ratio(Some(at.ratio)),
            at.model,
            ratio(Some(at.slowest_over_fastest))
        )
    }));
    lines
}

/// Returns all entries if they are few, and otherwise a selection.
fn chosen(all: &[ManyToOne]) -> impl Iterator<Item = &ManyToOne> {
    let count = all.len();
    all.iter()
        .enumerate()
        .filter(move |(at, of)| count <= LINES_AT_MOST || of.requesters.is_power_of_two() || at + 1 == count)
        .map(|(_, of)| of)
}

fn one_to_many(found: &Contention) -> String {
    let repliers = counted(found.one_to_many.repliers, "replier", "repliers");
    let (gap, of_one) = (shown(&found.one_to_many.gap), ratio(Some(found.one_to_many.ratio)));
    format!("one requester to {repliers}: {gap} per message, {of_one} of that to one")
}

fn rates(rates: &[Rate]) -> Vec<String> {
    let mut lines = vec!["messages a second, pairs at once:".into()];
    lines.push(format!("  {:<5} {:>9}  {:<22} {:>5}", "pairs", "all", "of one pair's", "model"));
    lines.extend(rates.iter().map(|rate| {
        let all = per_second(rate.messages_per_s.value);
        format!("  {:<5} {all:>9}  {:<22} {:>5}", rate.pairs, ratio(Some(rate.ratio)), rate.model)
    }));
    lines
}

/// Says what separates the halves of the processes.
pub fn halves_by(by: Bisected) -> &'static str {
    match by {
        Bisected::Ranks => "the order of the ranks",
        Bisected::Processors => "the order of the processors",
        Bisected::Hosts => "the hosts",
        Bisected::HostsInPart => "the hosts, with some pairs within one",
    }
}

/// Describes the rates of pairs across the bisection and of neighbours.
fn bisection(of: &Bisection) -> String {
    format!(
        "{} across the bisection by {}: {}, between neighbours {}, across / neighbours {} (model {})",
        counted(of.pairs, "pair", "pairs"),
        halves_by(of.by),
        per_second(of.across_per_s.value),
        per_second(of.neighbours_per_s.value),
        ratio(Some(of.ratio)),
        of.model
    )
}

/// Returns the figures beside the parameters. The figures of a comparison have names with dots, such as
/// `many_to_one.3.ratio`.
pub fn figures(found: &Contention, size_bytes: usize) -> Vec<Figure> {
    let time = |name: &str, p: &Parameter| Figure::time(name.to_owned(), size_bytes, p);
    let compared = |name: String, p: &Parameter| Figure::time(name.clone(), size_bytes, p).compared_as(name);
    let quotient = |name: &str, unit, of: Quotient| {
        let value = (of.launches > 0).then_some(of.value);
        Figure::median(name.to_owned(), unit, size_bytes, (value, of.ci), of.launches)
    };
    let mut figures = vec![
        plateau(&found.plateau, size_bytes, found.launches.len()),
        time("pairs.least", &found.pairs.least.rtt),
        time("pairs.most", &found.pairs.most.rtt),
        quotient("pairs.ratio", "ratio", found.pairs.most_over_least),
        compared("one_to_many".into(), &found.one_to_many.gap),
        quotient("one_to_many.ratio", "ratio", found.one_to_many.ratio),
    ];
    for of in &found.halves.compared {
        let name = format!("halves.{}", of.parameter);
        figures.push(compared(name.clone(), &of.crowd));
        figures.extend(of.ratio.map(|ratio| quotient(&format!("{name}.ratio"), "ratio", ratio)));
        figures.push(quotient(&format!("{name}.difference"), "ns", of.difference_ns));
    }
    for at in &found.many_to_one {
        let name = format!("many_to_one.{}", at.requesters);
        figures.push(compared(name.clone(), &at.gap));
        figures.push(quotient(&format!("{name}.ratio"), "ratio", at.ratio));
        figures.push(quotient(&format!("{name}.slowest_over_fastest"), "ratio", at.slowest_over_fastest));
    }
    for rate in &found.rates {
        let name = format!("rate.{}", rate.pairs);
        figures.push(quotient(&name, "messages_per_s", rate.messages_per_s));
        figures.push(quotient(&format!("{name}.ratio"), "ratio", rate.ratio));
    }
    if let Some(of) = &found.bisection {
        figures.push(quotient("bisection.across", "messages_per_s", of.across_per_s));
        figures.push(quotient("bisection.neighbours", "messages_per_s", of.neighbours_per_s));
        figures.push(quotient("bisection.ratio", "ratio", of.ratio));
    }
    figures
}

/// Returns the figures of each launch by itself. Ratios within a launch are not compared across records.
pub fn of_launches(found: &Contention, size_bytes: usize) -> Vec<Vec<Figure>> {
    let of = |launch| {
        let own = extract(slice::from_ref(launch), 0.95, 0.0)?;
        Some([times(&own.parameters, size_bytes), figures(&own.found, size_bytes)].concat())
    };
    found.launches.iter().map(|launch| of(launch).unwrap_or_default()).collect()
}
