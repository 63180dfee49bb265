//! Warnings about the figures of contention.

use super::record::{Contention, Quotient};
use crate::precision::too_few_launches;
use crate::record::doubt::Doubt;
use crate::record::parameter::Parameters;
use crate::record::plateau::Limit;
use crate::show::{Percent, Time};

/// Sharing is fair if the slowest requester takes at most this many times as long as the fastest.
const FAIR: f64 = 2.0;
/// The window is close to setting the plateau if half of it raises the plateau by this factor.
const WINDOW_NEAR: f64 = 1.25;
/// A plateau below o_s + o_r by this share is no measurement error.
const OVERLAP: f64 = -0.1;
/// A sentence names at most this many figures.
const NAMED_AT_MOST: usize = 6;

pub(super) fn find(parameters: &Parameters, found: &Contention, precision: f64) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    doubt_plateau(found, &mut doubts);
    for (name, parameter) in [("o_s", &parameters.o_s), ("o_r", &parameters.o_r), ("L", &parameters.L)] {
        if let Some(ns) = parameter.value_ns.filter(|ns| *ns < 0.0) {
            let why = "overhead and flight overlap, which the model does not know";
            doubts.push(Doubt::about("negative", name, format!("comes out at {}: {why}", Time(ns))));
        }
    }
    let unfair = found.many_to_one.iter().filter(|k| k.slowest_over_fastest.value > FAIR);
    if let Some(worst) =
        unfair.max_by(|a, b| a.slowest_over_fastest.value.total_cmp(&b.slowest_over_fastest.value))
    {
        doubts.push(Doubt::about(
            "unfair",
            "many_to_one",
            format!(
                "of {} requesters to one replier the slowest takes {:.1} times as long as the fastest for a message: their share is not the same",
                worst.requesters, worst.slowest_over_fastest.value
            ),
        ));
    }
    doubt_precision(found, precision, &mut doubts);
    doubts
}

/// Adds the warnings about the term that sets the time per message of one pair, which is part of every ratio.
fn doubt_plateau(found: &Contention, doubts: &mut Vec<Doubt>) {
    let plateau = &found.plateau;
    let steady = Time(plateau.value_ns);
    if let Some(idle_ns) = plateau.idle_ns.filter(|ns| *ns < OVERLAP * plateau.value_ns) {
        let text = format!(
            "in a stream a message takes {steady}, {} less than o_s + o_r: together they cost less than apart",
            Time(-idle_ns)
        );
        doubts.push(Doubt::new("overheads_overlap", text));
    }
    match plateau.limited_by {
        Limit::Gap => {}
        Limit::Processor => doubts.push(Doubt::about(
            "processor_bound",
            "g",
            format!("a processor sets the {steady} per message of one pair: g is at most that, and ratios of gaps are ratios of its work"),
        )),
        Limit::Window => doubts.push(Doubt::about(
            "window_bound",
            "g",
            format!("the window of {} sets the {steady} per message of one pair: more processes have more windows, and ratios of gaps come out too low", plateau.window),
        )),
        Limit::Unknown => {}
    }
    if plateau.limited_by != Limit::Window
        && let Some(half) = plateau.half_window_ns.filter(|half| *half > WINDOW_NEAR * plateau.value_ns)
    {
        let text = format!(
            "half the window raises the time per message of one pair from {steady} to {}",
            Time(half)
        );
        doubts.push(Doubt::about("window_near", "g", text));
    }
}

/// Returns the ratios that must be precise.
fn ratios(found: &Contention) -> Vec<(String, Quotient)> {
    let mut ratios = vec![("one to many".to_owned(), found.one_to_many.ratio)];
    let halves = found.halves.compared.iter().filter(|c| matches!(&*c.parameter, "rtt" | "g"));
    ratios.extend(halves.filter_map(|c| Some((format!("{} in the crowd", c.parameter), c.ratio?))));
    ratios.extend(found.many_to_one.iter().map(|k| (format!("{} to one", k.requesters), k.ratio)));
    ratios.extend(found.rates.iter().map(|rate| (format!("rate of {} pairs", rate.pairs), rate.ratio)));
    ratios
}

fn imprecise(found: &Contention, precision: f64) -> Vec<(String, f64)> {
    let share = |ratio: Quotient| Some(ratio.ci?.half_width() / ratio.value.abs());
    let shares = ratios(found).into_iter().filter_map(|(name, ratio)| Some((name, share(ratio)?)));
    shares.filter(|(_, share)| *share > precision).collect()
}

/// Reports whether the round trip of one pair and every ratio are as precise as asked for.
pub fn is_precise(parameters: &Parameters, found: &Contention, precision: f64) -> bool {
    let is_rtt_known = || {
        let (value, ci) = (parameters.rtt.value_ns?, parameters.rtt.ci_ns?);
        Some(ci.half_width() <= precision * value)
    };
    is_rtt_known() == Some(true)
        && ratios(found).iter().all(|(_, ratio)| ratio.ci.is_some())
        && imprecise(found, precision).is_empty()
}

fn doubt_precision(found: &Contention, precision: f64, doubts: &mut Vec<Doubt>) {
    let launches = found.launches.len();
    if ratios(found).iter().any(|(_, ratio)| ratio.ci.is_none()) {
        doubts.push(too_few_launches(launches));
    }
    let wide = imprecise(found, precision);
    if wide.is_empty() {
        return;
    }
    let mut names: Vec<String> = wide
        .iter()
        .take(NAMED_AT_MOST)
        .map(|(name, share)| format!("{name} (±{})", Percent(*share)))
        .collect();
    if wide.len() > NAMED_AT_MOST {
        names.push(format!("{} more", wide.len() - NAMED_AT_MOST));
    }
    let text = format!("ratios wider than the ±{} asked for: {}", Percent(precision), names.join(", "));
    doubts.push(Doubt::new("imprecise", text));
}
