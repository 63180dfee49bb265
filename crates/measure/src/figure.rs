//! A figure over launches: the median of the values of the launches, with its interval. Drift between
//! launches widens the interval.

use crate::record::parameter::{Parameter, PerByte, Status};
use crate::stats::{Confidence, Interval, median, quantile_of_sorted, quantiles, sorted, widening_by_drift};
use std::collections::BTreeMap;

/// A figure over the launches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figure {
    pub(crate) value: f64,
    pub(crate) ci: Option<Interval>,
    /// The number of launches with a value.
    pub(crate) launches: usize,
}

impl Figure {
    /// Returns the median over the launches with a value, and its interval. The values are in the order of
    /// the launches.
    pub(crate) fn over(values: impl IntoIterator<Item = f64>, confidence: impl Into<Confidence>) -> Self {
        let in_time: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        let values = sorted(in_time.iter().copied());
        let value = quantile_of_sorted(&values, 0.5);
        let interval = confidence.into().interval(value, &values);
        // A value that is positive in every launch, as a time is, is not negative in another run.
        let least = if values.first().is_some_and(|&least| least > 0.0) { 0.0 } else { f64::NEG_INFINITY };
        let ci = interval
            .map(|ci| ci.widened(value, widening_by_drift(&in_time)))
            .map(|ci| Interval { lo: ci.lo.max(least), ..ci });
        Self { value, ci, launches: values.len() }
    }

    /// Returns a time from the batches of each launch, each batch of `samples` samples. The value of a launch is
    /// the median of its batches.
    pub(crate) fn of_batches<'a>(
        launches: impl Iterator<Item = &'a [f64]> + Clone,
        samples: u64,
        confidence: impl Into<Confidence>,
    ) -> Parameter {
        let all = || launches.clone().flatten().copied();
        let medians = launches.clone().map(|batches| median(batches.iter().copied()));
        // A record is a file that others may have written: its counts may have any value.
        let samples = samples.saturating_mul(all().count() as u64);
        Self::over(medians, confidence).parameter(all(), samples)
    }

    /// Returns the figure as a parameter in time, with the quantiles of `samples`. `count` is the number of
    /// samples, because an entry of `samples` may stand for several.
    pub(crate) fn parameter(self, samples: impl IntoIterator<Item = f64>, count: u64) -> Parameter {
        let known = self.value.is_finite();
        Parameter {
            status: if known { Status::Measured } else { Status::Unobservable },
            value_ns: known.then_some(self.value),
            ci_ns: self.ci.filter(|_| known),
            quantiles_ns: quantiles(samples.into_iter().map(|value| (value, 1))),
            samples: count,
            launches: self.launches,
        }
    }

    /// Returns the figure as a parameter in time per byte, from `samples` samples.
    pub(crate) fn per_byte(self, status: Status, samples: u64) -> PerByte {
        let known = self.value.is_finite();
        PerByte {
            status: if known { status } else { Status::Unobservable },
            value_ns_per_byte: known.then_some(self.value),
            ci_ns_per_byte: self.ci.filter(|_| known),
            quantiles_ns_per_byte: BTreeMap::new(),
            samples,
            launches: self.launches,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Confidence;

    #[test]
    fn an_interval_of_positive_values_holds_no_negative_one() {
        let two_groups = [120.0, 125.0, 480.0, 490.0, 495.0, 500.0, 500.0, 505.0];
        let of = |shift: f64| {
            Figure::over(two_groups.map(|value| value - shift), Confidence::of_repeat(0.95)).ci.unwrap()
        };
        assert_eq!(of(0.0).lo, 0.0);
        assert!(of(200.0).lo < -200.0, "{:?}", of(200.0));
    }
}
