//! The part of the page about contention: the round trips of all pairs, requesters that share a replier,
//! and pairs at once, each compared with the LogP model.

mod against;
mod matrix;

use super::grid::{grid, heads, row};
use super::parts::{pretty, shown, sound, time, with_minus};
use super::tables::two_lines;
use crate::contention::{halves_by, ratio};
use maud::{Markup, html};
use netdyno_measure::contention::record::{Bisection, Compared, Contention, Quotient};
use netdyno_measure::record::{LayerResult, Parameter};
use netdyno_measure::show::{NONE, counted, number, per_second, percent, time_and_interval};
use netdyno_measure::stats::Interval;

/// In sentences a ratio counts as 1 if its interval is within this distance of 1.
const ALIKE: f64 = 0.1;

/// The result of `contention` for a layer.
pub type Subject<'a> = super::subject::Subject<'a, Contention>;

/// Returns a section for each layer whose contention was measured.
pub fn sections(subjects: &[Subject<'_>]) -> Markup {
    html! { @for subject in subjects { (section(subject)) } }
}

fn section(subject: &Subject<'_>) -> Markup {
    let (confidence, result, found) = (subject.confidence(), subject.result, subject.found);
    html! {
        section {
            div.keep {
                h2 id=(subject.id) { (subject.label) ": contention" }
                p.facts { (circumstances(result, found)) }
                p.lead { (pretty(&with_minus(&sentences(found).join(" ")))) }
            }
            div.pair {
                div { h3 { "Round trip of every pair, one pair at a time" } (matrix::figure(found)) }
                div {
                    h3 { "K requesters to one replier" } (against::many_to_one(found, confidence))
                    h3 { "Messages a second of pairs at once" } (against::rates(found, confidence))
                }
            }
            div.keep { h3 { (counted(found.halves.pairs, "pair", "pairs")) " at once: what becomes of a pair's parameters" } (halves(found)) }
            @if let Some(of) = &found.bisection {
                div.keep { h3 { (counted(of.pairs, "pair", "pairs")) " across the bisection and between neighbours" } (bisection(of)) }
            }
            (numbers(found))
        }
    }
}

fn circumstances(result: &LayerResult, found: &Contention) -> String {
    let mut parts = vec![
        format!("netdyno {}", result.verb()),
        counted(found.procs, "process", "processes"),
        format!("{} in a request and in a reply", counted(result.size_bytes, "byte", "bytes")),
        result.wait.clone(),
    ];
    if !result.cpus.is_empty() {
        let cpus: Vec<String> = result.cpus.iter().map(usize::to_string).collect();
        parts.push(format!("CPUs {}", crate::table::in_turn(&cpus)));
    }
    parts.push(format!("window {} to each peer", found.plateau.window));
    parts.push(counted(found.launches.len(), "launch", "launches"));
    parts.join(" · ")
}

fn is_known(quotient: &Quotient) -> bool {
    quotient.launches > 0 && quotient.value.is_finite()
}

/// Returns the findings in sentences.
fn sentences(found: &Contention) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some(rtt) = found.halves.compared.iter().find(|c| c.parameter == "rtt")
        && let Some(quotient) = rtt.ratio.filter(is_known)
    {
        let pairs = counted(found.halves.pairs, "pair", "pairs");
        sentences.push(format!(
            "With {pairs} at work at once a pair's round trip takes {} times as long as alone.",
            ratio(Some(quotient))
        ));
    }
    if let Some(last) = found.many_to_one.last().filter(|at| is_known(&at.ratio)) {
        sentences.push(format!(
            "Where {} to one replier, each takes {} times as long for a message as one alone; by the LogP model it is {}, for the receiver takes one message in a gap.",
            if last.requesters == 1 { "1 requester sends".into() } else { format!("{} requesters send", last.requesters) },
            ratio(Some(last.ratio)),
            last.model
        ));
    }
    let to_many = &found.one_to_many;
    if is_known(&to_many.ratio) {
        sentences.push(format!(
            "One requester that sends to {} in turn takes {} times as long for a message as to one{}.",
            counted(to_many.repliers, "replier", "repliers"),
            ratio(Some(to_many.ratio)),
            to_many.ratio.ci.and_then(meaning).unwrap_or_default()
        ));
    }
    if let Some(of) = found.bisection.as_ref().filter(|of| is_known(&of.ratio)) {
        sentences.push(format!(
            "Pairs across the bisection by {} get {} times as many messages through as neighbours; by the LogP model as many.",
            halves_by(of.by),
            ratio(Some(of.ratio))
        ));
    }
    sentences
}

