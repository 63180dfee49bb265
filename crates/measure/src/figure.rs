//! A figure over launches: the median of what each of them says, with its interval, which is wider where the
//! launches drift.

use crate::logp::extract::quantiles;
use crate::record::{Parameter, Status};
use crate::stats::{Confidence, Interval, quantile_of_sorted, sorted, widening_by_drift};

/// A figure over the launches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figure {
    pub(crate) value: f64,
    pub(crate) ci: Option<Interval>,
    /// Launches that gave a value.
    pub(crate) launches: usize,
}

impl Figure {
    /// The median over the launches that gave a value, in the order of the launches, and its interval.
    pub(crate) fn over(values: impl IntoIterator<Item = f64>, confidence: impl Into<Confidence>) -> Self {
        let in_time: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        let values = sorted(in_time.iter().copied());
        let value = quantile_of_sorted(&values, 0.5);
        let interval = confidence.into().interval(value, &values);
        let ci = interval.map(|ci| ci.widened(value, widening_by_drift(&in_time)));
        Self { value, ci, launches: values.len() }
    }

    /// The parameter in time that it is, with the samples behind it; `count` of them, where
    /// each stands for several.
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
}
