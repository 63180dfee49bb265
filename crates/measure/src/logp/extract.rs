//! The parameters and doubts read off several launches.
//!
//! Every figure is computed for each launch first; its value is the median over the
//! launches and its interval the distribution-free one of that median. Nothing is
//! clamped: what does not fit the model is a doubt.
//!
//! What is read off the signature:
//! * `o_s`: short bursts of requests alone, from quiet.
//! * `o_r`: with delays D beyond the idle time a message takes o_s + D + o_r; the slope
//!   over D must be 1. Where a receive costs another time after another delay, the intervals of `o_r`
//!   and `L` span what it costs.
//! * plateau without delay: max(g, o_s + o_r, rtt / window), off the time to issue, as in
//!   the paper. That time reaches the plateau only once every queue in front of the
//!   slowest stage is full, which may take longer than the longest burst: where the time
//!   to the last reply rises differently, that one is taken.
//! * `L` = rtt / 2 - o_s - o_r.
//!
//! Which of the three terms set the plateau: the processor, where no idle time is left
//! (g is then at most the plateau); the window, where halving it doubles the plateau
//! (g cannot be seen); otherwise the plateau is g. Terms within 6 % of each other are
//! not told apart (`steady.rs`). Where more messages fit on the way than the longest burst
//! has, the stream never becomes steady: g cannot be seen, and `o_r` is that of a single receive.

use super::data::{Burst, Curve, LaunchData, RoundTrips};
use super::doubts;
use crate::figure::Figure;
use crate::record::{Checks, Doubt, Limit, Parameter, Parameters, PerByte, Plateau, Status, StreamCheck};
use crate::stats::{Confidence, Interval, Line, median, quantile_of_sorted, sorted};
use crate::steady::{self, Evidence, Overheads, Varying, limited_by};
use std::collections::BTreeMap;

/// Delays count as beyond the idle time with this margin.
const BEYOND_IDLE: f64 = 1.1;
/// A longer burst still counts as sending only where a message costs at most this share
/// more than in a shorter one.
const SEND_ONLY_GROWTH: f64 = 0.001;

/// What several launches say about a layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Extracted {
    /// The parameters.
    pub parameters: Parameters,
    /// What set the plateau.
    pub plateau: Plateau,
    /// Figures beside them.
    pub checks: Checks,
    /// Doubts.
    pub doubts: Vec<Doubt>,
}

/// A send overhead and the burst it was read from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SendOverhead {
    /// Time per message.
    pub value_ns: f64,
    /// Messages in the burst.
    pub m: usize,
}

/// The time per message in the longest burst that was still sending only: one whose
/// messages cost no more than those of the shorter bursts, as far as that can be told.
pub fn send_overhead(bursts: &[Burst], timer_ns: f64) -> SendOverhead {
    let mut best = SendOverhead { value_ns: f64::NAN, m: 0 };
    let (mut least, mut least_error) = (f64::INFINITY, 0.0);
    for burst in bursts {
        let value_ns = cost_of_request(burst, timer_ns);
        let error_ns = standard_error(&burst.issue_ns) / burst.m as f64;
        // The cost of reading the clock is known to some 5 %. Noise must not decide: a burst
        // that is only by chance above the least would pull the choice below the truth.
        let slack_ns = SEND_ONLY_GROWTH * least
            + 0.05 * timer_ns / burst.m as f64
            + 3.0 * f64::hypot(error_ns, least_error);
        if value_ns <= least + slack_ns || best.m == 0 {
            best = SendOverhead { value_ns, m: burst.m };
        }
        if value_ns < least {
            (least, least_error) = (value_ns, error_ns);
        }
    }
    best
}

fn cost_of_request(burst: &Burst, timer_ns: f64) -> f64 {
    (median(burst.issue_ns.iter().copied()) - timer_ns) / burst.m as f64
}

/// The standard error of the mean of batches; 0 for a single one.
fn standard_error(batches: &[f64]) -> f64 {
    let n = batches.len() as f64;
    let mean = batches.iter().sum::<f64>() / n;
    let squares: f64 = batches.iter().map(|batch| (batch - mean).powi(2)).sum();
    (squares / (n - 1.0).max(1.0) / n).sqrt()
}

