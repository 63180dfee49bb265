//! The figures and parameters computed from several launches.
//!
//! Every figure is computed for each launch first, as the median over its rounds. Both figures of a ratio or
//! a difference are of one launch. The reported figure is the median over the launches with its
//! distribution-free interval.
//!
//! The parameters are those of one pair alone, computed as from a LogP signature: o_s from bursts, o_s +
//! o_r from a delayed stream, and the time per message from a stream without delay. L is rtt / 2 - o_s -
//! o_r. The predicate for the term that sets the time per message is that of the signature.

use super::data::{CrowdData, PairTimes, Round, Timed};
use super::direct::BISECTED_FROM;
use super::doubts;
use super::record::{
    Bisection, Compared, Contention, Halves, ManyToOne, OneToMany, PairTrip, Pairs, Quotient, Rate,
};
use crate::figure::Figure;
use crate::reading::Reading;
use crate::record::parameter::{Parameter, Parameters, PerByte, Status};
use crate::record::plateau::{Limit, Plateau};
use crate::stats::{Confidence, deviation_of_neighbours, median, quantile_of_sorted, quantiles, sorted};
use crate::steady::{Evidence, Varying, gap_interval, limited_by, starvation};

/// The parameters of a pair in one launch: rtt, o_s, o_r, time per message, L.
const COMPARED: [&str; 5] = ["rtt", "o_s", "o_r", "g", "L"];

/// Computes figures and warnings from launches. Returns `None` if no launch is complete.
pub fn extract(
    data: &[CrowdData],
    confidence: impl Into<Confidence>,
    precision: f64,
) -> Option<Reading<Contention>> {
    let procs = data.first()?.procs;
    let launches = CrowdLaunches {
        data: data.iter().filter(|launch| is_whole(launch, procs)).collect(),
        confidence: confidence.into(),
    };
    let first = launches.data.first()?;
    let plateau = plateau(&launches, first.shape.window);
    let compared = COMPARED.into_iter().enumerate().map(|(at, name)| compared(&launches, at, name)).collect();
    let found = Contention {
        procs,
        pairs: pairs(&launches, procs),
        halves: Halves { pairs: procs / 2, compared },
        one_to_many: OneToMany {
            repliers: procs - 1,
            gap: launches.parameter(|round| round.one_to_many.ns, |round| round.one_to_many.samples),
            ratio: launches.quotient(|launch| over_rounds(launch, |r| r.one_to_many.ns) / alone_gap(launch)),
        },
        many_to_one: (1..procs).map(|requesters| many_to_one(&launches, requesters)).collect(),
        rates: rates(&launches, procs),
        bisection: bisection(&launches, procs),
        plateau,
        launches: data.to_vec(),
    };
    let parameters = parameters(&launches, &found.plateau);
    let doubts = doubts::find(&parameters, &found, &launches.hidden_pairs(), precision);
    Some(Reading { parameters, found, doubts })
}

/// Reports that a launch has the shape that the extraction needs.
fn is_whole(launch: &CrowdData, procs: usize) -> bool {
    let Some(first) = launch.rounds.first() else { return false };
    let is_alike = |round: &Round| {
        round.halves.len() == procs / 2
            && round.many_to_one.len() == procs - 1
            && round.many_to_one.iter().enumerate().all(|(at, gaps)| gaps.len() == at + 1)
            && round.pairs.len() == first.pairs.len()
            && round
                .pairs
                .iter()
                .zip(&first.pairs)
                .all(|(a, b)| a.pairs == b.pairs && a.streams.len() == a.pairs)
    };
    launch.procs == procs
        && procs >= 2
        && launch.rtt.len() == procs
        && launch.rtt.iter().all(|row| row.len() == procs)
        && launch.rounds.iter().all(is_alike)
}

/// The parameters that follow from a delayed stream.
const OF_DELAY: [&str; 2] = ["o_r", "L"];
/// A delayed stream shows the overheads if a message takes at least this many times as long as in the stream without
/// delay. Otherwise something else than the requester sets its pace.
const SHOWS: f64 = 1.1;

/// Returns the median over the rounds of a launch.
fn over_rounds(launch: &CrowdData, of: impl Fn(&Round) -> f64) -> f64 {
    median(launch.rounds.iter().map(of))
}

fn alone_gap(launch: &CrowdData) -> f64 {
    over_rounds(launch, |round| round.alone.stream.ns)
}

