//! Several launches of `bulk`, and their estimates by size.

use super::data::{BulkLaunch, BulkSizeData, Direction};
use super::estimate::{SizeEstimate, median_rise};
use super::record::Bandwidth;
use crate::figure::Figure;
use crate::logp::data::Burst;
use crate::record::parameter::Parameter;
use crate::stats::{Confidence, Interval, deviation_of_neighbours, median};
use crate::steady::{self, Overheads, Varying};

const NS_PER_S: f64 = 1e9;

/// Several launches, and the estimates of each launch at each size.
pub(super) struct BulkLaunches<'a> {
    pub(super) data: &'a [BulkLaunch],
    /// The sizes, ascending.
    pub(super) sizes: Vec<usize>,
    /// By launch, then by size.
    pub(super) estimates: Vec<Vec<SizeEstimate>>,
    /// By size: true if the steady time comes from the time to issue.
    pub(super) issuing_is_steady: Vec<bool>,
    confidence: Confidence,
}

impl<'a> BulkLaunches<'a> {
    /// Computes the estimates of each launch. All launches have the same sizes, in ascending order.
    pub(super) fn of(data: &'a [BulkLaunch], sizes: Vec<usize>, confidence: Confidence) -> Self {
        let steady: Vec<bool> = (0..sizes.len()).map(|at| issuing_is_steady(data, at)).collect();
        let estimate = |launch: &BulkLaunch| {
            let sizes = launch.sizes.iter().zip(&steady);
            sizes
                .map(|(size, &steady)| SizeEstimate::of(size, &launch.sizes[0], launch.timer_ns, steady))
                .collect()
        };
        let estimates = data.iter().map(estimate).collect();
        Self { data, sizes, estimates, issuing_is_steady: steady, confidence }
    }

    /// Returns the median of `values`, one for each launch, and its interval.
    pub(super) fn over(&self, values: impl IntoIterator<Item = f64>) -> Figure {
        Figure::over(values, self.confidence)
    }

    /// Returns T at the size `at` of each launch.
    pub(super) fn one_way(&self, at: usize) -> impl Iterator<Item = f64> {
        self.estimates.iter().map(move |sizes| sizes[at].one_way)
    }

    /// Returns the median over the launches at the size `at`, and its interval.
    pub(super) fn figure(&self, at: usize, of: impl Fn(&SizeEstimate) -> f64) -> Figure {
        self.over(self.estimates.iter().map(|sizes| of(&sizes[at])))
    }

    /// Returns the batches of the size `at` in all launches.
    pub(super) fn batches(&self, at: usize, of: impl Fn(&BulkLaunch, &BulkSizeData) -> Vec<f64>) -> Vec<f64> {
        self.data.iter().flat_map(|launch| of(launch, &launch.sizes[at])).collect()
    }

    /// Returns the sum of a count at the size `at` over all launches.
    pub(super) fn count(&self, at: usize, of: impl Fn(&BulkSizeData) -> u64) -> u64 {
        self.data.iter().map(|launch| of(&launch.sizes[at])).fold(0, u64::saturating_add)
    }

    /// Returns a parameter with the samples behind it.
    pub(super) fn sampled(&self, figure: Figure, samples: Vec<f64>) -> Parameter {
        let count = samples.len() as u64;
        figure.parameter(samples, count)
    }

    /// Returns the rate of so many bytes in a time. An interval that reaches 0 tells no largest rate.
    pub(super) fn rate(bytes: f64, time_ns: Figure) -> Bandwidth {
        let per_s = |ns: f64| bytes / ns * NS_PER_S;
        let ci = time_ns.ci.filter(|ci| ci.lo > 0.0);
        Bandwidth {
            value_bytes_per_s: per_s(time_ns.value),
            ci_bytes_per_s: ci.map(|ci| Interval { lo: per_s(ci.hi), hi: per_s(ci.lo) }),
        }
    }

    /// Reports that the bursts at the size `at` contradict each other.
    pub(super) fn contradicts(&self, at: usize) -> bool {
        steady::contradict(self.figure(at, |e| e.steady).value, self.figure(at, |e| e.bound).value)
    }

