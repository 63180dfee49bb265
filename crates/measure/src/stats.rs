//! Medians with distribution-free intervals, quantiles, regression.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{Binomial, DiscreteCDF};
use std::collections::BTreeMap;

/// A two-sided interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "[f64; 2]", into = "[f64; 2]")]
#[schemars(with = "[f64; 2]")]
pub struct Interval {
    /// Lower end.
    pub lo: f64,
    /// Upper end.
    pub hi: f64,
}

impl From<[f64; 2]> for Interval {
    fn from([lo, hi]: [f64; 2]) -> Self {
        Self { lo, hi }
    }
}

impl From<Interval> for [f64; 2] {
    fn from(interval: Interval) -> Self {
        [interval.lo, interval.hi]
    }
}

impl Interval {
    /// Returns half of the width.
    pub fn half_width(self) -> f64 {
        (self.hi - self.lo) / 2.0
    }

    /// Returns the interval around `value` that is `factor` times as wide.
    pub fn widened(self, value: f64, factor: f64) -> Self {
        Self { lo: value - factor * (value - self.lo), hi: value + factor * (self.hi - value) }
    }

    /// Returns the smallest interval that contains both.
    pub fn with(self, other: Self) -> Self {
        Self { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }

    /// Reports that `value` lies in the interval.
    pub fn contains(self, value: f64) -> bool {
        (self.lo..=self.hi).contains(&value)
    }
}

/// The quantity that an interval must contain, and the share of all cases in which it must.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Confidence {
    /// The share of all cases in which the interval contains the quantity.
    pub share: f64,
    /// The factor by which the interval of a median is widened for that quantity.
    widening: f64,
}

impl Confidence {
    /// Returns the confidence for an interval that contains the median of all possible launches. In virtual
    /// time that is the true value.
    pub fn of_median(share: f64) -> Self {
        Self { share, widening: 1.0 }
    }

    /// Returns the confidence for an interval that contains the figure of another run with as many
    /// launches. The random errors of both runs are of equal size and add up, so that the interval is √2
    /// times as wide.
    pub fn of_repeat(share: f64) -> Self {
        Self { share, widening: std::f64::consts::SQRT_2 }
    }

    /// Returns the confidence of [`Confidence::of_repeat`] on a host that changes during the run. Such a
    /// host also changes until the next run, which no run can observe. The interval is therefore twice as
    /// wide again, as repeats on virtual machines showed (docs/strata.md).
    pub fn of_repeat_on_changing_host(share: f64) -> Self {
        Self { share, widening: 2.0 * std::f64::consts::SQRT_2 }
    }

    /// Returns the confidence of the same share that the interval contains the median itself.
    pub(crate) fn in_the_median(self) -> Self {
        Self::of_median(self.share)
    }

    /// Returns the interval of `value`, the median of ascending values.
    pub(crate) fn interval(self, value: f64, ascending: &[f64]) -> Option<Interval> {
        Some(median_interval_of_sorted(ascending, self.share)?.widened(value, self.widening))
    }
}

impl From<f64> for Confidence {
    fn from(share: f64) -> Self {
        Self::of_median(share)
    }
}

/// Returns `values` in ascending order.
pub fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Returns the quantile `q` of ascending values, interpolated (type 7). Returns `NaN` without values.
pub fn quantile_of_sorted(values: &[f64], q: f64) -> f64 {
    let Some(last) = values.len().checked_sub(1) else { return f64::NAN };
    let at = q * last as f64;
    let below = at.floor() as usize;
    let above = (below + 1).min(last);
    values[below] + (values[above] - values[below]) * (at - below as f64)
}

/// Returns the median. Returns `NaN` without values.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    quantile_of_sorted(&sorted(values), 0.5)
}

/// Returns the mean of the middle 80 %, of fewer than ten values that of all but the least and the greatest. Unlike a
/// median it resolves less than a tick of a coarse clock; unlike a mean it ignores an interruption. Returns `NaN`
/// without values.
pub fn trimmed_mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let values = sorted(values);
    let cut = (values.len() / 10).max(usize::from(values.len() > 2));
    let middle = &values[cut..values.len() - cut];
    middle.iter().sum::<f64>() / middle.len() as f64
}

/// Returns the standard deviation of consecutive values that drift slowly. It is robust against outliers,
/// because it uses the median distance of neighbours. Returns 0 for fewer than two values.
pub fn deviation_of_neighbours(values: &[f64]) -> f64 {
    /// The median distance of two independent normal values, in standard deviations.
    const MEDIAN_DISTANCE: f64 = 0.954;
    let distance = median(values.windows(2).map(|pair| (pair[1] - pair[0]).abs()));
    if distance.is_finite() { distance / MEDIAN_DISTANCE } else { 0.0 }
}

