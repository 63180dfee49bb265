//! Warnings about the machine of a run: its clock, preemption, and processors that change between launches.

use crate::precision::Timed;
use crate::record::doubt::Doubt;
use crate::show::{Number, Time};
use crate::stats::{median, quantile_of_sorted, sorted};

/// The clock is fine enough for a time of at least this many clock readings.
const CLOCK_IS_FINE: f64 = 10.0;
/// Batches average out up to this many involuntary switches a second.
const PREEMPTIONS_PER_S: f64 = 200.0;
/// Two groups of launches are apart if the smallest value of one exceeds the largest value of the other by
/// this factor.
const APART: f64 = 1.3;

/// Reports that the cost of a clock reading is significant for a time.
pub(crate) fn is_coarse(ns: f64, timer_ns: f64) -> bool {
    ns < CLOCK_IS_FINE * timer_ns
}

/// Returns a warning if the cost of a clock reading is significant for a round trip.
pub(crate) fn coarse_clock(rtt_ns: Option<f64>, timer_ns: f64) -> Option<Doubt> {
    rtt_ns.is_some_and(|rtt| is_coarse(rtt, timer_ns)).then(|| {
        let text = format!("reading the clock takes {}, which is taken off", Time(timer_ns));
        Doubt::new("clock_is_coarse", text)
    })
}

/// Returns a warning if some of the figures were measured as times so short that the clock is coarse for them.
pub(crate) fn coarse_for_some(figures: &[Timed], timer_ns: f64) -> Option<Doubt> {
    let is_short = |figure: &&Timed| is_coarse(figure.value_ns * figure.together, timer_ns);
    let short = figures.iter().filter(is_short).count();
    (short > 0).then(|| {
        let text = format!(
            "{short} of {} figures come from less than {} readings of the clock, of which one takes {} and is taken off",
            figures.len(),
            Number(CLOCK_IS_FINE),
            Time(timer_ns)
        );
        Doubt::new("clock_is_coarse", text)
    })
}

/// Returns a warning if a process was often preempted; `process` is its role. Each launch gives the number
/// of preemptions, if it is known, and its duration in nanoseconds.
pub(crate) fn preempted(
    process: &str,
    launches: impl IntoIterator<Item = (Option<u64>, f64)>,
) -> Option<Doubt> {
    let per_s = launches.into_iter().filter_map(|(count, took_ns)| Some(count? as f64 * 1e9 / took_ns));
    let per_s = median(per_s);
    (per_s > PREEMPTIONS_PER_S).then(|| {
        let text = format!("the {process} lost its processor {per_s:.0} times a second (median)");
        Doubt::new("preempted", text)
    })
}

/// Describes two groups of launches that lie far apart, each of at least two launches. The median over both
/// groups describes neither.
pub(crate) fn two_groups(values: impl Iterator<Item = f64>) -> Option<String> {
    let values = sorted(values);
    let split = (2..values.len().saturating_sub(1)).max_by(|&a, &b| {
        let jump = |at: usize| values[at] / values[at - 1];
        jump(a).total_cmp(&jump(b))
    })?;
    let (near, far) = values.split_at(split);
    (far[0] > APART * near[near.len() - 1]).then(|| {
        format!(
            "the launches fall into two groups, {} around {} and {} around {}, as where processors change their places",
            near.len(),
            Time(quantile_of_sorted(near, 0.5)),
            far.len(),
            Time(quantile_of_sorted(far, 0.5))
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_in_two_groups_are_told() {
        let told = |values: &[f64]| two_groups(values.iter().copied());
        assert_eq!(told(&[100.0, 101.0, 103.0, 108.0, 112.0, 120.0]), None);
        assert_eq!(told(&[100.0, 101.0, 102.0, 500.0]), None, "one far away is an outlier");
        let text = told(&[480.0, 100.0, 101.0, 500.0, 102.0]).unwrap();
        assert!(text.contains("3 around 101 ns and 2 around 490 ns"), "{text}");
        assert_eq!(told(&[]), None);
    }
}
