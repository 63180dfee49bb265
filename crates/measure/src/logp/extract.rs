//! The parameters and warnings computed from several launches.
//!
//! Every figure is computed for each launch first. Its value is the median over the launches, its interval
//! the distribution-free interval of that median. No figure is clamped: a figure that does not fit the
//! model causes a warning.
//!
//! The signature gives:
//! * `o_s`: from short bursts of requests alone, from quiet.
//! * `o_r`: with a delay D beyond the idle time a message takes o_s + D + o_r, and the slope over D must be
//!   1. If the cost of a receive depends on the delay, the intervals of `o_r` and `L` span that cost.
//! * plateau without delay: max(g, o_s + o_r, rtt / window), computed from the time to issue, as in the
//!   paper. That time reaches the plateau only once every queue in front of the slowest stage is full,
//!   which may take longer than the longest burst. If the time to the last reply rises differently, the
//!   plateau comes from that time.
//! * `L` = rtt / 2 - o_s - o_r.
//!
//! The term that sets the plateau decides the meaning of g. If no idle time is left, it is the processor, and
//! g is at most the plateau. If half of the window doubles the plateau, it is the window, and g cannot be
//! seen. Otherwise the plateau is g. Terms within 6 % of each other are not distinguished
//! (`steady.rs`). If more messages fit on the way than the longest burst has, the stream never becomes
//! steady: g cannot be seen, and `o_r` is that of a single receive.

use super::data::{LaunchData, RoundTrips, Stream};
use super::doubts;
use super::estimate::{SignatureEstimate, Ways};
use super::launches::SignatureLaunches;
use super::record::{Checks, Logp, Share, Shares, StreamCheck};
use crate::figure::Figure;
use crate::reading::Reading;
use crate::record::parameter::{Parameters, PerByte, Status};
use crate::record::plateau::{Limit, Plateau};
use crate::stats::{Confidence, Interval, median, quantile_of_sorted, quantiles, sorted, total};
use crate::steady::{self, Evidence, limited_by};

/// Returns rtt, o_s, o_r and the plateau of each launch, in nanoseconds. Ratios between layers consist of
/// these figures.
pub fn each_launch(data: &[LaunchData]) -> Vec<[f64; 4]> {
    if data.is_empty() {
        return Vec::new();
    }
    let ways = Ways::of(data);
    data.iter()
        .map(|launch| SignatureEstimate::of(launch, ways))
        .map(|e| [e.rtt, e.o_s.value_ns, e.o_r, e.plateau])
        .collect()
}

/// Computes parameters and warnings from launches. Returns `None` without launches.
pub fn extract(
    data: &[LaunchData],
    confidence: impl Into<Confidence>,
    precision: f64,
) -> Option<Reading<Logp>> {
    let first = data.first()?;
    let confidence = confidence.into();
    let launches = SignatureLaunches::of(data, confidence);
    let plateau = plateau(&launches, first.shape.window);
    let parameters = parameters(&launches, &plateau);
    let checks = checks(&launches, &plateau);
    let found = Logp { plateau, checks, shares: shares(data, confidence.share), launches: data.to_vec() };
    let doubts = doubts::find(&launches, &parameters, &found, precision);
    Some(Reading { parameters, found, doubts })
}

/// Returns the parameters as shares of half of the round trip, over the launches. Returns `None` if no
/// launch has them.
fn shares(launches: &[LaunchData], confidence: f64) -> Option<Shares> {
    let each = each_launch(launches);
    let share = |of: fn([f64; 3]) -> f64| {
        let figure =
            Figure::over(each.iter().map(|&[rtt, o_s, o_r, _]| of([rtt / 2.0, o_s, o_r])), confidence);
        figure.value.is_finite().then_some(Share { value: figure.value, ci: figure.ci })
    };
    Some(Shares {
        o_s: share(|[one_way, o_s, _]| o_s / one_way)?,
        o_r: share(|[one_way, _, o_r]| o_r / one_way)?,
        L: share(|[one_way, o_s, o_r]| (one_way - o_s - o_r) / one_way)?,
    })
}

