//! Warnings about the parameters of a signature, because of the layer, the machine or the run.

use super::launches::SignatureLaunches;
use super::pattern::BATCH;
use crate::logp::record::{Checks, Logp};
use crate::machine::{coarse_clock, is_coarse, preempted, two_groups};
use crate::precision::{Wanted, too_few_launches, wide_names};
use crate::record::doubt::Doubt;
use crate::record::parameter::{Parameter, Parameters, Status};
use crate::record::plateau::{Limit, Plateau};
use crate::show::{Percent, Time};
use crate::stats::median;

/// A negative figure of at most this share of the round trip is a rounding error.
const ROUNDING: f64 = 1e-6;
/// The window is close to setting the plateau if half of it raises the plateau by this factor.
const WINDOW_NEAR: f64 = 1.25;
/// The tolerated error of the slope over D.
const SLOPE_TOLERANCE: f64 = 0.05;
/// The tolerated difference of two methods for one figure, as a share.
const DISAGREEMENT: f64 = 0.1;
/// The tolerated share of replies that come too late for the second method for o_r.
const LATE: f64 = 0.05;
/// A plateau below o_s + o_r by this share is no measurement error.
const OVERLAP: f64 = -0.1;
/// A burst of at least this many messages gives a trusted o_s.
const ISSUE_BURST_TRUSTED: f64 = 4.0;
/// A round trip from a quiet layer outlasts the plateau by more than this share, or needs a rest before it.
const BUSY: f64 = 0.9;

/// Returns the warnings: the layer or the machine does not behave as the model says.
pub(super) fn find(
    launches: &SignatureLaunches<'_>,
    parameters: &Parameters,
    found: &Logp,
    precision: f64,
) -> Vec<Doubt> {
    let Logp { plateau, checks, .. } = found;
    let mut doubts = Vec::new();
    let value = |p: &Parameter| p.value_ns.unwrap_or(f64::NAN);
    let rtt = value(&parameters.rtt);
    doubt_plateau(launches, rtt, plateau, &mut doubts);
    doubt_overheads(launches, parameters, plateau, checks, &mut doubts);
    for (name, parameter) in [("o_s", &parameters.o_s), ("o_r", &parameters.o_r), ("L", &parameters.L)] {
        if value(parameter) < -ROUNDING * rtt {
            doubts.push(Doubt::about(
                "negative",
                name,
                format!(
                    "comes out at {}: overhead and flight overlap, which the model does not know",
                    Time(value(parameter))
                ),
            ));
        }
    }
    // A stream that its window limits still needs g for its last window, and g is unknown.
    let is_predictable = |d_ns: f64| match plateau.limited_by {
        Limit::Gap | Limit::Processor => true,
        Limit::Window => d_ns > 0.0,
        Limit::Unknown => false,
    };
    for stream in checks.streams.iter().filter(|stream| is_predictable(stream.d_ns)) {
        let ratio = stream.predicted_ns / stream.measured_ns;
        if (ratio - 1.0).abs() > DISAGREEMENT {
            doubts.push(Doubt::new(
                "prediction",
                format!(
                    "a stream of {} messages, {} apart, was predicted at {ratio:.2} of its measured time",
                    stream.messages,
                    Time(stream.d_ns)
                ),
            ));
        }
    }
    doubts.extend(without_rest(launches, rtt, plateau));
    doubt_machine(launches, rtt, &mut doubts);
    doubt_precision(parameters, found, precision, &mut doubts);
    doubts
}

/// Warns that round trips follow each other at once over a layer that a message keeps busy for as long.
fn without_rest(launches: &SignatureLaunches<'_>, rtt_ns: f64, plateau: &Plateau) -> Option<Doubt> {
    let is_busy = plateau.limited_by == Limit::Gap && plateau.value_ns >= BUSY * rtt_ns;
    let text = format!(
        "round trips follow each other at once, because the first launch took the gap for shorter than a round trip; but a \
         message keeps the layer busy for {}, so that each may wait for the one before",
        Time(plateau.value_ns)
    );
    (is_busy && launches.data[0].shape.rest_ns <= 0.0).then(|| Doubt::about("no_rest", "rtt", text))
}

