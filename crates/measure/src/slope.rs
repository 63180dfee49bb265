//! The slope of a line through points of which some are far off, with an interval that assumes no distribution.

use crate::stats::{Interval, quantile_of_sorted, sorted};
use statrs::distribution::{ContinuousCDF, Normal};
use std::collections::BTreeMap;

/// The slope of Theil and Sen: the median of the slopes between all pairs of points. Points that are far off do not move
/// it, as long as they are fewer than 29 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TheilSen {
    /// Rise per unit.
    pub slope: f64,
    /// Its interval (Sen 1968); `None` with too few points.
    pub interval: Option<Interval>,
}

impl TheilSen {
    /// Returns the slope through `points`. Returns `None` if they have fewer than two different abscissas.
    pub fn through(points: &[(f64, f64)], confidence: f64) -> Option<Self> {
        let pairs = points.iter().enumerate().flat_map(|(nth, a)| points[..nth].iter().map(move |b| (a, b)));
        let slopes = sorted(pairs.filter(|(a, b)| a.0 != b.0).map(|(a, b)| (a.1 - b.1) / (a.0 - b.0)));
        if slopes.is_empty() {
            return None;
        }
        let interval = ranks(points, slopes.len(), confidence);
        Some(Self {
            slope: quantile_of_sorted(&slopes, 0.5),
            interval: interval.map(|(lo, hi)| Interval { lo: slopes[lo], hi: slopes[hi] }),
        })
    }
}

/// Returns the ranks of the slopes that bound the interval, from 0. They follow from the deviation of Kendall's statistic
/// over abscissas of which many are equal.
fn ranks(points: &[(f64, f64)], slopes: usize, confidence: f64) -> Option<(usize, usize)> {
    let variance_of = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0) / 18.0;
    let mut equal = BTreeMap::<u64, f64>::new();
    points.iter().for_each(|point| *equal.entry(point.0.to_bits()).or_default() += 1.0);
    let variance = variance_of(points.len() as f64) - equal.into_values().map(variance_of).sum::<f64>();
    let beyond = Normal::new(0.0, 1.0).ok()?.inverse_cdf(0.5 + confidence / 2.0) * variance.sqrt();
    let lo = ((slopes as f64 - beyond) / 2.0).floor() - 1.0;
    let lo = (lo >= 0.0).then_some(lo as usize)?;
    Some((lo, slopes - 1 - lo))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_straight_line_has_its_slope() {
        let points: Vec<_> = (0..10).map(|x| (f64::from(x), 3.0 - 2.0 * f64::from(x))).collect();
        let found = TheilSen::through(&points, 0.95).unwrap();
        assert_eq!(found, TheilSen { slope: -2.0, interval: Some(Interval { lo: -2.0, hi: -2.0 }) });
        assert_eq!(TheilSen::through(&points[..3], 0.95).unwrap().interval, None);
        assert_eq!(TheilSen::through(&[(1.0, 2.0), (1.0, 3.0)], 0.95), None);
        assert_eq!(TheilSen::through(&[], 0.95), None);
    }

    /// Returns a permutation of 0 to 6 by its number.
    fn permutation(mut number: usize) -> Vec<(f64, f64)> {
        let mut left: Vec<u32> = (0..7).collect();
        let mut next = |x: u32| {
            let nth = number % left.len();
            number /= left.len();
            (f64::from(x), f64::from(left.remove(nth)))
        };
        (0..7).map(&mut next).collect()
    }

    /// All orders of seven values are equally likely if there is no slope. The interval may be one slope wider at either
    /// end than it must be.
    #[test]
    fn the_ranks_are_near_the_exact_ones() {
        let (lo, hi) = ranks(&permutation(0), 21, 0.95).unwrap();
        let covered = |narrower: usize| {
            let contains = |nth: &usize| {
                let points = permutation(*nth);
                let pairs = (0..7).flat_map(|a| (0..a).map(move |b| (a, b)));
                let rising = pairs.filter(|&(a, b)| points[a].1 > points[b].1).count();
                // The slopes that are negative come first.
                (21 - rising) > lo + narrower && rising > 20 - hi + narrower
            };
            (0..5040).filter(contains).count() as f64 / 5040.0
        };
        assert!(covered(0) >= 0.95 && covered(2) < 0.95, "{} {}", covered(0), covered(2));
    }

    #[test]
    fn outliers_do_not_move_the_slope() {
        let mut random = fastrand::Rng::with_seed(1);
        // Six values, five times each; one run in five took up to ten times as long.
        let mut points: Vec<_> = (0..30).map(|nth| (f64::from(nth % 6), f64::from(nth % 6))).collect();
        points.iter_mut().for_each(|point| point.1 += 1.0 + 0.02 * random.f64());
        (0..30).step_by(5).for_each(|nth| points[nth].1 *= 1.0 + 9.0 * random.f64());
        let found = TheilSen::through(&points, 0.95).unwrap();
        assert!((found.slope - 1.0).abs() < 0.03 && found.interval.unwrap().contains(1.0), "{found:?}");
    }

    #[test]
    fn the_interval_covers_the_slope() {
        let mut random = fastrand::Rng::with_seed(2);
        let runs = 2000;
        let covered = (0..runs)
            .filter(|_| {
                // An exponential distribution: runs are late and never early.
                let mut late = |nth: u32| 2.0 * f64::from(nth % 6) - (1.0 - random.f64()).ln();
                let points: Vec<_> = (0..30).map(|nth| (f64::from(nth % 6), late(nth))).collect();
                TheilSen::through(&points, 0.95).unwrap().interval.unwrap().contains(2.0)
            })
            .count();
        let share = covered as f64 / f64::from(runs);
        assert!((0.93..0.98).contains(&share), "{share}");
    }
}