/// Computes the plateau, and determines the term that sets it.
fn plateau(launches: &SignatureLaunches<'_>, window: usize) -> Plateau {
    let steady = launches.figure(|e| e.plateau);
    let idle = launches.figure(|e| e.idle);
    let half_window_ns = launches.estimates[0]
        .half_window_plateau
        .map(|_| launches.figure(|e| e.half_window_plateau.unwrap_or(f64::NAN)).value);
    let rtt = launches.figure(|e| e.rtt).value;
    let noise = median(launches.data.iter().map(|launch| noise_of_trips(&launch.rtt)));
    let starvation = launches.starvation(steady.value, window);
    let evidence = Evidence { window, smaller_ns: half_window_ns, noise, starvation };
    Plateau {
        limited_by: if launches.contradicts() || launches.is_too_deep() || launches.is_paced_by_polls() {
            Limit::Unknown
        } else {
            limited_by(steady.value, idle.value, idle.ci, evidence, rtt)
        },
        value_ns: steady.value,
        ci_ns: steady.ci,
        window,
        half_window_ns,
        idle_ns: Some(idle.value).filter(|ns| ns.is_finite()),
    }
}

/// Returns the standard deviation of single round trips by the distance of their quartiles, as a share of the
/// median.
fn noise_of_trips(trips: &RoundTrips) -> f64 {
    let quantiles = quantiles(trips.histogram_ns.iter().copied());
    let at = |name: &str| quantiles.get(name).copied().unwrap_or(f64::NAN);
    (at("p75") - at("p25")) / 1.35 / at("p50")
}

fn parameters(launches: &SignatureLaunches<'_>, plateau: &Plateau) -> Parameters {
    let all = |of: fn(&SignatureEstimate) -> f64| launches.estimates.iter().map(of).collect::<Vec<_>>();
    let trips = total(launches.data.iter().map(|launch| launch.rtt.samples));
    let mut rtt = launches.figure(|e| e.rtt).parameter([], trips);
    rtt.quantiles_ns = quantiles(launches.data.iter().flat_map(|l| l.rtt.histogram_ns.iter().copied()));
    // The histogram has a resolution of 0.1 %, too coarse for its extremes.
    let least = launches.data.iter().map(|l| l.rtt.min_ns).fold(f64::INFINITY, f64::min);
    let most = launches.data.iter().map(|l| l.rtt.max_ns).fold(f64::NEG_INFINITY, f64::max);
    // Older records lack them.
    if most > 0.0 {
        rtt.quantiles_ns.values_mut().for_each(|ns| *ns = ns.max(least).min(most));
    }
    rtt.quantiles_ns.extend([("min".to_owned(), least), ("max".to_owned(), most)]);

    let issue_bursts =
        |launch: &LaunchData, m: usize| launch.issue.iter().find(|b| b.m == m).cloned().unwrap_or_default();
    let o_s_samples = launches.data.iter().zip(&launches.estimates).flat_map(|(launch, e)| {
        let burst = issue_bursts(launch, e.o_s.m);
        burst.issue_ns.iter().map(|ns| (ns - launch.timer_ns) / burst.m as f64).collect::<Vec<_>>()
    });
    let o_r_samples = launches
        .estimates
        .iter()
        .flat_map(|e| e.busy_samples.iter().map(|busy| busy - e.o_s.value_ns).collect::<Vec<_>>());

    let g_samples = || launches.estimates.iter().flat_map(|e| e.plateau_samples.clone()).collect();
    let mut g = launches.measured(|e| e.plateau, g_samples());
    match plateau.limited_by {
        Limit::Gap => {
            let share = launches.starvation(plateau.value_ns, plateau.window);
            let by_done_ns = launches.figure(|e| e.done_plateau).value;
            g.ci_ns = g.ci_ns.map(|ci| steady::gap_interval(ci, share, by_done_ns));
        }
        Limit::Processor => {
            g = launches.measured(|e| e.plateau.max(e.bound), g_samples());
            g.status = Status::UpperBound;
        }
        Limit::Window | Limit::Unknown => {
            g = g.without_value();
        }
    }
    let mut o_r = launches.measured(|e| e.o_r, o_r_samples.collect());
    let mut latency = launches.measured(|e| e.latency, all(|e| e.latency));
    if let Some((o_r_ns, span)) = o_r.value_ns.and_then(|ns| Some((ns, launches.o_r_over_delays(ns)?))) {
        o_r.ci_ns = o_r.ci_ns.map(|ci| ci.with(span));
        let of_latency = |l_ns: f64| Interval { lo: l_ns + o_r_ns - span.hi, hi: l_ns + o_r_ns - span.lo };
        latency.ci_ns = latency.ci_ns.zip(latency.value_ns).map(|(ci, l_ns)| ci.with(of_latency(l_ns)));
    }
    Parameters {
        rtt,
        o_s: launches.measured(|e| e.o_s.value_ns, o_s_samples.collect()),
        o_r,
        o_poll: launches.measured(|e| e.o_poll, launches.samples(|l| &l.o_poll_ns)),
        g,
        L: latency,
        G: PerByte { launches: launches.data.len(), ..PerByte::unobservable() },
    }
}