/// Steady time per message of each batch of a curve: the rise of the time to issue from
/// its second longest burst to its longest.
pub fn steady_ns(curve: &Curve) -> Vec<f64> {
    rises(&curve.bursts, |burst| &burst.issue_ns)
}

/// Whether the plateau is read off the time to issue.
fn issuing_is_steady(launches: &[LaunchData]) -> bool {
    let over_launches = |times: fn(&Burst) -> &Vec<f64>| {
        median(launches.iter().filter_map(|l| l.signature.first()).map(|c| median(rises(&c.bursts, times))))
    };
    let messages = launches[0].shape.bursts.last().copied().unwrap_or(1);
    let deviation_ns = burst_deviation(launches);
    steady::is_by_issuing(
        over_launches(|b| &b.issue_ns),
        over_launches(|b| &b.done_ns),
        deviation_ns,
        messages,
    )
}

/// The standard deviation of the time of the longest burst.
fn burst_deviation(launches: &[LaunchData]) -> f64 {
    steady::burst_deviation(launches.iter().filter_map(|launch| launch.signature.first()?.bursts.last()))
}

fn rises(bursts: &[Burst], times: impl Fn(&Burst) -> &Vec<f64>) -> Vec<f64> {
    let [.., half, whole] = bursts else { return Vec::new() };
    let messages = (whole.m - half.m) as f64;
    times(whole).iter().zip(times(half)).map(|(whole_ns, half_ns)| (whole_ns - half_ns) / messages).collect()
}

/// What one launch says.
#[derive(Clone, Debug)]
pub(super) struct Estimate {
    pub(super) rtt: f64,
    pub(super) o_s: SendOverhead,
    pub(super) longest_burst_o_s: f64,
    o_r: f64,
    o_r_away: f64,
    o_poll: f64,
    plateau: f64,
    pub(super) issue_plateau: f64,
    /// What g is at most, whatever sets the plateau.
    bound: f64,
    half_window_plateau: Option<f64>,
    idle: f64,
    slope: f64,
    latency: f64,
    rtt_after_pause: f64,
    /// o_s + o_r by each batch of each delay beyond the idle time.
    busy_samples: Vec<f64>,
    /// o_r by each delay of the signature; NaN for one that is not beyond the idle time.
    o_r_by_delay: Vec<f64>,
    plateau_samples: Vec<f64>,
}

impl Estimate {
    /// `steady`: the plateau is read off the time to issue, not off that to the last reply.
    fn of(launch: &LaunchData, steady: bool) -> Self {
        let med = |values: &[f64]| median(values.iter().copied());
        let rtt = med(&launch.rtt.batches_ns);
        let o_s = send_overhead(&launch.issue, launch.timer_ns);
        let o_r_away = med(&launch.o_r_away_ns);
        let undelayed = launch.signature.first();
        let times: fn(&Burst) -> &Vec<f64> = if steady { |b| &b.issue_ns } else { |b| &b.done_ns };
        let plateau_samples = undelayed.map(|c| rises(&c.bursts, times)).unwrap_or_default();
        let plateau = med(&plateau_samples);
        let issue_plateau = med(&undelayed.map(steady_ns).unwrap_or_default());
        let longest = undelayed.and_then(|c| c.bursts.last());
        let bound = longest
            .map_or(f64::NAN, |b| steady::slowest_stage_at_most(med(&b.done_ns) - launch.timer_ns, rtt, b.m));
        let half_window = rises(&launch.half_window, |b| &b.done_ns);

        let idle_guess = if o_r_away.is_finite() { plateau - o_s.value_ns - o_r_away } else { 0.0 };
        let mut line = Vec::new();
        let mut busy_samples = Vec::new();
        let mut o_r_by_delay = vec![f64::NAN; launch.signature.len()];
        for (curve, o_r) in launch.signature.iter().zip(&mut o_r_by_delay).skip(1) {
            let d = med(&curve.d_measured_ns);
            // The shortest delay is there to be seen, not to be fitted.
            if curve.d_ns <= BEYOND_IDLE * idle_guess || curve.d_ns <= launch.shape.delays_ns[1] {
                continue;
            }
            let steady = steady_ns(curve);
            line.push((d, med(&steady)));
            *o_r = med(&steady) - d - o_s.value_ns;
            busy_samples.extend(steady.iter().zip(&curve.d_measured_ns).map(|(steady, d)| steady - d));
        }
        // The slope is 1 by the model, and checked; fixing it keeps its error out of o_r.
        let busy = line.iter().map(|(d, steady)| steady - d).sum::<f64>() / line.len() as f64;
        let o_r = if is_too_deep(launch, rtt, plateau) { o_r_away } else { busy - o_s.value_ns };
        Self {
            rtt,
            o_s,
            longest_burst_o_s: launch.issue.last().map_or(f64::NAN, |b| cost_of_request(b, launch.timer_ns)),
            o_r,
            o_r_away,
            o_poll: med(&launch.o_poll_ns),
            plateau,
            issue_plateau,
            bound,
            half_window_plateau: (!half_window.is_empty()).then(|| med(&half_window)),
            idle: plateau - (o_s.value_ns + o_r),
            slope: Line::through(&line).map_or(f64::NAN, |line| line.slope),
            latency: rtt / 2.0 - o_s.value_ns - o_r,
            rtt_after_pause: med(&launch.rtt_after_pause_ns),
            busy_samples,
            o_r_by_delay,
            plateau_samples,
        }
    }
}

