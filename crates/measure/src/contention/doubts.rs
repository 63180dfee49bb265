//! Warnings about the figures of contention.

use super::data::CrowdData;
use super::record::{Compared, Contention, Quotient};
use crate::machine::preempted;
use crate::precision::{Wanted, too_few_launches, wide_names};
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

/// Returns a warning about the pairs whose overheads in the crowd are hidden.
fn of_hidden(found: &Contention, hidden: &[usize]) -> Option<Doubt> {
    let has_o_r = |of: &Compared| of.parameter == "o_r" && of.alone.value_ns.is_some();
    let of_all = found.halves.pairs;
    if hidden.is_empty() || !found.halves.compared.iter().any(has_o_r) {
        return None;
    }
    let what = match hidden.contains(&0) {
        true => "there is no o_r and no L in the crowd".to_owned(),
        false => {
            format!(
                "{} of {of_all} pairs have no o_r and no L in the crowd, and the ranges lack them",
                hidden.len()
            )
        }
    };
    let text = format!(
        "while all pairs send at once, a message with a delay before its reply takes as long as one without, so that \
         what a pair waits for others cannot be told from o_r: {what}"
    );
    Some(Doubt::about("hidden_in_crowd", "halves", text))
}

/// Returns the warnings. `hidden` are the pairs whose overheads in the crowd are hidden.
pub(super) fn find(
    parameters: &Parameters,
    found: &Contention,
    hidden: &[usize],
    precision: f64,
) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    doubt_plateau(found, &mut doubts);
    for (name, parameter) in [("o_s", &parameters.o_s), ("o_r", &parameters.o_r), ("L", &parameters.L)] {
        if let Some(ns) = parameter.value_ns.filter(|ns| *ns < 0.0) {
            let why = "overhead and flight overlap, which the model does not know";
            doubts.push(Doubt::about("negative", name, format!("comes out at {}: {why}", Time(ns))));
        }
    }
    doubts.extend(of_hidden(found, hidden));
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
    doubts.extend(preempted("average requester", found.launches.iter().map(of_requesters)));
    doubt_precision(found, precision, &mut doubts);
    doubts
}

/// Returns the preemptions of a launch, if it says in what time they happened, and that time.
fn of_requesters(launch: &CrowdData) -> (Option<u64>, f64) {
    (launch.preemptions.filter(|_| launch.requesting_ns > 0.0), launch.requesting_ns)
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
fn ratios(found: &Contention, precision: f64) -> Vec<Wanted> {
    let mut ratios = vec![("one to many".to_owned(), found.one_to_many.ratio)];
    let halves = found.halves.compared.iter().filter(|c| matches!(&*c.parameter, "rtt" | "g"));
    ratios.extend(halves.filter_map(|c| Some((format!("{} in the crowd", c.parameter), c.ratio?))));
    ratios.extend(found.many_to_one.iter().map(|k| (format!("{} to one", k.requesters), k.ratio)));
    ratios.extend(found.rates.iter().map(|rate| (format!("rate of {} pairs", rate.pairs), rate.ratio)));
    ratios.extend(found.bisection.iter().map(|of| ("across / neighbours".to_owned(), of.ratio)));
    let wanted = |(name, ratio): (String, Quotient)| Wanted {
        name,
        value: ratio.value,
        ci: ratio.ci,
        half_width: precision * ratio.value.abs(),
    };
    ratios.into_iter().map(wanted).collect()
}

/// Returns the figures that must be precise: the round trip of one pair, and every ratio.
pub(crate) fn wanted(parameters: &Parameters, found: &Contention, precision: f64) -> Vec<Wanted> {
    let value = parameters.rtt.value_ns.unwrap_or(f64::NAN);
    let rtt = Wanted { name: "rtt".into(), value, ci: parameters.rtt.ci_ns, half_width: precision * value };
    std::iter::once(rtt).chain(ratios(found, precision)).collect()
}

fn doubt_precision(found: &Contention, precision: f64, doubts: &mut Vec<Doubt>) {
    let ratios = ratios(found, precision);
    if ratios.iter().any(|ratio| ratio.ci.is_none()) {
        doubts.push(too_few_launches(found.launches.len()));
    }
    let mut names = wide_names(&ratios);
    if names.is_empty() {
        return;
    }
    if names.len() > NAMED_AT_MOST {
        let more = names.split_off(NAMED_AT_MOST).len();
        names.push(format!("{more} more"));
    }
    let text = format!("ratios wider than the ±{} asked for: {}", Percent(precision), names.join(", "));
    doubts.push(Doubt::new("imprecise", text));
}
