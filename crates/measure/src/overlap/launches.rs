//! Several launches of `overlap`.

use super::data::OverlapLaunch;
use super::record::Quantity;
use crate::figure::Figure;
use crate::stats::median;

/// Several launches of the same shape.
pub(super) struct OverlapLaunches<'a> {
    pub(super) data: &'a [OverlapLaunch],
    confidence: f64,
}

impl<'a> OverlapLaunches<'a> {
    /// Takes launches of the same shape. There is at least one.
    pub(super) fn of(data: &'a [OverlapLaunch], confidence: f64) -> Self {
        Self { data, confidence }
    }

    /// Returns the median of a value of each launch, and its interval.
    pub(super) fn figure(&self, of: impl Fn(&OverlapLaunch) -> f64) -> Figure {
        Figure::over(self.data.iter().map(of), self.confidence)
    }

    /// Returns the same figure as a quantity of the record.
    pub(super) fn quantity(&self, of: impl Fn(&OverlapLaunch) -> f64) -> Quantity {
        self.figure(of).into()
    }
}

/// Returns the median of a value of each batch. Batches without a value are left out.
pub(super) fn over_batches<B>(batches: &[B], of: impl Fn(&B) -> f64) -> f64 {
    median(batches.iter().map(of).filter(|value| value.is_finite()))
}
