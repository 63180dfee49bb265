//! A distribution as a table of quantiles, so that a draw costs a few nanoseconds. Values between two
//! quantiles are uniform. The table has the requested mean and deviation, to the last digits.

use super::normal::inverse_normal;
use super::spread::{Shape, Spread};
use crate::random::Random;
use alloc::boxed::Box;
use libm::{exp, log, sqrt};

/// The number of cells, each of the same probability, as a power of two.
const CELL_BITS: u32 = 10;
const CELLS: usize = 1 << CELL_BITS;
/// An infinite tail is cut off where this share of the last cell is left.
const LEFT_OF_LAST: f64 = 1.0 / 8.0;
/// The number of bisection steps that find a number to its last bits.
const HALVINGS: u32 = 60;
/// The largest deviation of a logarithm. The widest spread needs less.
const WIDEST_LOGARITHM: f64 = 4.0;

/// The values at the ends of the cells, in ticks: ascending, none below 0.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Quantiles(Box<Table>);

type Table = [f64; CELLS + 1];

impl Quantiles {
    /// Creates the table of a mean and a spread that [`check`](super::spread::check) accepts. Adds `beside`
    /// to each value and replaces values below 0 by 0. Arguments are in nanoseconds; a tick takes `tick_ns`.
    pub(super) fn new(mean: f64, spread: Spread, beside: f64, tick_ns: f64) -> Self {
        let mut table = distribution(spread.shape, mean, spread.deviation);
        table.iter_mut().for_each(|value| *value = ((*value + beside) / tick_ns).max(0.0));
        Self(table)
    }

    /// Returns the largest value that a draw can have, in ticks.
    pub(super) fn most(&self) -> u64 {
        (self.0[CELLS] + 0.5) as u64
    }

    /// Draws a value, in ticks.
    #[inline]
    pub(super) fn draw(&self, random: &mut Random) -> u64 {
        /// The random bits for the position within a cell. The cell leaves 54 of 64 bits, and an `f64` from 0
        /// to 1 has room for 53.
        const PART_BITS: u32 = 53;
        let bits = random.bits();
        let cell = (bits >> (u64::BITS - CELL_BITS)) as usize;
        let part = (bits & ((1 << PART_BITS) - 1)) as f64 / (1u64 << PART_BITS) as f64;
        let [low, high] = [self.0[cell], self.0[cell + 1]];
        (low + part * (high - low) + 0.5) as u64
    }
}

/// Returns the distribution of that mean and deviation. No value is below 0.
fn distribution(shape: Shape, mean: f64, deviation: f64) -> Box<Table> {
    let mut table = match shape {
        Shape::Lognormal => lognormal(deviation / mean),
        _ => from_0(&standard(shape), deviation / mean),
    };
    // The ratio of deviation to mean is right already. Scaling makes the mean right.
    let scale = mean / moments(&table).mean;
    table.iter_mut().for_each(|value| *value *= scale);
    table
}

/// Returns a distribution of that shape, with any mean and deviation.
fn standard(shape: Shape) -> Box<Table> {
    quantiles(|p| match shape {
        Shape::Uniform => p,
        Shape::Normal | Shape::Lognormal => inverse_normal(p),
        Shape::Exponential => -log(1.0 - p),
    })
}

/// Returns the table of the distribution whose values are below `value(p)` with probability p.
fn quantiles(value: impl Fn(f64) -> f64) -> Box<Table> {
    let (mut table, last) = (Box::new([0.0; CELLS + 1]), CELLS as f64);
    for (nth, place) in table.iter_mut().enumerate() {
        *place = value((nth as f64).clamp(LEFT_OF_LAST, last - LEFT_OF_LAST) / last);
    }
    table
}

/// Shifts the standard distribution until the deviation is `wanted` means. Values that would be below 0
/// become 0. The shift takes account of them.
fn from_0(standard: &Table, wanted: f64) -> Box<Table> {
    let shifted = |by: f64| {
        let mut table = Box::new(*standard);
        table.iter_mut().for_each(|value| *value = (*value + by).max(0.0));
        table
    };
    let Moments { mean, variance } = moments(standard);
    let whole = sqrt(variance) / wanted - mean;
    if standard[0] + whole >= 0.0 {
        return shifted(whole);
    }
    // A shift down reduces the mean faster than the deviation.
    let least = -standard[CELLS - 1];
    shifted(bisect(least, -standard[0], |by| moments(&shifted(by)).ratio_is_below(wanted)))
}

/// Returns the lognormal distribution whose deviation is `wanted` means.
fn lognormal(wanted: f64) -> Box<Table> {
    let standard = standard(Shape::Lognormal);
    let of = |deviation: f64| {
        let mut table = standard.clone();
        table.iter_mut().for_each(|value| *value = exp(deviation * *value));
        table
    };
    of(bisect(0.0, WIDEST_LOGARITHM, |deviation| !moments(&of(deviation)).ratio_is_below(wanted)))
}

/// Returns the point between `low` and `high` from which on `is_so` is true.
fn bisect(mut low: f64, mut high: f64, is_so: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if is_so(middle) { high = middle } else { low = middle }
    }
    high
}

struct Moments {
    mean: f64,
    variance: f64,
}

