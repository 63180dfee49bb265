//! The figures read off several launches.
//!
//! As with the LogP signature, every figure is computed for each launch first; its value is
//! the median over the launches and its interval the distribution-free one of that median.
//! Nothing is clamped.
//!
//! For each size n:
//! * `T(n)`: half of a round trip of n bytes both ways.
//! * `o_s(n)`: short bursts of requests of n bytes alone, from quiet.
//! * `o_r(n)`: one receive of n bytes after staying away. Where it had to wait for a part of
//!   them it is an upper bound.
//! * `L(n)` = T(n) - o_s(n) - o_r(n).
//! * `g(n)`: the steady time per message of a stream, max(g(n), o_s(n) + o_r, rtt / window),
//!   if it is neither the processor's nor the window's; by the same rule as in a signature.
//!
//! Which sizes form a segment is decided by T(n) alone, over all launches; lines are then
//! laid through the figures of each launch. `G` is the slope of g(n). Where the largest
//! size of a segment bounds g(n) only, a byte's share of that bound is what G is at most.

use super::data::{BulkLaunch, SizeData};
use super::doubts;
use super::fit::{NOISE, Point, SIZES_AT_LEAST, Straight, segments};
use super::pattern::{issue_rises, rises};
use super::record::{Bulk, Carried, Change, Classic, Linear, Overlap, Overlaps, Rate, Segment, SizeFigures};
use crate::figure::Figure;
use crate::logp::data::Burst;
use crate::logp::send_overhead::send_overhead;
use crate::record::doubt::Doubt;
use crate::record::parameter::{Parameter, Parameters, PerByte, Status};
use crate::record::plateau::{Limit, Plateau};
use crate::show::{Bytes, Number, Percent};
use crate::stats::{Confidence, Interval, deviation_of_neighbours, median};
use crate::steady::{self, Evidence, Overheads, Varying, limited_by};
use std::collections::BTreeMap;

/// A call timed by itself may take so many times what it takes in a stream, whose data lie in caches.
const BEYOND_STREAM: f64 = 2.0;
/// Stages on the way that take up a message whole, one after the other, at most: a few.
pub(super) const HOPS: f64 = 2.5;

const NS_PER_S: f64 = 1e9;
/// Distance of g(n) from a line, as a share, that is taken for noise where its interval is narrower.
const NOISE_OF_GAP: f64 = 0.002;
/// Share of the receives that may wait without making o_r a bound.
const WAITED: f64 = 0.05;

/// What several launches say about a layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Extracted {
    /// The parameters at the smallest size, and G of the largest sizes.
    pub parameters: Parameters,
    /// Everything else. Without the launches: they are the caller's.
    pub bulk: Bulk,
    /// Doubts.
    pub doubts: Vec<Doubt>,
}

/// What one launch says about one size.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Estimate {
    one_way: f64,
    o_s: f64,
    o_r: f64,
    latency: f64,
    steady: f64,
    /// What g(n) is at most, whatever sets the pace.
    bound: f64,
    half_window: f64,
    idle: f64,
}

/// Steady time per message of each batch of a stream: off the time to issue where issuing is
/// steady, otherwise off the time to the last reply.
///
/// With stages of varying pace the latter rises by more than the steady time, for queues
/// between them are still growing; the former does not, but needs a burst that fills every
/// queue in front of the slowest stage.
fn steady_rises(size: &SizeData, issuing_is_steady: bool) -> Vec<f64> {
    if issuing_is_steady { issue_rises(&size.stream) } else { rises(&size.stream) }
}

/// The rise between the medians of the two longest bursts, for each message: one of many bursts
/// that was interrupted spoils one time, not a difference of two.
fn median_rise(bursts: &[Burst], times: fn(&Burst) -> &Vec<f64>) -> f64 {
    let [.., half, whole] = bursts else { return f64::NAN };
    let median_of = |burst| median(times(burst).iter().copied());
    (median_of(whole) - median_of(half)) / whole.m.saturating_sub(half.m) as f64
}