/// Adds the warnings about the plateau and `g`.
fn doubt_plateau(launches: &SignatureLaunches<'_>, rtt: f64, plateau: &Plateau, doubts: &mut Vec<Doubt>) {
    let steady = Time(plateau.value_ns);
    let overlapping = plateau.idle_ns.filter(|idle_ns| *idle_ns < OVERLAP * plateau.value_ns);
    if let Some(idle_ns) = overlapping.filter(|_| plateau.limited_by != Limit::Unknown) {
        doubts.push(Doubt::new(
            "overheads_overlap",
            format!(
                "in a stream a message takes {steady}, {} less than o_s + o_r: together they cost less than apart",
                Time(-idle_ns)
            ),
        ));
    }
    let doubt = |name, text| Doubt::about(name, "g", text);
    let longest = launches.data[0].shape.bursts.last().copied().unwrap_or(0);
    match plateau.limited_by {
        Limit::Gap => {}
        Limit::Processor => doubts.push(doubt(
            "processor_bound",
            format!("the requester's processor sets the plateau of {steady}: only an upper bound of g is known"),
        )),
        Limit::Window => doubts.push(doubt(
            "window_bound",
            format!("the window of {} sets the plateau of {steady}: g cannot be seen, only that it is at most that", plateau.window),
        )),
        Limit::Unknown if launches.contradicts() => doubts.push(doubt(
            "bursts_contradict",
            format!("two bursts contradict each other: by their rise a message takes {steady}, g cannot be seen"),
        )),
        Limit::Unknown if launches.is_too_deep() => {
            let depth = (rtt / plateau.value_ns).min(plateau.window as f64);
            doubts.push(doubt(
                "pipeline_too_deep",
                format!(
                    "{depth:.0} messages fit on the way, too many for bursts of {longest}: g cannot be seen, and \
                     o_r is that of a single receive"
                ),
            ));
        }
        Limit::Unknown => doubts.push(doubt(
            "paced_by_polls",
            format!(
                "polls that find nothing set the plateau of {steady}, since no burst outlasts them: g cannot be seen"
            ),
        )),
    }
    if matches!(plateau.limited_by, Limit::Gap | Limit::Processor)
        && let Some(half) = plateau.half_window_ns
        && half > WINDOW_NEAR * plateau.value_ns
    {
        doubts.push(doubt(
            "window_near",
            format!("half the window raises the plateau from {steady} to {}", Time(half)),
        ));
    }
    let issue_plateau = launches.figure(|e| e.issue_plateau).value;
    if plateau.limited_by != Limit::Unknown && (issue_plateau / plateau.value_ns - 1.0).abs() > DISAGREEMENT {
        doubts.push(doubt(
            "issue_not_steady",
            format!(
                "at M = {longest} a request is issued every {}, a reply comes every {steady}: a queue is not full yet",
                Time(issue_plateau)
            ),
        ));
    }
}

/// Adds the warnings about `o_s` and `o_r`.
fn doubt_overheads(
    launches: &SignatureLaunches<'_>,
    parameters: &Parameters,
    plateau: &Plateau,
    checks: &Checks,
    doubts: &mut Vec<Doubt>,
) {
    let value = |p: &Parameter| p.value_ns.unwrap_or(f64::NAN);
    let (rtt, o_r, away) = (value(&parameters.rtt), value(&parameters.o_r), value(&checks.o_r_away));
    let slope = match checks.delay_slope {
        None => (!launches.is_too_deep()).then(|| "too few delays were longer than the idle time".to_owned()),
        Some(slope) if (slope - 1.0).abs() <= SLOPE_TOLERANCE => None,
        // In that case o_r does not come from delays.
        _ if plateau.limited_by == Limit::Unknown => None,
        Some(slope) => Some(format!("the time per message rises by {slope:.2} per unit of delay, not by 1")),
    };
    doubts.extend(slope.map(|text| Doubt::about("delay_slope", "o_r", text)));
    // Neither method can resolve a quarter of a percent of the round trip.
    let is_apart = |ns: f64| (ns - o_r).abs() > DISAGREEMENT * o_r.abs() + 0.0025 * rtt;
    if let Some(span) = launches.o_r_over_delays(o_r).filter(|span| is_apart(span.lo) || is_apart(span.hi)) {
        doubts.push(Doubt::about(
            "o_r_by_delay",
            "o_r",
            format!("a receive takes {} to {}, after one delay or another", Time(span.lo), Time(span.hi)),
        ));
    }
    if is_apart(away) {
        doubts.push(Doubt::about(
            "o_r_two_ways",
            "o_r",
            format!("a receive timed by itself after staying away takes {}", Time(away)),
        ));
        let (latency, by_that) = (value(&parameters.L), rtt / 2.0 - value(&parameters.o_s) - away);
        if (by_that - latency).abs() > DISAGREEMENT * latency.abs() {
            let text = format!("with a receive timed by itself it comes out at {}", Time(by_that));
            doubts.push(Doubt::about("L_two_ways", "L", text));
        }
    }
    if !away.is_finite() {
        doubts.push(Doubt::about("o_r_two_ways", "o_r", "no reply was there after staying away".into()));
    }
    let (late, seen) = launches.data.iter().fold((0, 0), |(late, seen), l| {
        // A record is a file that others may have written: its counts may have any value.
        let batch = l.issue.first().map_or(BATCH, |burst| burst.per_batch.min(BATCH));
        let here = l.o_r_away_late.saturating_add((batch * l.o_r_away_ns.len()) as u64);
        (u64::saturating_add(late, l.o_r_away_late), u64::saturating_add(seen, here))
    });
    if late as f64 > LATE * seen as f64 && away.is_finite() {
        doubts.push(Doubt::about(
            "late_replies",
            "o_r",
            format!("{} of the replies were later than 1.2 round trips", Percent(late as f64 / seen as f64)),
        ));
    }
    let burst = launches.figure(|e| e.o_s.m as f64).value;
    let timer_ns = median(launches.data.iter().map(|launch| launch.timer_ns));
    let (o_s_ns, is_trusted) = (launches.figure(|e| e.o_s.value_ns).value, burst >= ISSUE_BURST_TRUSTED);
    if !is_trusted && is_coarse(burst * o_s_ns, timer_ns) {
        let text = format!(
            "o_s is that of a burst of {burst:.0}, in which reading the clock takes {}, which is taken off",
            Time(timer_ns)
        );
        doubts.push(Doubt::about("clock_is_coarse", "o_s", text));
    }
    let longest = launches.data[0].issue.last().map_or(0, |burst| burst.m);
    if !is_trusted && burst < longest as f64 && launches.data[0].shape.window > 1 {
        doubts.push(Doubt::about(
            "short_send_burst",
            "o_s",
            format!(
                "o_s is that of a burst of {burst:.0}; in one of {longest} a request costs {}",
                Time(launches.figure(|e| e.longest_burst_o_s).value)
            ),
        ));
    }
}