impl Moments {
    /// Reports whether the deviation is less than `ratio` means.
    fn ratio_is_below(&self, ratio: f64) -> bool {
        self.variance < ratio * ratio * self.mean * self.mean
    }
}

/// Returns the mean and the variance of draws from a table.
fn moments(table: &Table) -> Moments {
    let cells = || table.iter().zip(&table[1..]);
    let mean = cells().map(|(low, high)| 0.5 * (low + high)).sum::<f64>() / CELLS as f64;
    let square = |(low, high): (&f64, &f64)| {
        let (low, high) = (low - mean, high - mean);
        (low * low + low * high + high * high) / 3.0
    };
    Moments { mean, variance: cells().map(square).sum::<f64>() / CELLS as f64 }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn spread(deviation: f64, shape: Shape) -> Spread {
        Spread { deviation, shape }
    }

    fn draws(table: &Quantiles, seed: u64) -> Vec<f64> {
        let mut random = Random::new(seed);
        (0..100_000).map(|_| table.draw(&mut random) as f64).collect()
    }

    fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64;
        (mean, variance.sqrt())
    }

    #[test]
    fn many_draws_have_the_mean_and_the_deviation() {
        for shape in Shape::ALL {
            for deviation in [50.0, 2_000.0, 4_900.0] {
                let table = Quantiles::new(10_000.0, spread(deviation, shape), 0.0, 0.5);
                let (mean, found) = mean_and_deviation(&draws(&table, 1));
                assert!((mean / 20_000.0 - 1.0).abs() < 0.01, "{shape:?} ±{deviation}: {mean}");
                assert!((found / (2.0 * deviation) - 1.0).abs() < 0.01, "{shape:?} ±{deviation}: {found}");
            }
        }
    }

    /// The shapes differ in their least value, their median and their 99th percentile.
    #[test]
    fn the_shapes_are_what_they_are_called() {
        for (shape, least, median, p99) in [
            (Shape::Uniform, 10.0 - 3f64.sqrt() * 2.0, 10.0, 10.0 + 0.98 * 3f64.sqrt() * 2.0),
            (Shape::Normal, 2.66, 10.0, 10.0 + 2.326 * 2.0),
            // The variance of the logarithm is ln(1 + 0.2²) = 0.198².
            (Shape::Lognormal, 4.7, 10.0 / 1.04f64.sqrt(), 9.806 * (0.198 * 2.326f64).exp()),
            (Shape::Exponential, 8.0, 8.0 + 2.0 * 2f64.ln(), 8.0 + 2.0 * 100f64.ln()),
        ] {
            let Quantiles(table) = Quantiles::new(10e3, spread(2e3, shape), 0.0, 1e3);
            let at = |p: f64| table[(p * CELLS as f64 + 0.5) as usize];
            for (p, wanted) in [(0.0, least), (0.5, median), (0.99, p99)] {
                assert!((at(p) / wanted - 1.0).abs() < 0.02, "{shape:?} at {p}: {} {wanted}", at(p));
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_draws() {
        let table = Quantiles::new(10e3, spread(2e3, Shape::Lognormal), 0.0, 0.4);
        assert_eq!(draws(&table, 7), draws(&table, 7));
        assert_ne!(draws(&table, 7), draws(&table, 8));
    }

    #[test]
    fn what_stands_beside_shifts_and_does_not_go_below_0() {
        let normal = spread(100.0, Shape::Normal);
        let (mean, deviation) = mean_and_deviation(&draws(&Quantiles::new(1e3, normal, 500.0, 1.0), 3));
        assert!((mean - 1500.0).abs() < 2.0 && (deviation - 100.0).abs() < 1.0, "{mean} {deviation}");
        let all = draws(&Quantiles::new(1e3, normal, -1000.0, 1.0), 3);
        assert!(all.iter().filter(|&&value| value == 0.0).count() > 40_000);
        let most = Quantiles::new(1e3, normal, -1000.0, 1.0).most();
        assert!(all.iter().all(|&value| value <= most as f64) && most < 400);
    }

    proptest! {
        /// Mean and deviation are exact, also if the shape alone would have values below 0.
        #[test]
        fn tables_rise_from_0_and_are_exact(mean in 1e-3..1e9f64, ratio in 1e-6..1.0f64, shape in 0..4usize) {
            let (shape, deviation) = (Shape::ALL[shape], mean * ratio);
            let Quantiles(table) = Quantiles::new(mean, spread(deviation, shape), 0.0, 1.0);
            prop_assert!(table[0] >= 0.0 && table.is_sorted());
            let found = moments(&table);
            prop_assert!((found.mean / mean - 1.0).abs() < 1e-9, "{}", found.mean);
            prop_assert!((found.variance.sqrt() / deviation - 1.0).abs() < 1e-6, "{}", found.variance.sqrt());
        }

        #[test]
        fn the_widest_lognormal_is_exact_as_well(ratio in 1.0..4.0f64) {
            let Quantiles(table) = Quantiles::new(1e3, spread(1e3 * ratio, Shape::Lognormal), 0.0, 1.0);
            let found = moments(&table);
            prop_assert!((found.mean / 1e3 - 1.0).abs() < 1e-9);
            prop_assert!((found.variance.sqrt() / (1e3 * ratio) - 1.0).abs() < 1e-6);
        }
    }
}
