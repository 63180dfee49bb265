//! A figure of a benchmark over rounds.

use netdyno_measure::stats::{median_interval_of_sorted, quantile_of_sorted, sorted};

const CONFIDENCE: f64 = 0.95;

/// Returns the median and its interval.
pub fn figure(values: impl Iterator<Item = f64>, digits: usize) -> String {
    let values = sorted(values);
    let interval = median_interval_of_sorted(&values, CONFIDENCE).unwrap();
    let middle = quantile_of_sorted(&values, 0.5);
    format!("{middle:>8.digits$} [{:.digits$}, {:.digits$}]", interval.lo, interval.hi)
}