/// Explains the ratio of one requester with many peers to one with a single peer, if the interval decides
/// it (Culler et al. 1996, "Validation of communication scaling").
fn meaning(ci: Interval) -> Option<&'static str> {
    match ci {
        Interval { lo, hi } if 1.0 - ALIKE <= lo && hi <= 1.0 + ALIKE => {
            Some(": the requester's side sets the pace")
        }
        Interval { hi, .. } if hi < 1.0 => Some(": the replier's turnaround holds a single pair back"),
        Interval { lo, .. } if lo > 1.0 => Some(": more peers cost the requester time"),
        _ => None,
    }
}

/// Returns a table of a pair alone and of the same pair in the crowd.
fn halves(found: &Contention) -> Markup {
    let names = ["ranks 0, 1", "alone", "in the crowd", "crowd / alone", "difference", "all pairs"];
    html! {
        (grid(true, &heads(names), &html! { @for compared in &found.halves.compared { (halves_row(compared)) } }))
        p.facts { "g stands for the time per message without delay, whatever sets it. Differences and ratios are those within a launch." }
    }
}

/// Returns a table of the rates of both patterns.
fn bisection(of: &Bisection) -> Markup {
    let names = ["halves by", "across", "between neighbours", "across / neighbours", "model"];
    let rate = |of: Quotient| html! { (per_second(of.value)) };
    let cells = [
        rate(of.across_per_s),
        rate(of.neighbours_per_s),
        two_lines(&with_minus(&ratio(Some(of.ratio)))),
        html! { (number(of.model)) },
    ];
    html! {
        (grid(true, &heads(names), &row(halves_by(of.by), cells)))
        p.facts {
            "Answered requests of all pairs at once. The processes stand in the order of their hosts and processors: across, place i sends to place i + P/2; between neighbours, place 0 to 1, 2 to 3. "
            "A ratio below 1 says that the middle carries less than the ends."
        }
    }
}

fn halves_row(compared: &Compared) -> Markup {
    let Compared { parameter, alone, crowd, .. } = compared;
    let value = |p: &Parameter| shown(p).map_or(NONE.into(), time);
    let difference = compared.difference_ns;
    let difference = if is_known(&difference) {
        time_and_interval(difference.value, sound(difference.ci))
    } else {
        NONE.into()
    };
    row(
        pretty(parameter),
        [
            html! { (value(alone)) },
            html! { (value(crowd)) },
            two_lines(&ratio(compared.ratio)),
            two_lines(&difference),
            match compared.crowd.value_ns {
                Some(_) => html! { (time(compared.least_ns)) " to " (time(compared.most_ns)) },
                None => html! { (NONE) },
            },
        ],
    )
}

/// Returns a table of every ratio.
fn numbers(found: &Contention) -> Markup {
    let of = |quotient: Quotient| with_minus(&ratio(Some(quotient)));
    let requesters = found.many_to_one.iter().map(|at| {
        let gap = shown(&at.gap).map_or(NONE.into(), time);
        row(at.requesters, [gap, of(at.ratio), number(at.model), of(at.slowest_over_fastest)])
    });
    let pairs = found.rates.iter().map(|rate| {
        row(rate.pairs, [per_second(rate.messages_per_s.value), of(rate.ratio), number(rate.model)])
    });
    let of_requesters = ["requesters", "time per message", "g(K) / g(1)", "model", "slowest / fastest"];
    let of_pairs = ["pairs", "messages", "of one pair's", "model"];
    html! {
        details {
            summary { "Figures one by one" }
            (grid(false, &heads(of_requesters), &html! { @for row in requesters { (row) } }))
            (grid(false, &heads(of_pairs), &html! { @for row in pairs { (row) } }))
        }
    }
}

/// Describes an interval for a tooltip.
fn interval_of(quotient: &Quotient, confidence: f64) -> String {
    let launches = counted(quotient.launches, "launch", "launches");
    match sound(quotient.ci) {
        Some(ci) => {
            format!("{} interval [{}, {}], {launches}", percent(confidence), number(ci.lo), number(ci.hi))
        }
        None => launches,
    }
}