/// Returns the parameters of a pair in one launch, in the order of [`COMPARED`].
fn of_pair(launch: &CrowdData, pair: impl Fn(&Round) -> &PairTimes) -> [f64; 5] {
    let of = |timed: fn(&PairTimes) -> Timed| over_rounds(launch, |round| timed(pair(round)).ns);
    let (rtt, o_s, busy, stream) = (of(|p| p.rtt), of(|p| p.o_s), of(|p| p.busy), of(|p| p.stream));
    [rtt, o_s, busy - o_s, stream, rtt / 2.0 - busy]
}

/// Returns the number of samples behind a parameter of [`COMPARED`] in one round.
fn samples_of_pair(pair: &PairTimes, at: usize) -> u64 {
    [pair.rtt, pair.o_s, pair.busy, pair.stream, pair.rtt][at].samples
}

/// Returns the rate of K requesters or pairs together, in messages per nanosecond.
fn together(streams: &[Timed]) -> f64 {
    streams.iter().map(|stream| 1.0 / stream.ns).sum()
}

/// Returns the time per message of one of several requesters: their number over the sum of their rates.
fn shared_gap(streams: &[Timed]) -> f64 {
    streams.len() as f64 / together(streams)
}

struct CrowdLaunches<'a> {
    data: Vec<&'a CrowdData>,
    confidence: Confidence,
}

impl CrowdLaunches<'_> {
    fn quotient(&self, of: impl Fn(&CrowdData) -> f64) -> Quotient {
        let Figure { value, ci, launches } =
            Figure::over(self.data.iter().map(|launch| of(launch)), self.confidence);
        Quotient { value: finite(value), ci, launches }
    }

    /// Returns a parameter from its value in each launch.
    fn parameter_of(
        &self,
        by_launch: impl Fn(&CrowdData) -> f64,
        by_round: Vec<f64>,
        samples: u64,
    ) -> Parameter {
        let figure = self.quotient(by_launch);
        let is_known = figure.launches > 0;
        Parameter {
            status: if is_known { Status::Measured } else { Status::Unobservable },
            value_ns: is_known.then_some(figure.value),
            ci_ns: figure.ci,
            quantiles_ns: quantiles(by_round.into_iter().map(|ns| (ns, 1))),
            samples,
            launches: figure.launches,
        }
    }

    /// Returns the standard deviation of a mean time over the rounds, without drift, for as many messages as
    /// `scale` makes of the samples of a mean.
    fn deviation(&self, of: impl Fn(&Round) -> Timed, scale: fn(f64) -> f64) -> f64 {
        let rounds: Vec<Timed> = self.data.iter().flat_map(|launch| launch.rounds.iter().map(&of)).collect();
        let samples = median(rounds.iter().map(|timed| timed.samples as f64));
        let ns: Vec<f64> = rounds.iter().map(|timed| timed.ns).collect();
        deviation_of_neighbours(&ns) * scale(samples)
    }

    /// Returns a parameter from its value in each round.
    fn parameter(&self, of: impl Fn(&Round) -> f64, samples: impl Fn(&Round) -> u64) -> Parameter {
        let rounds = || self.data.iter().flat_map(|launch| &launch.rounds);
        // A record is a file that others may have written: its counts may have any value.
        let samples = rounds().map(samples).fold(0, u64::saturating_add);
        self.parameter_of(|launch| over_rounds(launch, &of), rounds().map(&of).collect(), samples)
    }

    /// Reports that the crowd, and not the delay, sets the pace of a pair's delayed stream: waiting then looks like
    /// overhead.
    fn paces_the_delayed(&self, pair: usize) -> bool {
        let over_stream = self.data.iter().map(|launch| {
            let of =
                |timed: fn(&PairTimes) -> Timed| over_rounds(launch, |round| timed(&round.halves[pair]).ns);
            (of(|pair| pair.busy) + launch.shape.delay_ns) / of(|pair| pair.stream)
        });
        median(over_stream) < SHOWS
    }

    /// Returns the pairs whose overheads in the crowd are hidden.
    fn hidden_pairs(&self) -> Vec<usize> {
        // A whole launch has a pair at least.
        let pairs = self.data[0].rounds.first().map_or(0, |round| round.halves.len());
        (0..pairs).filter(|&pair| self.paces_the_delayed(pair)).collect()
    }

    /// Returns the share by which the time per message of a pair alone may exceed g.
    fn starvation(&self, window: usize) -> f64 {
        let messages = self.data[0].rounds.first().map_or(1, |round| round.alone.stream.samples) as usize;
        or_none(starvation(Varying {
            deviation_ns: self.deviation(|round| round.alone.stream, |samples| samples),
            messages,
            plateau_ns: self.quotient(alone_gap).value,
            rtt_ns: self.quotient(|launch| of_pair(launch, alone)[0]).value,
            window,
            by_issuing: false,
        }))
    }

    fn pair(&self, pair: impl Fn(&Round) -> &PairTimes, at: usize) -> Parameter {
        let rounds = self.data.iter().flat_map(|launch| &launch.rounds);
        let samples = rounds.map(|round| samples_of_pair(pair(round), at)).fold(0, u64::saturating_add);
        let values = self.data.iter().map(|launch| of_pair(launch, &pair)[at]).collect();
        self.parameter_of(|launch| of_pair(launch, &pair)[at], values, samples)
    }
}