    /// Reports that the longest burst at the size `at` is too short for the stream to become steady.
    pub(super) fn is_too_deep(&self, at: usize) -> bool {
        let shape = self.data[0].shape.sizes.get(at);
        let (longest, window) =
            shape.map_or((0, 0), |size| (size.bursts.last().copied().unwrap_or(0), size.window));
        steady::is_too_deep(longest, self.request_rtt(at), self.figure(at, |e| e.steady).value, window)
    }

    /// Returns the cost of a poll that finds nothing.
    pub(super) fn o_poll(&self) -> Figure {
        self.over(self.data.iter().map(|launch| median(launch.o_poll_ns.iter().copied())))
    }

    /// Reports that empty polls set the pace at the size `at`.
    pub(super) fn is_paced_by_polls(&self, at: usize) -> bool {
        let shape = self.data[0].shape.sizes.get(at);
        let (granted, window) = shape.map_or((0, 0), |size| (size.unpolled, size.window));
        let o_poll = self.o_poll().value;
        let o_r_ns = self.figure(self.of_replies(at), |e| e.o_r).value;
        let overheads = Overheads { o_s_ns: self.figure(at, |e| e.o_s).value, o_r_ns };
        let steady = self.figure(at, |e| e.steady).value;
        let depth = steady::depth(self.request_rtt(at), steady, window);
        steady::is_paced_by_polls(granted, o_poll, overheads, steady, depth)
    }

    /// Returns the round trip of a request of a burst at the size `at` and its reply.
    pub(super) fn request_rtt(&self, at: usize) -> f64 {
        self.figure(at, |e| e.request_rtt).value
    }

    /// Returns the direction of the data of transfers.
    pub(super) fn direction(&self) -> Direction {
        self.data[0].shape.direction
    }

    /// Returns the index of the size of the replies in bursts at the size `at`.
    fn of_replies(&self, at: usize) -> usize {
        match self.direction() {
            Direction::Store => 0,
            Direction::Get => at,
        }
    }

    /// Returns the standard deviation of a round trip at the size `at`, as a share of the median.
    pub(super) fn noise_of_trips(&self, at: usize) -> f64 {
        let trips = self.data[0].shape.sizes.get(at).map_or(1, |size| size.trips) as f64;
        let of = |launch: &BulkLaunch| {
            let batches = &launch.sizes[at].rtt_ns;
            deviation_of_neighbours(batches) * trips.sqrt() / median(batches.iter().copied())
        };
        median(self.data.iter().map(of))
    }

    /// Returns the share by which the steady time at the size `at` may exceed g(n).
    pub(super) fn starvation(&self, at: usize, plateau_ns: f64, window: usize) -> f64 {
        steady::starvation(Varying {
            deviation_ns: burst_deviation(self.data, at),
            messages: self.data[0].sizes[at].stream.last().map_or(1, |burst| burst.m),
            plateau_ns,
            rtt_ns: self.request_rtt(at),
            window,
            by_issuing: self.issuing_is_steady[at],
        })
    }
}

/// Reports that the steady time at the size `at` comes from the time to issue.
fn issuing_is_steady(data: &[BulkLaunch], at: usize) -> bool {
    let over = |times: fn(&Burst) -> &Vec<f64>| {
        median(data.iter().map(|launch| median_rise(&launch.sizes[at].stream, times)))
    };
    let deviation_ns = burst_deviation(data, at);
    let messages = data[0].sizes[at].stream.last().map_or(1, |burst| burst.m);
    steady::is_by_issuing(over(|burst| &burst.issue_ns), over(|burst| &burst.done_ns), deviation_ns, messages)
}

/// Returns the standard deviation of the time of the longest burst at the size `at`, in nanoseconds.
fn burst_deviation(data: &[BulkLaunch], at: usize) -> f64 {
    steady::burst_deviation(data.iter().filter_map(|launch| launch.sizes[at].stream.last()))
}
