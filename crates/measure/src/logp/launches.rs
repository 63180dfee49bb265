//! Several launches of a signature, and their estimates.

use super::data::LaunchData;
use super::estimate::{SignatureEstimate, Ways, burst_deviation};
use crate::figure::Figure;
use crate::record::parameter::Parameter;
use crate::stats::{Confidence, Interval};
use crate::steady::{self, Overheads, Varying};

/// Several launches and the estimates of each.
pub(super) struct SignatureLaunches<'a> {
    pub(super) data: &'a [LaunchData],
    pub(super) estimates: Vec<SignatureEstimate>,
    ways: Ways,
    confidence: Confidence,
}

impl<'a> SignatureLaunches<'a> {
    /// Reads the estimates of each launch. There is at least one launch.
    pub(super) fn of(data: &'a [LaunchData], confidence: Confidence) -> Self {
        let ways = Ways::of(data);
        let estimates = data.iter().map(|launch| SignatureEstimate::of(launch, ways)).collect();
        Self { data, estimates, ways, confidence }
    }

    /// Returns the median over the launches that give a value, and its interval.
    pub(super) fn figure(&self, of: impl Fn(&SignatureEstimate) -> f64) -> Figure {
        Figure::over(self.estimates.iter().map(of), self.confidence)
    }

    /// Returns a parameter with the samples behind it.
    pub(super) fn measured(&self, of: impl Fn(&SignatureEstimate) -> f64, samples: Vec<f64>) -> Parameter {
        let count = samples.len() as u64;
        self.figure(of).parameter(samples, count)
    }

    /// Returns the span of the cost of a receive over those delays after which it differs significantly
    /// from `o_r_ns`. Returns `None` without such a delay, and if `o_r` does not come from delays.
    pub(super) fn o_r_over_delays(&self, o_r_ns: f64) -> Option<Interval> {
        let first = self.data.first()?;
        if self.is_too_deep() {
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

    /// Returns the interval of `value`, the median of ascending values.
    pub(super) fn interval(&self, value: f64, ascending: &[f64]) -> Option<Interval> {
        self.confidence.interval(value, ascending)
    }

    /// Returns the samples of all launches.
    pub(super) fn samples(&self, of: impl Fn(&LaunchData) -> &[f64]) -> Vec<f64> {
        self.data.iter().flat_map(|launch| of(launch).to_vec()).collect()
    }

    /// Reports that the longest burst is too short for the stream to become steady.
    pub(super) fn is_too_deep(&self) -> bool {
        self.ways.is_too_deep
    }

    /// Reports that two bursts of the signature contradict each other.
    pub(super) fn contradicts(&self) -> bool {
        steady::contradict(self.figure(|e| e.plateau).value, self.figure(|e| e.bound).value)
    }

    /// Reports that empty polls set the pace of the signature.
    pub(super) fn is_paced_by_polls(&self) -> bool {
        let shape = &self.data[0].shape;
        let of = |of: fn(&SignatureEstimate) -> f64| self.figure(of).value;
        let plateau = of(|e| e.plateau);
        let depth = steady::depth(of(|e| e.rtt), plateau, shape.window);
        let overheads = Overheads { o_s_ns: of(|e| e.o_s.value_ns), o_r_ns: of(|e| e.known_o_r) };
        steady::is_paced_by_polls(shape.unpolled, of(|e| e.o_poll), overheads, plateau, depth)
    }

    /// Returns the share by which the plateau may exceed g because stage times vary.
    pub(super) fn starvation(&self, plateau_ns: f64, window: usize) -> f64 {
        let stream = Varying {
            deviation_ns: burst_deviation(self.data),
            messages: self.data[0].shape.bursts.last().copied().unwrap_or(1),
            plateau_ns,
            rtt_ns: self.figure(|e| e.rtt).value,
            window,
            by_issuing: self.ways.by_issuing,
        };
        steady::starvation(stream)
    }
}