/// Returns the ranks, counted from 0, of the order statistics that enclose the median of `n` independent
/// values with at least `confidence`, for any distribution. They are the exact binomial ranks (Hoefler and
/// Belli 2015, section 3.1.3). Returns `None` if `n` is too small (below 6 at 95 %).
pub fn median_ranks(n: usize, confidence: f64) -> Option<(usize, usize)> {
    let binomial = Binomial::new(0.5, n as u64).ok()?;
    // The interval from the (k+1)-th smallest to the (k+1)-th largest value misses the median if at most k
    // values lie on one side of it.
    let miss = |k: usize| 2.0 * binomial.cdf(k as u64);
    (0..n / 2).take_while(|&k| miss(k) <= 1.0 - confidence + 1e-12).last().map(|k| (k, n - 1 - k))
}

/// Returns the distribution-free interval of the median of ascending values.
pub fn median_interval_of_sorted(values: &[f64], confidence: f64) -> Option<Interval> {
    let (lo, hi) = median_ranks(values.len(), confidence)?;
    Some(Interval { lo: values[lo], hi: values[hi] })
}

/// Returns the factor by which the interval of a median must be widened because `values`, in their order,
/// drift instead of being independent. It is 1 without drift.
///
/// Let r be the correlation of neighbours. Then n values of a first-order autoregression carry the
/// information of n (1 - r) / (1 + r) independent values. The correlation is computed from ranks, so that
/// no outlier dominates it. It counts only if it is significant: above 2 / √n. That of a short series comes
/// out too small, by (1 + 3 r) / n on average (Marriott and Pope 1954), which is corrected.
pub fn widening_by_drift(values: &[f64]) -> f64 {
    /// With fewer values the correlation is unreliable.
    const VALUES_AT_LEAST: usize = 10;
    /// With a few dozen values a higher correlation cannot be distinguished from a jump.
    const CORRELATION_AT_MOST: f64 = 0.8;
    let n = values.len();
    if n < VALUES_AT_LEAST {
        return 1.0;
    }
    let in_order = sorted(values.iter().copied());
    // Equal values share their rank.
    let rank = |value: &f64| {
        let below = in_order.partition_point(|other| other < value);
        let not_above = in_order.partition_point(|other| other <= value);
        (below + not_above) as f64 / 2.0 - n as f64 / 2.0
    };
    let ranks: Vec<f64> = values.iter().map(rank).collect();
    let spread: f64 = ranks.iter().map(|rank| rank * rank).sum();
    let correlation = ranks.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / spread;
    if correlation.is_nan() || correlation * (n as f64).sqrt() <= 2.0 {
        return 1.0;
    }
    let n = n as f64;
    let correlation = ((correlation + 1.0 / n) / (1.0 - 3.0 / n)).min(CORRELATION_AT_MOST);
    ((1.0 + correlation) / (1.0 - correlation)).sqrt()
}

/// Returns the sum of counts. A record is a file that others may have written: its counts may have any value.
pub(crate) fn total(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}