/// Whether, at the size `at`, the steady time is read off the time to issue.
fn issuing_is_steady(data: &[BulkLaunch], at: usize) -> bool {
    let over = |times: fn(&Burst) -> &Vec<f64>| {
        median(data.iter().map(|launch| median_rise(&launch.sizes[at].stream, times)))
    };
    let deviation_ns = burst_deviation(data, at);
    let messages = data[0].sizes[at].stream.last().map_or(1, |burst| burst.m);
    steady::is_by_issuing(over(|burst| &burst.issue_ns), over(|burst| &burst.done_ns), deviation_ns, messages)
}

/// The standard deviation of the time of the longest burst at the size `at`.
fn burst_deviation(data: &[BulkLaunch], at: usize) -> f64 {
    steady::burst_deviation(data.iter().filter_map(|launch| launch.sizes[at].stream.last()))
}

impl Estimate {
    fn of(size: &SizeData, smallest: &SizeData, timer_ns: f64, issuing_is_steady: bool) -> Self {
        let med = |values: Vec<f64>| median(values);
        let one_way = med(size.rtt_ns.clone()) / 2.0;
        let request_rtt_ns = one_way + med(smallest.rtt_ns.clone()) / 2.0;
        let o_s = send_overhead(&size.issue, timer_ns).value_ns;
        let o_r = med(size.o_r_ns.clone());
        let of_done: fn(&Burst) -> &Vec<f64> = |burst| &burst.done_ns;
        let times: fn(&Burst) -> &Vec<f64> =
            if issuing_is_steady { |burst| &burst.issue_ns } else { of_done };
        let steady = median_rise(&size.stream, times);
        let longest = size.stream.last();
        let bound = |burst: &Burst| {
            let done_ns = med(burst.done_ns.clone()) - timer_ns;
            steady::slowest_stage_at_most(done_ns, request_rtt_ns, burst.m)
        };
        let busy = median_rise(&size.delayed, of_done) - med(size.d_measured_ns.clone());
        Self {
            one_way,
            o_s,
            o_r,
            latency: one_way - o_s - o_r,
            steady,
            bound: longest.map_or(f64::NAN, bound),
            half_window: median_rise(&size.half_window, of_done),
            idle: steady - busy,
        }
    }
}

/// Several launches and what each says about each size.
pub(super) struct Launches<'a> {
    pub(super) data: &'a [BulkLaunch],
    /// The sizes, ascending.
    pub(super) sizes: Vec<usize>,
    /// By launch, then by size.
    estimates: Vec<Vec<Estimate>>,
    /// By size: off what the steady time is read.
    issuing_is_steady: Vec<bool>,
    confidence: Confidence,
}

/// Reads figures and doubts off launches. `None` where they measured nothing.
pub fn extract(data: &[BulkLaunch], confidence: impl Into<Confidence>, precision: f64) -> Option<Extracted> {
    let first = data.first().filter(|first| !first.sizes.is_empty())?;
    let sizes: Vec<usize> = first.sizes.iter().map(|size| size.size_bytes).collect();
    // A record is a file: launches of other sizes do not belong together.
    let same =
        |launch: &BulkLaunch| launch.sizes.iter().map(|size| size.size_bytes).eq(sizes.iter().copied());
    if !data.iter().all(same) || !sizes.is_sorted_by(|a, b| a < b) {
        return None;
    }
    let steady: Vec<bool> = (0..sizes.len()).map(|at| issuing_is_steady(data, at)).collect();
    let estimate = |launch: &BulkLaunch| {
        let sizes = launch.sizes.iter().zip(&steady);
        sizes.map(|(size, &steady)| Estimate::of(size, &launch.sizes[0], launch.timer_ns, steady)).collect()
    };
    let estimates = data.iter().map(estimate).collect();
    let launches =
        Launches { data, sizes, estimates, issuing_is_steady: steady, confidence: confidence.into() };
    let bulk = launches.bulk();
    let parameters = launches.parameters(&bulk);
    let doubts = doubts::find(&launches, &parameters, &bulk, precision);
    Some(Extracted { parameters, bulk, doubts })
}

