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
    /// Half of its width.
    pub fn half_width(self) -> f64 {
        (self.hi - self.lo) / 2.0
    }

    /// The interval of `value` that is so many times as wide.
    pub fn widened(self, value: f64, factor: f64) -> Self {
        Self { lo: value - factor * (value - self.lo), hi: value + factor * (self.hi - value) }
    }

    /// The least interval that holds both.
    pub fn with(self, other: Self) -> Self {
        Self { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }

    /// Whether `value` lies in it.
    pub fn contains(self, value: f64) -> bool {
        (self.lo..=self.hi).contains(&value)
    }
}

/// What an interval is to hold, and how often.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Confidence {
    /// In which share of all cases.
    pub share: f64,
    /// By how much the interval of a median is widened for that.
    widening: f64,
}

impl Confidence {
    /// The interval holds the median of all launches that could be made. In virtual time that is the truth.
    pub fn of_median(share: f64) -> Self {
        Self { share, widening: 1.0 }
    }

    /// The interval holds the figure of another run of as many launches. The chance of that run adds to
    /// the chance of this one, and both are as large: it is √2 times as wide.
    pub fn of_repeat(share: f64) -> Self {
        Self { share, widening: std::f64::consts::SQRT_2 }
    }

    /// The same on a host that changes while it is measured. It changes until the next run as well, which
    /// no run sees: twice as wide again, as repeats on virtual machines showed (docs/strata.md).
    pub fn of_repeat_on_changing_host(share: f64) -> Self {
        Self { share, widening: 2.0 * std::f64::consts::SQRT_2 }
    }

    /// The interval of `value`, the median of ascending values.
    pub(crate) fn interval(self, value: f64, ascending: &[f64]) -> Option<Interval> {
        Some(median_interval_of_sorted(ascending, self.share)?.widened(value, self.widening))
    }
}

impl From<f64> for Confidence {
    fn from(share: f64) -> Self {
        Self::of_median(share)
    }
}

/// `values` in ascending order.
pub fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The quantile `q` of ascending values, interpolated (type 7). `NaN` where there are none.
pub fn quantile_of_sorted(values: &[f64], q: f64) -> f64 {
    let Some(last) = values.len().checked_sub(1) else { return f64::NAN };
    let at = q * last as f64;
    let below = at.floor() as usize;
    let above = (below + 1).min(last);
    values[below] + (values[above] - values[below]) * (at - below as f64)
}

/// The median. `NaN` where there are no values.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    quantile_of_sorted(&sorted(values), 0.5)
}

/// The mean of the middle 80 %. Unlike a median it sees below the grain of a coarse
/// clock; unlike a mean it does not see an interruption. `NaN` where there are no values.
pub fn trimmed_mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let values = sorted(values);
    let cut = values.len() / 10;
    let middle = &values[cut..values.len() - cut];
    middle.iter().sum::<f64>() / middle.len() as f64
}

/// The standard deviation of consecutive values that drift slowly, robust against outliers: by the
/// median distance of neighbours. 0 for fewer than two.
pub fn deviation_of_neighbours(values: &[f64]) -> f64 {
    /// The median distance of two independent normal values, in standard deviations of one.
    const MEDIAN_DISTANCE: f64 = 0.954;
    let distance = median(values.windows(2).map(|pair| (pair[1] - pair[0]).abs()));
    if distance.is_finite() { distance / MEDIAN_DISTANCE } else { 0.0 }
}

/// The ranks, counted from 0, of the order statistics that enclose the median of `n`
/// independent values with at least `confidence`, whatever their distribution: exact
/// binomial ranks (Hoefler and Belli 2015, section 3.1.3). `None` where `n` is too small
/// for any pair to do (below 6 at 95 %).
pub fn median_ranks(n: usize, confidence: f64) -> Option<(usize, usize)> {
    let binomial = Binomial::new(0.5, n as u64).ok()?;
    // The interval from the (k+1)-th smallest to the (k+1)-th largest misses the median
    // where at most k values lie on one side of it.
    let miss = |k: usize| 2.0 * binomial.cdf(k as u64);
    (0..n / 2).take_while(|&k| miss(k) <= 1.0 - confidence + 1e-12).last().map(|k| (k, n - 1 - k))
}

/// The distribution-free interval of the median of ascending values.
pub fn median_interval_of_sorted(values: &[f64], confidence: f64) -> Option<Interval> {
    let (lo, hi) = median_ranks(values.len(), confidence)?;
    Some(Interval { lo: values[lo], hi: values[hi] })
}

/// By how much the interval of a median is too narrow because `values`, in their order, follow one another
/// instead of being independent: 1 where they do not. What drifts as a first-order autoregression says as much
/// as n (1 - r) / (1 + r) independent values, where r is the correlation of neighbours. It is taken of ranks,
/// so that no outlier decides, and counts where it is significant: above 2 / √n.
pub fn widening_by_drift(values: &[f64]) -> f64 {
    /// Of fewer values the correlation says little.
    const VALUES_AT_LEAST: usize = 10;
    /// Of a few dozen values no more can be told from a jump.
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
    let correlation = correlation.min(CORRELATION_AT_MOST);
    ((1.0 + correlation) / (1.0 - correlation)).sqrt()
}

/// Returns weighted quantiles by name, from pairs of value and count. Values that are not finite are left out.
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

/// A straight line through points, by least squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// Value at 0.
    pub intercept: f64,
    /// Rise per unit.
    pub slope: f64,
}

impl Line {
    /// The line through `points`. `None` where they do not have two abscissas.
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
    fn values_that_drift_say_less() {
        let drifting: Vec<f64> = (0..28).map(|nth| (f64::from(nth) / 4.0).sin()).collect();
        assert!((widening_by_drift(&drifting) - 3.0).abs() < 1e-9);
        assert_eq!(widening_by_drift(&drifting[..9]), 1.0);
        assert_eq!(widening_by_drift(&[7.0; 28]), 1.0);
        // Of independent values a fortieth seems to.
        let mut random = fastrand::Rng::with_seed(1);
        let seem = (0..1000)
            .filter(|_| widening_by_drift(&(0..28).map(|_| random.f64()).collect::<Vec<_>>()) > 1.0)
            .count();
        assert!((1..40).contains(&seem), "{seem}");
        // Of an autoregression with r = 0.7 the interval holds the median hardly less often than of others.
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
        assert!(covered[0] < 800 && covered[1] > 880, "{covered:?}");
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