/// Returns weighted quantiles by name, from pairs of value and count. It omits values that are not finite.
pub(crate) fn quantiles(samples: impl IntoIterator<Item = (f64, u64)>) -> BTreeMap<String, f64> {
    let mut samples: Vec<(f64, u64)> = samples.into_iter().filter(|(value, _)| value.is_finite()).collect();
    samples.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total = total(samples.iter().map(|(_, count)| *count));
    let at = |q: f64| {
        let rank = (q * total as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        samples.iter().find(|(_, count)| {
            seen = u64::saturating_add(seen, *count);
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

/// A straight line through points, by least squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// Value at 0.
    pub intercept: f64,
    /// Rise per unit.
    pub slope: f64,
}

impl Line {
    /// Returns the line through `points`. Returns `None` if they have fewer than two different abscissas.
    pub fn through(points: &[(f64, f64)]) -> Option<Self> {
        let n = points.len() as f64;
        let mean_x = points.iter().map(|p| p.0).sum::<f64>() / n;
        let mean_y = points.iter().map(|p| p.1).sum::<f64>() / n;
        let spread: f64 = points.iter().map(|p| (p.0 - mean_x).powi(2)).sum();
        if spread.is_nan() || spread <= 0.0 {
            return None;
        }
        let slope = points.iter().map(|p| (p.0 - mean_x) * (p.1 - mean_y)).sum::<f64>() / spread;
        Some(Self { intercept: mean_y - slope * mean_x, slope })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_trimmed_mean_ignores_an_interruption_in_few_values() {
        let mut values = vec![1000.0; 8];
        values[3] = 51_000.0;
        assert_eq!(trimmed_mean(values.clone()), 1000.0);
        assert_eq!(trimmed_mean(values[2..5].to_vec()), 1000.0);
        assert_eq!((trimmed_mean([1.0, 2.0]), trimmed_mean([7.0])), (1.5, 7.0));
        assert!(trimmed_mean([]).is_nan());
    }

    #[test]
    fn values_that_drift_say_less() {
        let drifting: Vec<f64> = (0..28).map(|nth| (f64::from(nth) / 4.0).sin()).collect();
        assert!((widening_by_drift(&drifting) - 3.0).abs() < 1e-9);
        assert_eq!(widening_by_drift(&drifting[..9]), 1.0);
        assert_eq!(widening_by_drift(&[7.0; 28]), 1.0);
        // About one in forty series of independent values appears to drift.
        let mut random = fastrand::Rng::with_seed(1);
        let seem = (0..1000)
            .filter(|_| widening_by_drift(&(0..28).map(|_| random.f64()).collect::<Vec<_>>()) > 1.0)
            .count();
        assert!((1..40).contains(&seem), "{seem}");
        // For an autoregression with r = 0.7 the widened interval contains the median almost as often as
        // for independent values.
        let mut covered = [0, 0];
        for _ in 0..1000 {
            let mut last = 0.0;
            let noise: Vec<f64> =
                (0..100).map(|_| (0..12).map(|_| random.f64()).sum::<f64>() - 6.0).collect();
            let values: Vec<f64> = noise
                .iter()
                .map(|noise| {
                    last = 0.7 * last + noise;
                    last
                })
                .collect();
            let values = &values[40..];
            let ascending = sorted(values.iter().copied());
            let (middle, ci) =
                (quantile_of_sorted(&ascending, 0.5), median_interval_of_sorted(&ascending, 0.95).unwrap());
            covered[0] += usize::from(ci.contains(0.0));
            covered[1] += usize::from(ci.widened(middle, widening_by_drift(values)).contains(0.0));
        }
        assert!(covered[0] < 800 && covered[1] > 910, "{covered:?}");
    }

    #[test]
    fn a_repeat_lies_in_the_interval_for_a_repeat() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut run = || sorted((0..27).map(|_| (0..12).map(|_| random.f64()).sum::<f64>() - 6.0));
        let mut covered = [0, 0];
        for _ in 0..2000 {
            let (one, other) = (run(), run());
            let (middle, repeat) = (quantile_of_sorted(&one, 0.5), quantile_of_sorted(&other, 0.5));
            for (covered, confidence) in
                covered.iter_mut().zip([Confidence::of_median(0.95), Confidence::of_repeat(0.95)])
            {
                *covered += usize::from(confidence.interval(middle, &one).unwrap().contains(repeat));
            }
        }
        assert!((1720..1880).contains(&covered[0]) && (1900..1985).contains(&covered[1]), "{covered:?}");
    }

    #[test]
    fn ranks_are_the_published_ones() {
        assert_eq!(median_ranks(5, 0.95), None);
        assert_eq!(median_ranks(6, 0.95), Some((0, 5)));
        assert_eq!(median_ranks(9, 0.95), Some((1, 7)));
        assert_eq!(median_ranks(12, 0.95), Some((2, 9)));
        assert_eq!(median_ranks(0, 0.95), None);
    }

    #[test]
    fn the_interval_covers_the_median_of_a_skewed_distribution() {
        let mut random = fastrand::Rng::with_seed(7);
        let true_median = std::f64::consts::LN_2;
        let runs = 4000;
        let covered = (0..runs)
            .filter(|_| {
                let values = sorted((0..9).map(|_| -(1.0 - random.f64()).ln()));
                median_interval_of_sorted(&values, 0.95).unwrap().contains(true_median)
            })
            .count();
        // Exact coverage at these ranks: 96.1 %.
        let share = covered as f64 / f64::from(runs);
        assert!((0.95..0.972).contains(&share), "{share}");
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
    fn a_line_goes_through_its_points() {
        let line = Line::through(&[(1.0, 5.0), (2.0, 7.0), (4.0, 11.0)]).unwrap();
        assert!((line.slope - 2.0).abs() < 1e-12 && (line.intercept - 3.0).abs() < 1e-12);
        assert_eq!(Line::through(&[(1.0, 5.0), (1.0, 6.0)]), None);
        assert_eq!(Line::through(&[]), None);
    }

    proptest! {
        #[test]
        fn quantiles_lie_between_the_extremes(values in proptest::collection::vec(-1e9..1e9, 1..50), q in 0.0..=1.0f64) {
            let values = sorted(values);
            let quantile = quantile_of_sorted(&values, q);
            prop_assert!(values[0] <= quantile && quantile <= values[values.len() - 1]);
        }
    }
}