fn checks(launches: &SignatureLaunches<'_>, plateau: &Plateau) -> Checks {
    let slope = launches.figure(|e| e.slope);
    Checks {
        rtt_after_pause: launches
            .measured(|e| e.rtt_after_pause, launches.samples(|l| &l.rtt_after_pause_ns)),
        pause_ns: launches.data[0].pause_ns,
        o_r_away: launches.measured(|e| e.o_r_away, launches.samples(|l| &l.o_r_away_ns)),
        delay_slope: Some(slope.value).filter(|slope| slope.is_finite()),
        delay_slope_ci: slope.ci,
        streams: streams(launches, plateau),
    }
}

/// Compares each stream with its prediction: n messages take a round trip and n - 1 times the slowest stage.
fn streams(launches: &SignatureLaunches<'_>, plateau: &Plateau) -> Vec<StreamCheck> {
    let rtt = launches.figure(|e| e.rtt).value;
    let busy = launches.figure(|e| e.o_s.value_ns + e.o_r).value;
    let over_launches = |at: usize, of: fn(&Stream) -> &Vec<f64>| {
        sorted(launches.data.iter().filter_map(|l| l.streams.get(at)).map(|s| median(of(s).iter().copied())))
    };
    let streams = launches.data[0].streams.iter().enumerate();
    streams
        .map(|(at, stream)| {
            let measured = over_launches(at, |s| &s.done_ns);
            let measured_ns = quantile_of_sorted(&measured, 0.5);
            let d = quantile_of_sorted(&over_launches(at, |s| &s.d_measured_ns), 0.5);
            let spacing = if stream.d_ns == 0.0 { plateau.value_ns } else { plateau.value_ns.max(busy + d) };
            StreamCheck {
                messages: stream.messages,
                d_ns: stream.d_ns,
                predicted_ns: rtt + (stream.messages - 1) as f64 * spacing,
                measured_ns,
                ci_ns: launches.interval(measured_ns, &measured),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::data::{Burst, Curve, Shape};
    use super::*;

    /// Returns a launch in which some figures have no value, as a peer, a host or a file may produce it.
    fn launch(o_r_away_ns: Vec<f64>, longest_delay_ns: f64) -> LaunchData {
        let burst = |m: usize, per: f64| Burst {
            m,
            per_batch: 1,
            issue_ns: vec![m as f64 * per; 3],
            done_ns: vec![m as f64 * per; 3],
        };
        let delays_ns: Vec<f64> = (0..6).map(|i| longest_delay_ns * f64::from(i) / 5.0).collect();
        let curve = |&d_ns: &f64| Curve {
            d_ns,
            d_measured_ns: vec![d_ns; 3],
            bursts: vec![burst(8, 100.0 + d_ns), burst(16, 100.0 + d_ns)],
        };
        LaunchData {
            issue: vec![burst(1, 10.0)],
            o_r_away_ns,
            signature: delays_ns.iter().map(curve).collect(),
            shape: Shape { bursts: vec![8, 16], delays_ns, window: 64, ..Default::default() },
            ..LaunchData::default()
        }
    }

    #[test]
    fn what_is_extracted_can_always_be_written_and_read_back() {
        for (away, longest) in
            [(vec![], 500.0), (vec![5.0], 500.0), (vec![5.0], 1.0), (vec![], 0.0), (vec![1e6], 1.0)]
        {
            let good = launch(vec![20.0; 3], 500.0);
            for launches in [
                vec![launch(away.clone(), longest); 9],
                [vec![good; 5], vec![launch(away.clone(), longest); 4]].concat(),
            ] {
                let extracted = extract(&launches, 0.95, 0.02).unwrap();
                let text = serde_json::to_string(&(
                    &extracted.parameters,
                    &extracted.found.plateau,
                    &extracted.found.checks,
                ))
                .unwrap();
                let read: (Parameters, Plateau, Checks) =
                    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
                assert_eq!(read.0, extracted.parameters);
            }
        }
    }
}