/// Whether the stream never became steady.
pub(super) fn is_too_deep(launch: &LaunchData, rtt_ns: f64, plateau_ns: f64) -> bool {
    let longest = launch.shape.bursts.last().copied().unwrap_or(0);
    steady::is_too_deep(longest, rtt_ns, plateau_ns, launch.shape.window)
}

/// Several launches and what each of them says.
pub(super) struct Launches<'a> {
    pub(super) data: &'a [LaunchData],
    pub(super) estimates: Vec<Estimate>,
    /// Whether the plateau is read off the time to issue.
    steady: bool,
    confidence: Confidence,
}

impl Launches<'_> {
    /// The median over the launches that gave a value, and its interval.
    pub(super) fn figure(&self, of: impl Fn(&Estimate) -> f64) -> Figure {
        Figure::over(self.estimates.iter().map(of), self.confidence)
    }

    fn measured(&self, of: impl Fn(&Estimate) -> f64, samples: Vec<f64>) -> Parameter {
        let count = samples.len() as u64;
        self.figure(of).parameter(samples, count)
    }

    /// From the least to the most that a receive costs, over the delays after which it clearly costs another
    /// time than `o_r_ns`. `None` where there is no such delay, and where `o_r` is not read off delays.
    pub(super) fn o_r_over_delays(&self, o_r_ns: f64) -> Option<Interval> {
        let first = self.data.first()?;
        if is_too_deep(first, self.figure(|e| e.rtt).value, self.figure(|e| e.plateau).value) {
            return None;
        }
        let by_delay = (0..first.signature.len())
            .map(|at| self.figure(|e| e.o_r_by_delay.get(at).copied().unwrap_or(f64::NAN)))
            .filter(|figure| figure.ci.is_some_and(|ci| !ci.contains(o_r_ns)))
            .map(|figure| figure.value);
        by_delay.fold(None, |span, ns| {
            let Interval { lo, hi } = span.unwrap_or(Interval { lo: o_r_ns, hi: o_r_ns });
            Some(Interval { lo: lo.min(ns), hi: hi.max(ns) })
        })
    }

    fn samples(&self, of: impl Fn(&LaunchData) -> &[f64]) -> Vec<f64> {
        self.data.iter().flat_map(|launch| of(launch).to_vec()).collect()
    }
}