/// Returns `value`, or 0 if it is not finite: JSON has no such numbers, and 0 launches mark the figure as
/// missing.
fn finite(value: f64) -> f64 {
    if value.is_finite() { value } else { 0.0 }
}

fn alone(round: &Round) -> &PairTimes {
    &round.alone
}

fn compared(launches: &CrowdLaunches<'_>, at: usize, name: &str) -> Compared {
    let pairs = launches.data[0].rounds.first().map_or(0, |round| round.halves.len());
    let hidden = if OF_DELAY.contains(&name) { launches.hidden_pairs() } else { Vec::new() };
    let of_alone = |launch: &CrowdData| of_pair(launch, alone)[at];
    let of_crowd_pair = |launch: &CrowdData, pair: usize| {
        if hidden.contains(&pair) { f64::NAN } else { of_pair(launch, |round| &round.halves[pair])[at] }
    };
    let of_crowd = |launch: &CrowdData| of_crowd_pair(launch, 0);
    let is_positive = launches.data.iter().all(|launch| of_alone(launch) > 0.0 && of_crowd(launch) > 0.0);
    let medians =
        (0..pairs).map(|pair| median(launches.data.iter().map(|launch| of_crowd_pair(launch, pair))));
    let medians = sorted(medians.filter(|median| median.is_finite()));
    Compared {
        parameter: name.into(),
        alone: launches.pair(alone, at),
        crowd: match hidden.contains(&0) {
            true => Parameter::unobservable(),
            false => launches.pair(|round| &round.halves[0], at),
        },
        ratio: is_positive.then(|| launches.quotient(|launch| of_crowd(launch) / of_alone(launch))),
        difference_ns: launches.quotient(|launch| of_crowd(launch) - of_alone(launch)),
        least_ns: finite(quantile_of_sorted(&medians, 0.0)),
        most_ns: finite(quantile_of_sorted(&medians, 1.0)),
    }
}

fn pairs(launches: &CrowdLaunches<'_>, procs: usize) -> Pairs {
    let of = |launch: &CrowdData, from: usize, to: usize| launch.rtt[from][to].map_or(f64::NAN, |t| t.ns);
    let middle = |from: usize, to: usize| launches.quotient(|launch| of(launch, from, to));
    let mut ends: Option<[(f64, usize, usize); 2]> = None;
    let mut cell = |from: usize, to: usize| {
        let figure = middle(from, to);
        if from == to || figure.launches == 0 {
            return None;
        }
        let here = (figure.value, from, to);
        let [least, most] = ends.unwrap_or([here, here]);
        ends = Some([if here.0 < least.0 { here } else { least }, if here.0 > most.0 { here } else { most }]);
        Some(figure.value)
    };
    let rtt_ns = (0..procs).map(|from| (0..procs).map(|to| cell(from, to)).collect()).collect();
    let [least, most] = ends.unwrap_or([(0.0, 0, 1), (0.0, 0, 1)]).map(|(_, requester, replier)| {
        let cells = || launches.data.iter().filter_map(|launch| launch.rtt[requester][replier]);
        let samples = cells().map(|timed| timed.samples).fold(0, u64::saturating_add);
        let values = cells().map(|timed| timed.ns).collect();
        let rtt = launches.parameter_of(|launch| of(launch, requester, replier), values, samples);
        PairTrip { requester, replier, rtt }
    });
    let most_over_least = launches.quotient(|launch| {
        of(launch, most.requester, most.replier) / of(launch, least.requester, least.replier)
    });
    Pairs { rtt_ns, least, most, most_over_least }
}

fn many_to_one(launches: &CrowdLaunches<'_>, requesters: usize) -> ManyToOne {
    let gap = |round: &Round, k: usize| shared_gap(&round.many_to_one[k - 1]);
    let samples = |round: &Round| {
        round.many_to_one[requesters - 1].iter().map(|t| t.samples).fold(0, u64::saturating_add)
    };
    ManyToOne {
        requesters,
        gap: launches.parameter(|round| gap(round, requesters), samples),
        ratio: launches.quotient(|launch| {
            over_rounds(launch, |round| gap(round, requesters)) / over_rounds(launch, |round| gap(round, 1))
        }),
        model: requesters as f64,
        slowest_over_fastest: launches.quotient(|launch| {
            over_rounds(launch, |round| {
                let gaps = sorted(round.many_to_one[requesters - 1].iter().map(|timed| timed.ns));
                gaps[gaps.len() - 1] / gaps[0]
            })
        }),
    }
}