impl Launches<'_> {
    fn over(&self, values: impl IntoIterator<Item = f64>) -> Figure {
        Figure::over(values, self.confidence)
    }

    /// T at the size `at`, of each launch.
    pub(super) fn one_way(&self, at: usize) -> impl Iterator<Item = f64> {
        self.estimates.iter().map(move |sizes| sizes[at].one_way)
    }

    /// The median over the launches at the size `at`.
    fn figure(&self, at: usize, of: impl Fn(&Estimate) -> f64) -> Figure {
        self.over(self.estimates.iter().map(|sizes| of(&sizes[at])))
    }

    /// Batches of the size `at` in all launches.
    fn batches(&self, at: usize, of: impl Fn(&BulkLaunch, &SizeData) -> Vec<f64>) -> Vec<f64> {
        self.data.iter().flat_map(|launch| of(launch, &launch.sizes[at])).collect()
    }

    fn count(&self, at: usize, of: impl Fn(&SizeData) -> u64) -> u64 {
        self.data.iter().map(|launch| of(&launch.sizes[at])).fold(0, u64::saturating_add)
    }

    fn bulk(&self) -> Bulk {
        let sizes: Vec<SizeFigures> = (0..self.sizes.len()).map(|at| self.size(at)).collect();
        let runs = self.runs(&sizes);
        let segments = runs.iter().map(|&(from, to)| self.segment(&sizes, from, to)).collect();
        let changes = runs.windows(2).map(|pair| self.change(&sizes, pair[0], pair[1].0)).collect();
        Bulk {
            largest_bytes: None,
            small_bytes: self.data[0].shape.small_bytes,
            segments,
            changes,
            classic: self.classic(),
            overlap: self.overlap(runs[runs.len() - 1]),
            sizes,
            launches: Vec::new(),
        }
    }

    #[allow(non_snake_case, reason = "the names of the field")]
    fn size(&self, at: usize) -> SizeFigures {
        let size_bytes = self.sizes[at];
        let T = {
            let halves = self.batches(at, |_, s| s.rtt_ns.iter().map(|ns| ns / 2.0).collect());
            self.figure(at, |e| e.one_way).parameter(halves, self.count(at, |s| s.rtt_samples))
        };
        let alone = self.batches(at, |launch, size| {
            let m = send_overhead(&size.issue, launch.timer_ns).m;
            let burst = size.issue.iter().find(|burst| burst.m == m);
            let each = |ns: &f64| (ns - launch.timer_ns) / m as f64;
            burst.map(|burst| burst.issue_ns.iter().map(each).collect()).unwrap_or_default()
        });
        let o_s = self.sampled(self.figure(at, |e| e.o_s), alone);
        let mut o_r = self
            .figure(at, |e| e.o_r)
            .parameter(self.batches(at, |_, s| s.o_r_ns.clone()), self.count(at, |s| s.o_r_samples));
        if self.count(at, |s| s.o_r_waited) as f64 > WAITED * o_r.samples as f64 {
            o_r.status = Status::UpperBound;
        }
        let L = self.sampled(
            self.figure(at, |e| e.latency),
            self.estimates.iter().map(|sizes| sizes[at].latency).collect(),
        );
        let plateau = self.plateau(at);
        let g_of = |of: fn(&Estimate) -> f64| {
            let samples = self.batches(at, |_, s| steady_rises(s, self.issuing_is_steady[at]));
            self.sampled(self.figure(at, of), samples)
        };
        let mut g = g_of(|e| e.steady);
        match plateau.limited_by {
            Limit::Gap => {
                let share = self.starvation(at, plateau.value_ns, plateau.window);
                g.ci_ns = g.ci_ns.map(|ci| Interval { lo: ci.lo * (1.0 - share), ..ci });
            }
            Limit::Processor => {
                g = g_of(|e| e.steady.max(e.bound));
                g.status = Status::UpperBound;
            }
            Limit::Window | Limit::Unknown => g = without_value(g),
        }
        let bytes = size_bytes as f64;
        SizeFigures {
            size_bytes,
            // Where the rise of bursts cannot be, their length over their time is the stream's rate.
            streaming: self.rate(
                self.estimates.iter().map(|sizes| {
                    bytes / if self.contradicts(at) { sizes[at].bound } else { sizes[at].steady }
                }),
            ),
            single: self.rate(self.estimates.iter().map(|sizes| bytes / sizes[at].one_way)),
            T,
            o_s,
            o_r,
            g,
            L,
            plateau,
        }
    }

    fn sampled(&self, figure: Figure, samples: Vec<f64>) -> Parameter {
        let count = samples.len() as u64;
        figure.parameter(samples, count)
    }

    /// A rate from bytes per nanosecond.
    fn rate(&self, bytes_per_ns: impl Iterator<Item = f64>) -> Rate {
        let figure = self.over(bytes_per_ns.map(|rate| rate * NS_PER_S));
        Rate { value_bytes_per_s: figure.value, ci_bytes_per_s: figure.ci }
    }

    fn plateau(&self, at: usize) -> Plateau {
        let steady = self.figure(at, |e| e.steady);
        let idle = self.figure(at, |e| e.idle);
        let half = self.figure(at, |e| e.half_window).value;
        let half_window_ns = half.is_finite().then_some(half);
        let rtt = self.request_rtt(at);
        let shape = self.data[0].shape.sizes.get(at);
        let window = shape.map_or(0, |size| size.window);
        let evidence = Evidence {
            window,
            smaller_ns: half_window_ns,
            noise: self.noise_of_trips(at),
            starvation: self.starvation(at, steady.value, window),
        };
        Plateau {
            limited_by: if self.contradicts(at) || self.is_too_deep(at) || self.is_paced_by_polls(at) {
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

    /// Whether the bursts at the size `at` contradict each other.
    pub(super) fn contradicts(&self, at: usize) -> bool {
        steady::contradict(self.figure(at, |e| e.steady).value, self.figure(at, |e| e.bound).value)
    }

    /// Whether the stream never became steady at the size `at`.
    pub(super) fn is_too_deep(&self, at: usize) -> bool {
        let shape = self.data[0].shape.sizes.get(at);
        let (longest, window) =
            shape.map_or((0, 0), |size| (size.bursts.last().copied().unwrap_or(0), size.window));
        steady::is_too_deep(longest, self.request_rtt(at), self.figure(at, |e| e.steady).value, window)
    }

    /// The median of a poll that finds nothing.
    fn o_poll(&self) -> Figure {
        self.over(self.data.iter().map(|launch| median(launch.o_poll_ns.iter().copied())))
    }

    /// Whether empty polls set the pace at the size `at`.
    fn is_paced_by_polls(&self, at: usize) -> bool {
        let shape = self.data[0].shape.sizes.get(at);
        let (granted, window) = shape.map_or((0, 0), |size| (size.unpolled, size.window));
        let o_poll = self.o_poll().value;
        let overheads =
            Overheads { o_s_ns: self.figure(at, |e| e.o_s).value, o_r_ns: self.figure(0, |e| e.o_r).value };
        let steady = self.figure(at, |e| e.steady).value;
        let depth = steady::depth(self.request_rtt(at), steady, window);
        steady::is_paced_by_polls(granted, o_poll, overheads, steady, depth)
    }

    /// The round trip of a request of the size `at` that the smallest reply answers.
    fn request_rtt(&self, at: usize) -> f64 {
        self.figure(at, |e| e.one_way).value + self.figure(0, |e| e.one_way).value
    }

    /// The standard deviation of a round trip at the size `at`, as a share.
    fn noise_of_trips(&self, at: usize) -> f64 {
        let trips = self.data[0].shape.sizes.get(at).map_or(1, |size| size.trips) as f64;
        let of = |launch: &BulkLaunch| {
            let batches = &launch.sizes[at].rtt_ns;
            deviation_of_neighbours(batches) * trips.sqrt() / median(batches.iter().copied())
        };
        median(self.data.iter().map(of))
    }

    /// By how much the steady time at the size `at` may exceed g(n), as a share.
    fn starvation(&self, at: usize, plateau_ns: f64, window: usize) -> f64 {
        steady::starvation(Varying {
            deviation_ns: burst_deviation(self.data, at),
            messages: self.data[0].sizes[at].stream.last().map_or(1, |burst| burst.m),
            plateau_ns,
            rtt_ns: self.request_rtt(at),
            window,
            by_issuing: self.issuing_is_steady[at],
        })
    }

    /// The runs of sizes over which T(n) is a line: first and last index of each.
    fn runs(&self, sizes: &[SizeFigures]) -> Vec<(usize, usize)> {
        let points: Vec<Point> = sizes
            .iter()
            .map(|size| {
                let ns = size.T.value_ns.unwrap_or(f64::NAN);
                let half_width = size.T.ci_ns.map_or(0.0, Interval::half_width);
                Point::new(size.size_bytes, ns, half_width.max(NOISE * ns))
            })
            .collect();
        let begins = segments(&points, SIZES_AT_LEAST);
        let ends = begins.iter().skip(1).copied().chain([sizes.len()]);
        begins.iter().zip(ends).map(|(&from, end)| (from, end - 1)).collect()
    }

    /// The line through the figures of one launch at the indices `at`. Each counts by its
    /// distance relative to T.
    fn straight(&self, launch: usize, at: &[usize], of: impl Fn(&Estimate) -> f64) -> Option<Straight> {
        let estimates = &self.estimates[launch];
        let point = |&at: &usize| Point::new(self.sizes[at], of(&estimates[at]), estimates[at].one_way);
        Straight::through(&at.iter().map(point).collect::<Vec<_>>())
    }

    fn slopes(&self, at: &[usize], of: impl Fn(&Estimate) -> f64 + Copy) -> Vec<f64> {
        let slope = |launch| self.straight(launch, at, of).map_or(f64::NAN, |line| line.slope);
        (0..self.data.len()).map(slope).collect()
    }

    /// Both ends of a line, over the launches.
    fn linear(&self, at: &[usize], of: impl Fn(&Estimate) -> f64 + Copy) -> Linear {
        let lines: Vec<Straight> =
            (0..self.data.len()).filter_map(|launch| self.straight(launch, at, of)).collect();
        let (base, slope) =
            (self.over(lines.iter().map(|l| l.base)), self.over(lines.iter().map(|l| l.slope)));
        let median = Straight { base: base.value, slope: slope.value };
        let residual = |&at: &usize| {
            let off = self.figure(at, of).value - median.at(self.sizes[at] as f64);
            (off / self.figure(at, |e| e.one_way).value).abs()
        };
        Linear {
            base_ns: base.value,
            base_ci_ns: base.ci,
            slope_ns_per_byte: slope.value,
            slope_ci_ns_per_byte: slope.ci,
            largest_residual: at.iter().map(residual).fold(0.0, f64::max),
        }
    }

    fn segment(&self, sizes: &[SizeFigures], from: usize, to: usize) -> Segment {
        let all: Vec<usize> = (from..=to).collect();
        let measured: Vec<usize> =
            all.iter().copied().filter(|&at| sizes[at].g.status == Status::Measured).collect();
        let straight = &measured[self.last_bend(sizes, &measured)..];
        Segment {
            from_bytes: self.sizes[from],
            to_bytes: self.sizes[to],
            G: self.gap_per_byte(sizes, straight, to),
            G_from_bytes: straight.first().map(|&at| self.sizes[at]),
            T: self.linear(&all, |e| e.one_way),
            o_s: self.linear(&all, |e| e.o_s),
            o_r: self.linear(&all, |e| e.o_r),
            steady: self.linear(&all, |e| e.steady),
            g: (straight.len() > 1).then(|| self.linear(straight, |e| e.steady)),
        }
    }

    /// Where in `measured` the last straight line of g(n) begins: another stage may take over at
    /// some size, and a slope across that is nobody's.
    fn last_bend(&self, sizes: &[SizeFigures], measured: &[usize]) -> usize {
        let point = |&at: &usize| {
            let g = &sizes[at].g;
            let ns = g.value_ns.unwrap_or(f64::NAN);
            let half_width = g.ci_ns.map_or(0.0, Interval::half_width);
            Point::new(self.sizes[at], ns, half_width.max(NOISE_OF_GAP * ns))
        };
        let points: Vec<Point> = measured.iter().map(point).collect();
        segments(&points, SIZES_AT_LEAST).last().copied().unwrap_or(0)
    }

    /// G of a segment that ends at the index `last`, from the indices at which g is measured.
    fn gap_per_byte(&self, sizes: &[SizeFigures], measured: &[usize], last: usize) -> PerByte {
        let samples = self.data.len() as u64;
        match sizes[last].g.status {
            Status::Measured if measured.len() > 1 => {
                per_byte(Status::Measured, self.over(self.slopes(measured, |e| e.steady)), samples)
            }
            // All of the time that such a message takes may be due to its bytes.
            Status::Measured | Status::UpperBound => {
                let bytes = self.sizes[last] as f64;
                let shares = self.estimates.iter().map(|sizes| sizes[last].steady / bytes);
                per_byte(Status::UpperBound, self.over(shares), samples)
            }
            Status::Unobservable => per_byte(Status::Unobservable, self.over([]), 0),
        }
    }

    fn change(&self, sizes: &[SizeFigures], (from, to): (usize, usize), next: usize) -> Change {
        let line = self.linear(&(from..=to).collect::<Vec<_>>(), |e| e.one_way);
        let at_most_bytes = self.sizes[next];
        Change {
            above_bytes: self.sizes[to],
            at_most_bytes,
            extrapolated_ns: line.base_ns + line.slope_ns_per_byte * at_most_bytes as f64,
            measured_ns: sizes[next].T.value_ns.unwrap_or(f64::NAN),
        }
    }

    /// By least squares over all sizes, as is common: no weights.
    #[allow(non_snake_case, reason = "the names of the field")]
    fn classic(&self) -> Classic {
        let line = |sizes: &Vec<Estimate>| {
            let points = self.sizes.iter().zip(sizes).map(|(&size, e)| Point::new(size, e.one_way, 1.0));
            Straight::through(&points.collect::<Vec<_>>())
        };
        let lines: Vec<Straight> = self.estimates.iter().filter_map(line).collect();
        let T0 = self.over(lines.iter().map(|l| l.base));
        let slope = self.over(lines.iter().map(|l| l.slope));
        let R_inf = self.rate(lines.iter().map(|l| l.slope.recip()));
        let n_half = self.over(lines.iter().map(|l| l.base / l.slope));
        let measured = self.over(self.estimates.iter().map(|sizes| self.half_performance(sizes)));
        let small_bytes = self.sizes[0];
        Classic {
            T0_ns: T0.value,
            T0_ci_ns: T0.ci,
            n_half_bytes: n_half.value.is_finite().then_some(n_half.value),
            n_half_ci_bytes: n_half.ci,
            n_half_measured_bytes: measured.value.is_finite().then_some(measured.value),
            n_half_measured_ci_bytes: measured.ci,
            small_bytes,
            small_predicted_ns: T0.value + slope.value * small_bytes as f64,
            small_measured_ns: self.figure(0, |e| e.one_way).value,
            R_inf: R_inf.value_bytes_per_s.is_finite().then_some(R_inf),
        }
    }

    /// The size at which n / T(n) first reaches half of its largest value, between measured
    /// sizes on a logarithmic scale. `NaN` where it always does.
    fn half_performance(&self, estimates: &[Estimate]) -> f64 {
        let rates: Vec<f64> =
            self.sizes.iter().zip(estimates).map(|(&size, e)| size as f64 / e.one_way).collect();
        let half = rates.iter().copied().fold(0.0, f64::max) / 2.0;
        let Some(at) = rates.iter().position(|&rate| rate >= half).filter(|&at| at > 0) else {
            return f64::NAN;
        };
        let share = (half / rates[at - 1]).ln() / (rates[at] / rates[at - 1]).ln();
        let (below, beyond) = (self.sizes[at - 1] as f64, self.sizes[at] as f64);
        below * (beyond / below).powf(share)
    }

    fn overlap(&self, run: (usize, usize)) -> Overlap {
        let sending = self.carried(run, |e| e.o_s);
        let receiving = self.carried(run, |e| e.o_r);
        let finding = format!(
            "{} {}",
            finding("Sending", "o_s(n)", &sending),
            finding("Receiving", "o_r(n)", &receiving)
        );
        Overlap { sending, receiving, finding }
    }

    /// How much of the data of the sizes of `run` a processor carries that is busy for `of`.
    fn carried(&self, (from, to): (usize, usize), of: impl Fn(&Estimate) -> f64 + Copy) -> Carried {
        // Nothing is concluded from what cannot be.
        let at: Vec<usize> = (from..=to).filter(|&at| !self.contradicts(at)).collect();
        let overheads = self.slopes(&at, of);
        let stream = self.slopes(&at, |e| e.steady);
        let way = self.slopes(&at, |e| e.latency);
        let shares = overheads.iter().zip(&stream).zip(&way).map(|((overhead, stream), way)| {
            if is_paced_by_bytes(*stream, *overhead, *way) { overhead / stream } else { f64::NAN }
        });
        let (share, slope) = (self.over(shares), self.over(overheads));
        let is_known = share.launches == slope.launches;
        let status = if slope.value.is_finite() { Status::Measured } else { Status::Unobservable };
        Carried {
            overlaps: Overlaps::of(share.ci.filter(|_| is_known)),
            per_byte: per_byte(status, slope, slope.launches as u64),
            share: Some(share.value).filter(|share| is_known && share.is_finite()),
            share_ci: share.ci.filter(|_| is_known),
            from_bytes: self.sizes[from],
            to_bytes: self.sizes[to],
        }
    }

    /// The parameters at the smallest size, and G of the largest sizes.
    fn parameters(&self, bulk: &Bulk) -> Parameters {
        let smallest = &bulk.sizes[0];
        let trips = self.batches(0, |_, size| size.rtt_ns.clone());
        let polls = self.data.iter().flat_map(|launch| launch.o_poll_ns.clone()).collect();
        Parameters {
            rtt: self.figure(0, |e| 2.0 * e.one_way).parameter(trips, smallest.T.samples),
            o_s: smallest.o_s.clone(),
            o_r: smallest.o_r.clone(),
            o_poll: self.sampled(self.o_poll(), polls),
            g: smallest.g.clone(),
            L: smallest.L.clone(),
            G: bulk.segments[bulk.segments.len() - 1].G.clone(),
        }
    }
}

fn without_value(p: Parameter) -> Parameter {
    Parameter {
        status: Status::Unobservable,
        value_ns: None,
        ci_ns: None,
        quantiles_ns: BTreeMap::new(),
        ..p
    }
}

fn per_byte(status: Status, figure: Figure, samples: u64) -> PerByte {
    let known = figure.value.is_finite();
    PerByte {
        status: if known { status } else { Status::Unobservable },
        value_ns_per_byte: known.then_some(figure.value),
        ci_ns_per_byte: figure.ci.filter(|_| known),
        quantiles_ns_per_byte: BTreeMap::new(),
        samples,
        launches: figure.launches,
    }
}

/// Whether what a byte takes in a stream says what carries it: no stage can take longer for it than the
/// stream, nor can it take a message alone many times as long on the way. Otherwise something else than
/// bytes paces the stream, as where the peer is busy for long with each message, of whatever size.
pub(super) fn is_paced_by_bytes(stream: f64, overhead: f64, way: f64) -> bool {
    overhead <= BEYOND_STREAM * stream && way <= HOPS * stream
}

/// What a processor's share in the transfer means, in a sentence.
fn finding(verb: &str, name: &str, carried: &Carried) -> String {
    let per_byte = Number(carried.per_byte.value_ns_per_byte.unwrap_or(f64::NAN));
    let range = format!("from {} to {}", Bytes(carried.from_bytes), Bytes(carried.to_bytes));
    let rise = |share| {
        format!(
            "{name} rises by {per_byte} ns/B {range}, {} of what a byte takes in a stream",
            Percent(share)
        )
    };
    match (carried.overlaps, carried.share) {
        (Overlaps::Nothing, Some(share)) => format!(
            "{verb} cannot be overlapped with computation, the processor carries the data itself: {}.",
            rise(share)
        ),
        (Overlaps::Partly, Some(share)) => {
            format!("{verb} can be overlapped with computation in part: {}.", rise(share))
        }
        (Overlaps::Fully, Some(_)) => {
            format!("{verb} can be overlapped with computation: {name} hardly depends on the size {range}.")
        }
        _ => format!("{verb}: the data do not say whether it can be overlapped with computation."),
    }
}