/// Weighted quantiles by name. Values that are no number have no place among them.
pub(crate) fn quantiles(samples: impl IntoIterator<Item = (f64, u64)>) -> BTreeMap<String, f64> {
    let mut samples: Vec<(f64, u64)> = samples.into_iter().filter(|(value, _)| value.is_finite()).collect();
    samples.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total: u64 = samples.iter().map(|(_, count)| count).sum();
    let at = |q: f64| {
        let rank = (q * total as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        samples.iter().find(|(_, count)| {
            seen += count;
            seen >= rank
        })
    };
    [
        ("min", 0.0),
        ("p01", 0.01),
        ("p05", 0.05),
        ("p25", 0.25),
        ("p50", 0.5),
        ("p75", 0.75),
        ("p95", 0.95),
        ("p99", 0.99),
        ("p99.9", 0.999),
        ("max", 1.0),
    ]
    .into_iter()
    .filter_map(|(name, q)| at(q).map(|(value, _)| (name.to_owned(), *value)))
    .collect()
}

/// The figures of each launch that ratios between layers are made of: rtt, o_s, o_r and
/// the plateau.
pub fn each_launch(data: &[LaunchData]) -> Vec<[f64; 4]> {
    if data.is_empty() {
        return Vec::new();
    }
    let steady = issuing_is_steady(data);
    data.iter()
        .map(|launch| Estimate::of(launch, steady))
        .map(|e| [e.rtt, e.o_s.value_ns, e.o_r, e.plateau])
        .collect()
}

/// Reads parameters and doubts off launches. `None` where there are none.
pub fn extract(data: &[LaunchData], confidence: impl Into<Confidence>, precision: f64) -> Option<Extracted> {
    let first = data.first()?;
    let steady = issuing_is_steady(data);
    let estimates = data.iter().map(|launch| Estimate::of(launch, steady)).collect();
    let launches = Launches { data, estimates, steady, confidence: confidence.into() };
    let plateau = plateau(&launches, first.shape.window);
    let parameters = parameters(&launches, &plateau);
    let checks = checks(&launches, &plateau);
    let doubts = doubts::find(&launches, &parameters, &plateau, &checks, precision);
    Some(Extracted { parameters, plateau, checks, doubts })
}

/// Whether the bursts of the signature contradict each other.
pub(super) fn contradicts(launches: &Launches<'_>) -> bool {
    steady::contradict(launches.figure(|e| e.plateau).value, launches.figure(|e| e.bound).value)
}

/// Whether empty polls set the pace of the signature.
fn is_paced_by_polls(launches: &Launches<'_>) -> bool {
    let shape = &launches.data[0].shape;
    let of = |of: fn(&Estimate) -> f64| launches.figure(of).value;
    let plateau = of(|e| e.plateau);
    let depth = steady::depth(of(|e| e.rtt), plateau, shape.window);
    let overheads = Overheads { o_s_ns: of(|e| e.o_s.value_ns), o_r_ns: of(|e| e.o_r) };
    steady::is_paced_by_polls(shape.unpolled, of(|e| e.o_poll), overheads, plateau, depth)
}

fn plateau(launches: &Launches<'_>, window: usize) -> Plateau {
    let steady = launches.figure(|e| e.plateau);
    let idle = launches.figure(|e| e.idle);
    let half_window_ns = launches.estimates[0]
        .half_window_plateau
        .map(|_| launches.figure(|e| e.half_window_plateau.unwrap_or(f64::NAN)).value);
    let rtt = launches.figure(|e| e.rtt).value;
    let noise = median(launches.data.iter().map(|launch| noise_of_trips(&launch.rtt)));
    let starvation = starvation(launches, steady.value, window);
    let evidence = Evidence { window, smaller_ns: half_window_ns, noise, starvation };
    Plateau {
        limited_by: if contradicts(launches)
            || is_too_deep(&launches.data[0], rtt, steady.value)
            || is_paced_by_polls(launches)
        {
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

/// The standard deviation of single round trips by the distance of their quartiles, as a share.
fn noise_of_trips(trips: &RoundTrips) -> f64 {
    let quantiles = quantiles(trips.histogram_ns.iter().copied());
    let at = |name: &str| quantiles.get(name).copied().unwrap_or(f64::NAN);
    (at("p75") - at("p25")) / 1.35 / at("p50")
}

/// By how much the plateau may exceed g because stage times vary, as a share.
fn starvation(launches: &Launches<'_>, plateau_ns: f64, window: usize) -> f64 {
    let stream = Varying {
        deviation_ns: burst_deviation(launches.data),
        messages: launches.data[0].shape.bursts.last().copied().unwrap_or(1),
        plateau_ns,
        rtt_ns: launches.figure(|e| e.rtt).value,
        window,
        by_issuing: launches.steady,
    };
    steady::starvation(stream)
}

fn parameters(launches: &Launches<'_>, plateau: &Plateau) -> Parameters {
    let all = |of: fn(&Estimate) -> f64| launches.estimates.iter().map(of).collect::<Vec<_>>();
    let trips: u64 = launches.data.iter().map(|l| l.rtt.samples).sum();
    let mut rtt = launches.figure(|e| e.rtt).parameter([], trips);
    rtt.quantiles_ns = quantiles(launches.data.iter().flat_map(|l| l.rtt.histogram_ns.iter().copied()));
    // The histogram knows its extremes to 0.1 % only.
    let least = launches.data.iter().map(|l| l.rtt.min_ns).fold(f64::INFINITY, f64::min);
    let most = launches.data.iter().map(|l| l.rtt.max_ns).fold(f64::NEG_INFINITY, f64::max);
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
            let share = starvation(launches, plateau.value_ns, plateau.window);
            g.ci_ns = g.ci_ns.map(|ci| Interval { lo: ci.lo * (1.0 - share), ..ci });
        }
        Limit::Processor => {
            g = launches.measured(|e| e.plateau.max(e.bound), g_samples());
            g.status = Status::UpperBound;
        }
        Limit::Window | Limit::Unknown => {
            g = Parameter {
                status: Status::Unobservable,
                value_ns: None,
                ci_ns: None,
                quantiles_ns: BTreeMap::new(),
                ..g
            };
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
        G: PerByte {
            status: Status::Unobservable,
            value_ns_per_byte: None,
            ci_ns_per_byte: None,
            quantiles_ns_per_byte: BTreeMap::new(),
            samples: 0,
            launches: launches.data.len(),
        },
    }
}

fn checks(launches: &Launches<'_>, plateau: &Plateau) -> Checks {
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

/// A stream of n messages takes a round trip and n - 1 times the slowest of its stages.
fn streams(launches: &Launches<'_>, plateau: &Plateau) -> Vec<StreamCheck> {
    let rtt = launches.figure(|e| e.rtt).value;
    let busy = launches.figure(|e| e.o_s.value_ns + e.o_r).value;
    let over_launches = |at: usize, of: fn(&super::data::Stream) -> &Vec<f64>| {
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
                ci_ns: launches.confidence.interval(measured_ns, &measured),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Launches as a peer, a machine or a file could leave them: some give no value.
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
            shape: super::super::data::Shape {
                bursts: vec![8, 16],
                delays_ns,
                window: 64,
                ..Default::default()
            },
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
                let text =
                    serde_json::to_string(&(&extracted.parameters, &extracted.plateau, &extracted.checks))
                        .unwrap();
                let read: (Parameters, Plateau, Checks) =
                    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
                assert_eq!(read.0, extracted.parameters);
            }
        }
    }

    #[test]
    fn quantiles_respect_weights() {
        let quantiles = quantiles([(1.0, 98), (5.0, 1), (9.0, 1), (f64::NAN, 1)]);
        assert_eq!(
            (quantiles["min"], quantiles["p50"], quantiles["p99"], quantiles["max"]),
            (1.0, 1.0, 5.0, 9.0)
        );
    }

    #[test]
    fn the_send_burst_ends_where_a_request_costs_more() {
        let burst = |m: usize, ns: f64| Burst { m, per_batch: 1, issue_ns: vec![ns], done_ns: vec![] };
        let growing = [burst(1, 30.0), burst(2, 40.0), burst(4, 60.0), burst(8, 200.0)];
        assert_eq!(send_overhead(&growing, 20.0), SendOverhead { value_ns: 10.0, m: 4 });
        assert_eq!(send_overhead(&growing[..1], 20.0).m, 1);
        assert_eq!(send_overhead(&[], 20.0).m, 0);
    }
}
