//! Straight lines through times over sizes, and where one line ends and another begins.

/// Distance from a line, as a share of the time, that is taken for noise.
pub(super) const NOISE: f64 = 0.03;
/// A further line must explain as much as one size that is so many times the noise off.
const WORTH: f64 = 4.0;
/// Lines at most: where more would be worth it, each must be worth more.
const LINES_AT_MOST: usize = 6;
/// Sizes on a line at least.
pub(super) const SIZES_AT_LEAST: usize = 2;

/// A line `base + slope * n`, in nanoseconds and nanoseconds per byte.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Straight {
    pub(super) base: f64,
    pub(super) slope: f64,
}

/// A time at a size, and what a distance from it counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) bytes: f64,
    pub(super) ns: f64,
    /// A distance of this length counts 1.
    pub(super) scale_ns: f64,
}

impl Point {
    pub(super) fn new(size_bytes: usize, ns: f64, scale_ns: f64) -> Self {
        Self { bytes: size_bytes as f64, ns, scale_ns }
    }

    fn weight(&self) -> f64 {
        self.scale_ns.powi(-2)
    }
}

impl Straight {
    /// The line nearest to `points` by weighted least squares. `None` where they do not have
    /// two sizes, or are no numbers.
    pub(super) fn through(points: &[Point]) -> Option<Self> {
        let sum = |of: fn(&Point) -> f64| points.iter().map(|p| p.weight() * of(p)).sum::<f64>();
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

    /// The sum of the squared distances of `points`, each in its scale.
    fn misfit(&self, points: &[Point]) -> f64 {
        points.iter().map(|p| ((p.ns - self.at(p.bytes)) / p.scale_ns).powi(2)).sum()
    }
}

/// How far `points` are from the line nearest to them. One by itself is on its line.
fn misfit(points: &[Point]) -> f64 {
    match points {
        [point] if point.ns.is_finite() => 0.0,
        _ => Straight::through(points).map_or(f64::INFINITY, |line| line.misfit(points)),
    }
}

/// Cuts `points`, ascending by size, into the runs that straight lines describe best, where
/// each further line must be worth it. Returns where each run begins, the first 0. The last
/// run has `last_at_least` points, all others have two.
///
/// The best cut is found exactly, by dynamic programming over the ends of runs.
pub(super) fn segments(points: &[Point], last_at_least: usize) -> Vec<usize> {
    let mut worth = WORTH * WORTH;
    loop {
        let begins = segments_worth(points, last_at_least, worth);
        if begins.len() <= LINES_AT_MOST {
            return begins;
        }
        worth *= 2.0;
    }
}

fn segments_worth(points: &[Point], last_at_least: usize, worth: f64) -> Vec<usize> {
    let n = points.len();
    if n <= SIZES_AT_LEAST {
        return vec![0];
    }
    // The least cost of the first `end` points, and where the last run of it begins.
    let mut best = vec![(f64::INFINITY, 0); n + 1];
    best[0].0 = 0.0;
    for end in SIZES_AT_LEAST..=n {
        let at_least = if end == n { last_at_least } else { SIZES_AT_LEAST };
        for begin in 0..=end - at_least {
            let run = &points[begin..end];
            // A line takes as much misfit away as it has parameters, for nothing.
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

    fn points(times: impl Fn(f64) -> f64, sizes: impl IntoIterator<Item = usize>) -> Vec<Point> {
        sizes
            .into_iter()
            .map(|size| {
                let ns = times(size as f64);
                Point::new(size, ns, NOISE * ns)
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
            let wild: Vec<Point> =
                times.iter().enumerate().map(|(at, &ns)| Point::new(1 << at, ns, ns.abs())).collect();
            let begins = segments(&wild, SIZES_AT_LEAST);
            prop_assert!(begins[0] == 0 && begins.windows(2).all(|pair| pair[0] < pair[1]));
        }
    }
}