fn rates(launches: &CrowdLaunches<'_>, procs: usize) -> Vec<Rate> {
    // Of two rounds, the median of the rates is not that of the times inverted.
    let one = |launch: &CrowdData| over_rounds(launch, |round| 1.0 / round.alone.stream.ns);
    let rate = |pairs: usize, of: &dyn Fn(&Round) -> f64| Rate {
        pairs,
        messages_per_s: launches.quotient(|launch| 1e9 * over_rounds(launch, of)),
        ratio: launches.quotient(|launch| over_rounds(launch, of) / one(launch)),
        model: pairs as f64,
    };
    let mut rates = vec![rate(1, &|round| 1.0 / round.alone.stream.ns)];
    let between = launches.data[0].rounds[0].pairs.iter().enumerate();
    rates.extend(between.map(|(at, p)| rate(p.pairs, &|round| together(&round.pairs[at].streams))));
    if procs >= 4 {
        let streams = |round: &Round| round.halves.iter().map(|pair| pair.stream).collect::<Vec<_>>();
        rates.push(rate(procs / 2, &|round| together(&streams(round))));
    }
    rates
}

/// Returns the rates of pairs across the bisection and of neighbours. Records of earlier versions have none.
fn bisection(launches: &CrowdLaunches<'_>, procs: usize) -> Option<Bisection> {
    let pairs = procs / 2;
    let has = |round: &Round| round.across.len() == pairs && round.neighbours.len() == pairs;
    let all_have = launches.data.iter().all(|launch| launch.rounds.iter().all(has));
    if procs < BISECTED_FROM || !all_have {
        return None;
    }
    let rate = |of: fn(&Round) -> &Vec<Timed>| {
        move |launch: &CrowdData| over_rounds(launch, |round| 1e9 * together(of(round)))
    };
    let (across, neighbours) = (rate(|round| &round.across), rate(|round| &round.neighbours));
    Some(Bisection {
        pairs,
        by: launches.data[0].bisected_by,
        across_per_s: launches.quotient(across),
        neighbours_per_s: launches.quotient(neighbours),
        ratio: launches.quotient(|launch| across(launch) / neighbours(launch)),
        model: 1.0,
    })
}

/// Returns a share of noise; 0 if there are too few rounds to know it.
fn or_none(share: f64) -> f64 {
    if share.is_finite() { share } else { 0.0 }
}

fn plateau(launches: &CrowdLaunches<'_>, window: usize) -> Plateau {
    let steady = launches.quotient(alone_gap);
    let idle = launches.quotient(|launch| alone_gap(launch) - over_rounds(launch, |r| r.alone.busy.ns));
    // A poll that finds nothing delays a reply that comes during it. The processor may be busy with such polls.
    let unpolled = launches
        .quotient(|launch| alone_gap(launch) - over_rounds(launch, |r| r.alone.busy.ns + r.alone.polls_ns));
    let half =
        (window > 1).then(|| launches.quotient(|launch| over_rounds(launch, |r| r.half_window.ns)).value);
    let rtt = launches.quotient(|launch| of_pair(launch, alone)[0]).value;
    let noise = launches.deviation(|round| round.alone.rtt, f64::sqrt) / rtt;
    let evidence =
        Evidence { window, smaller_ns: half, noise: or_none(noise), starvation: launches.starvation(window) };
    Plateau {
        limited_by: limited_by(steady.value, unpolled.value, unpolled.ci, evidence, rtt),
        value_ns: steady.value,
        ci_ns: steady.ci,
        window,
        half_window_ns: half,
        idle_ns: (idle.launches > 0).then_some(idle.value),
    }
}

fn parameters(launches: &CrowdLaunches<'_>, plateau: &Plateau) -> Parameters {
    let mut g = launches.pair(alone, 3);
    match plateau.limited_by {
        Limit::Gap => {
            let share = launches.starvation(plateau.window);
            g.ci_ns = g.ci_ns.map(|ci| gap_interval(ci, share, plateau.value_ns));
        }
        Limit::Processor => g.status = Status::UpperBound,
        Limit::Window | Limit::Unknown => g = g.without_value(),
    }
    Parameters {
        rtt: launches.pair(alone, 0),
        o_s: launches.pair(alone, 1),
        o_r: launches.pair(alone, 2),
        o_poll: Parameter::unobservable(),
        g,
        L: launches.pair(alone, 4),
        G: PerByte::unobservable(),
    }
}
