//! The resolution of times that a system counts in ticks.

/// A time is a difference of two counts of whole ticks. Each count is too small by up to a tick, so that the
/// standard deviation of the difference is a tick over √6. Two of them hold 95 %.
const PER_TICK: f64 = 0.82;
/// The standard error of a median over that of a mean.
const MEDIAN: f64 = 1.25;

/// Returns the resolution of a sum of `counts` such times, in the unit of `tick`.
pub(super) fn of_sum(tick: f64, counts: f64) -> f64 {
    PER_TICK * tick * counts.sqrt()
}

/// Returns the resolution of a time that the system samples: at each tick it counts a whole tick for what runs then.
/// `of_ns` is the sampled part of `all_ns`. Even a part of which no sample was seen has some.
pub(super) fn of_samples(of_ns: f64, all_ns: f64, tick_ns: f64) -> f64 {
    if tick_ns <= 0.0 {
        return 0.0;
    }
    let (seen, all) = (of_ns / tick_ns, all_ns / tick_ns);
    let share = ((seen + 1.0) / (all + 2.0)).clamp(0.0, 1.0);
    // Two standard deviations of a binomial distribution.
    2.0 * tick_ns * (all.max(0.0) * share * (1.0 - share)).sqrt()
}

/// Returns the resolution of the median over launches, from the resolutions of the launches. Launches of the same
/// length have values that are `step` apart, and so has their median.
pub(super) fn of_median(launches: impl Iterator<Item = f64>, step: f64) -> f64 {
    let all: Vec<f64> = launches.filter(|resolution| resolution.is_finite()).collect();
    if all.is_empty() {
        return 0.0;
    }
    let launches = all.len() as f64;
    let mean_square = all.iter().map(|resolution| resolution * resolution).sum::<f64>() / launches;
    let error = (mean_square / launches).sqrt();
    (if all.len() == 1 { error } else { MEDIAN * error }).max(step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::median;

    #[test]
    fn samples_are_within_their_resolution() {
        let mut random = fastrand::Rng::with_seed(2);
        for (share, least) in [(0.5, 920), (0.1, 900), (0.01, 950)] {
            let near = (0..1000).filter(|_| {
                let seen = (0..40).filter(|_| random.f64() < share).count() as f64;
                (seen - 40.0 * share).abs() <= of_samples(seen, 40.0, 1.0)
            });
            let count = near.count();
            assert!(count >= least, "{share}: {count}");
        }
        assert_eq!(of_samples(3.0, 5.0, 0.0), 0.0);
    }

    #[test]
    fn random_windows_are_within_the_resolution() {
        let mut random = fastrand::Rng::with_seed(1);
        let (tick, truth, windows, launches) = (10.0, 133.0, 4, 9);
        let mut launch = || {
            let windows = (0..windows).map(|_| {
                let start = random.f64() * tick;
                ((start + truth) / tick).floor() * tick
            });
            windows.sum::<f64>()
        };
        let wanted = f64::from(windows) * truth;
        let one = of_sum(tick, f64::from(windows));
        let near = |found: f64, resolution: f64| (found - wanted).abs() <= resolution;
        let within =
            |count: usize, is_near: &mut dyn FnMut() -> bool| (0..count).filter(|_| is_near()).count();
        let of_launches = within(1000, &mut || near(launch(), one));
        let all = of_median(std::iter::repeat_n(one, launches), tick);
        let of_medians = within(1000, &mut || near(median((0..launches).map(|_| launch())), all));
        assert!(of_launches >= 920 && of_medians >= 920, "{of_launches}, {of_medians}");
        assert!(of_launches < 1000, "the resolution is far too wide");
    }
}