/// Adds the warnings about the clock and the system.
fn doubt_machine(launches: &SignatureLaunches<'_>, rtt: f64, doubts: &mut Vec<Doubt>) {
    let timer = median(launches.data.iter().map(|l| l.timer_ns));
    doubts.extend(coarse_clock(Some(rtt), timer));
    if let Some(groups) = two_groups(launches.estimates.iter().map(|e| e.rtt)) {
        doubts.push(Doubt::about("two_groups", "rtt", groups));
    }
    doubts.extend(preempted("requester", launches.data.iter().map(|l| (l.preemptions, l.took_ns))));
}

/// Returns the parameters that must be precise: round trip and g to a share of themselves, the others to a
/// share of the one-way time, of which they are parts. A layer may show no g.
pub(crate) fn wanted(parameters: &Parameters, found: &Logp, precision: f64) -> Vec<Wanted> {
    let rtt_ns = parameters.rtt.value_ns.unwrap_or(f64::NAN);
    let wanted = |(name, parameter): (&str, &Parameter)| {
        let value = parameter.value_ns.unwrap_or(f64::NAN);
        let half_width = match name {
            "o_poll" => return None,
            "g" if parameter.ci_ns.is_none() => return None,
            "rtt" | "g" => precision * value,
            _ => precision * value.abs().max(rtt_ns / 2.0),
        };
        // The interval of a measured g reaches beyond that of the plateau, however long one measures.
        let is_plateau = name == "g" && parameter.status == Status::Measured;
        let ci = if is_plateau { found.plateau.ci_ns } else { parameter.ci_ns };
        Some(Wanted { name: name.into(), value, ci, half_width })
    };
    parameters.times().into_iter().filter_map(wanted).collect()
}

fn doubt_precision(parameters: &Parameters, found: &Logp, precision: f64, doubts: &mut Vec<Doubt>) {
    let launches = found.launches.len();
    if parameters.rtt.ci_ns.is_none() {
        doubts.push(too_few_launches(launches));
    }
    for (name, parameter) in parameters.times() {
        if parameter.status != Status::Unobservable && parameter.launches < launches {
            doubts.push(Doubt::about(
                "launches_without_value",
                name,
                format!("{} of {launches} launches gave no value", launches - parameter.launches),
            ));
        }
    }
    let wide = wide_names(&wanted(parameters, found, precision));
    if !wide.is_empty() {
        doubts.push(Doubt::new(
            "imprecise",
            format!("wider than the ±{} asked for: {}", Percent(precision), wide.join(", ")),
        ));
    }
}
