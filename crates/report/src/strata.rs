//! Strata in words, for the table: one line for each stratum of a result with several.

use crate::{completion, memory, onesided, utilisation};
use netdyno_measure::record::{Found, LayerResult, Parameters, Status};
use netdyno_measure::show::{counted, number_and_interval, time, time_and_interval};
use netdyno_measure::strata::Stratum;

/// Returns a line for each stratum of a result with several strata. Returns no line for other results.
pub fn lines(result: &LayerResult) -> Vec<String> {
    if !result.is_split() {
        return Vec::new();
    }
    result.strata.iter().map(line).collect()
}

/// Describes a stratum, as `near, bounce 119 ns: 104 ns [102, 106], 17 launches`.
fn line(stratum: &Stratum) -> String {
    let launches = counted(stratum.launches, "launch", "launches");
    let figures = if stratum.is_headline { vec!["the figures above".to_owned()] } else { figures(stratum) };
    format!("{}: {}, {launches}", stratum.in_words(), figures.join(", "))
}

/// Returns the figures of a stratum: its parameters, or those of its verb, each with its interval.
pub fn figures(stratum: &Stratum) -> Vec<String> {
    let of_parameters = stratum.parameters.as_ref().map(parameters).unwrap_or_default();
    match stratum.found.as_deref() {
        _ if !of_parameters.is_empty() => of_parameters,
        Some(Found::Completion(found)) => completion::of_stratum(found),
        Some(Found::Memory(found)) => memory::of_stratum(found),
        Some(Found::Onesided(found)) => onesided::of_stratum(found),
        Some(Found::Utilisation(found)) => utilisation::of_stratum(found),
        _ => vec!["no figure".to_owned()],
    }
}

/// Returns the parameters that have a value, each with its interval.
fn parameters(parameters: &Parameters) -> Vec<String> {
    let bound = |status| if status == Status::UpperBound { "≤ " } else { "" };
    let mut figures = Vec::new();
    for (name, p) in parameters.times() {
        let Some(ns) = p.value_ns.filter(|ns| ns.is_finite() && p.status != Status::Unobservable) else {
            continue;
        };
        let figure = if p.ci_ns.is_some() { time_and_interval(ns, p.ci_ns) } else { time(ns) };
        figures.push(format!("{name} {}{figure}", bound(p.status)));
    }
    let per_byte = &parameters.G;
    if let Some(value) = per_byte.value_ns_per_byte.filter(|_| per_byte.status != Status::Unobservable) {
        let figure = number_and_interval(value, per_byte.ci_ns_per_byte);
        figures.push(format!("G {}{figure} ns/B", bound(per_byte.status)));
    }
    figures
}
