//! Piecewise straight lines through times over sizes: finds the lines and the sizes at which they meet.

/// A distance from a line below this share of the time counts as noise.
pub(super) const NOISE: f64 = 0.03;
/// A further line must explain as much misfit as one size that is off by this many times the noise.
const WORTH: f64 = 4.0;
/// The largest number of lines. If the search finds more, each line must explain more.
const LINES_AT_MOST: usize = 6;
/// The smallest number of sizes on a line.
pub(super) const SIZES_AT_LEAST: usize = 2;

/// A line `base + slope * n`, in nanoseconds and nanoseconds per byte.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Straight {
    pub(super) base: f64,
    pub(super) slope: f64,
}

/// A time at a size, with the scale of its distance from a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FitPoint {
    pub(super) bytes: f64,
    pub(super) ns: f64,
    /// A distance of this length counts as 1.
    pub(super) scale_ns: f64,
}

impl FitPoint {
    pub(super) fn new(size_bytes: usize, ns: f64, scale_ns: f64) -> Self {
        Self { bytes: size_bytes as f64, ns, scale_ns }
    }

    fn weight(&self) -> f64 {
        self.scale_ns.powi(-2)
    }
}

impl Straight {
    /// Returns the line closest to `points` by weighted least squares. Returns `None` if the points have
    /// fewer than two sizes, or are not finite.
    pub(super) fn through(points: &[FitPoint]) -> Option<Self> {
        let sum = |of: fn(&FitPoint) -> f64| points.iter().map(|p| p.weight() * of(p)).sum::<f64>();
        let total = sum(|_| 1.0);
        let (mean_n, mean_t) = (sum(|p| p.bytes) / total, sum(|p| p.ns) / total);
        let spread: f64 = points.iter().map(|p| p.weight() * (p.bytes - mean_n).powi(2)).sum();
        let product: f64 = points.iter().map(|p| p.weight() * (p.bytes - mean_n) * (p.ns - mean_t)).sum();
        let slope = product / spread;
        let line = Self { base: mean_t - slope * mean_n, slope };
        (line.base.is_finite() && line.slope.is_finite()).then_some(line)
    }

    pub(super) fn at(&self, bytes: f64) -> f64 {
        self.base + self.slope * bytes
    }

    /// Returns the sum of the squared distances of `points`, each divided by its scale.
    fn misfit(&self, points: &[FitPoint]) -> f64 {
        points.iter().map(|p| ((p.ns - self.at(p.bytes)) / p.scale_ns).powi(2)).sum()
    }
}

/// Returns the misfit of `points` to the line closest to them. A single point is on its line.
fn misfit(points: &[FitPoint]) -> f64 {
    match points {
        [point] if point.ns.is_finite() => 0.0,
        _ => Straight::through(points).map_or(f64::INFINITY, |line| line.misfit(points)),
    }
}

/// Cuts `points`, ascending by size, into the runs that straight lines describe best. Each further line
/// must reduce the misfit enough. Returns the index at which each run begins; the first is 0. The last run
/// has at least `last_at_least` points, all others at least two.
///
/// Finds the best cut exactly, by dynamic programming over the ends of runs.
pub(super) fn segments(points: &[FitPoint], last_at_least: usize) -> Vec<usize> {
    let mut worth = WORTH * WORTH;
    loop {
        let begins = segments_worth(points, last_at_least, worth);
        if begins.len() <= LINES_AT_MOST {
            return begins;
        }
        worth *= 2.0;
    }
}

fn segments_worth(points: &[FitPoint], last_at_least: usize, worth: f64) -> Vec<usize> {
    let n = points.len();
    if n <= SIZES_AT_LEAST {
        return vec![0];
    }
    // The least cost of the first `end` points, and the index at which their last run begins.
    let mut best = vec![(f64::INFINITY, 0); n + 1];
    best[0].0 = 0.0;
    for end in SIZES_AT_LEAST..=n {
        let at_least = if end == n { last_at_least } else { SIZES_AT_LEAST };
        for begin in 0..=end - at_least {
            let run = &points[begin..end];
            // A line removes as much misfit as it has parameters even from pure noise.
            let parameters = run.len().min(2) as f64;
            let cost = best[begin].0 + worth + parameters + misfit(run);
            if cost < best[end].0 {
                best[end] = (cost, begin);
            }
        }
    }
    let mut begins = Vec::new();
    let mut end = n;
    while end > 0 {
        end = best[end].1;
        begins.push(end);
    }
    begins.reverse();
    begins
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn points(times: impl Fn(f64) -> f64, sizes: impl IntoIterator<Item = usize>) -> Vec<FitPoint> {
        sizes
            .into_iter()
            .map(|size| {
                let ns = times(size as f64);
                FitPoint::new(size, ns, NOISE * ns)
            })
            .collect()
    }

    fn powers() -> impl Iterator<Item = usize> {
        (0..=22).map(|log| 1 << log)
    }

    #[test]
    fn one_line_is_one_run() {
        let one = points(|n| 1000.0 + 0.5 * n, powers());
        assert_eq!(segments(&one, SIZES_AT_LEAST), [0]);
        let line = Straight::through(&one).unwrap();
        assert!((line.base - 1000.0).abs() < 1e-6 && (line.slope - 0.5).abs() < 1e-12);
        assert_eq!(segments(&[], SIZES_AT_LEAST), [0]);
        assert_eq!(Straight::through(&one[..1]), None);
    }

    #[test]
    fn a_line_ends_where_the_next_begins() {
        let changed = |n: f64| if n < 8192.0 { 1000.0 + 0.5 * n } else { 3000.0 + 0.25 * n };
        assert_eq!(segments(&points(changed, powers()), SIZES_AT_LEAST), [0, 13]);
        let twice = |n: f64| if n > 32.0 { changed(n) } else { 800.0 };
        assert_eq!(segments(&points(twice, powers()), SIZES_AT_LEAST), [0, 6, 13]);
    }

    #[test]
    fn the_last_run_may_be_one_that_begins() {
        let last = points(|n| if n < 4e6 { 1000.0 + 0.5 * n } else { 0.4 * n }, powers());
        assert_eq!(segments(&last, 1), [0, 22]);
        assert_eq!(segments(&last, SIZES_AT_LEAST), [0, 21]);
    }

    proptest! {
        #[test]
        fn noise_makes_no_runs(noise in proptest::collection::vec(-1.0..1.0f64, 23)) {
            let mut noisy = points(|n| 1000.0 + 0.5 * n, powers());
            for (point, noise) in noisy.iter_mut().zip(noise) {
                point.ns *= 1.0 + NOISE * noise;
            }
            prop_assert_eq!(segments(&noisy, SIZES_AT_LEAST), [0]);
        }

        #[test]
        fn no_times_make_it_fail(times in proptest::collection::vec(any::<f64>(), 0..12)) {
            let wild: Vec<FitPoint> =
                times.iter().enumerate().map(|(at, &ns)| FitPoint::new(1 << at, ns, ns.abs())).collect();
            let begins = segments(&wild, SIZES_AT_LEAST);
            prop_assert!(begins[0] == 0 && begins.windows(2).all(|pair| pair[0] < pair[1]));
        }
    }
}
