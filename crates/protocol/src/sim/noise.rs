//! Random variation of durations around their means.

use super::values::{Ps, TruthError, error};
use crate::random::{Random, SQRT_3};

/// The largest standard deviation, as a share of the mean. With more, a duration could be negative.
const MAX_SHARE: f64 = 0.25;
/// The largest distance from the mean, in standard deviations, so that no duration is negative.
const FARTHEST: f64 = 3.9;
const SQRT_2: f64 = core::f64::consts::SQRT_2;

/// Noise on every duration. Its mean is 0, so the mean of a duration is the model parameter.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Noise {
    /// Standard deviation, as a share of the mean duration.
    pub share: f64,
    /// The distribution.
    pub shape: Shape,
}

/// The distribution of noise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// Normal: the sum of many small causes.
    #[default]
    Normal,
    /// Uniform between two bounds.
    Uniform,
    /// Laplace: most values near the mean, with long tails on both sides.
    Laplace,
    /// Exponential: a minimum duration with a long tail above it.
    Exponential,
}

impl Noise {
    /// Draws a duration with the mean `mean_ps`.
    pub fn around(self, mean_ps: Ps, random: &mut Random) -> Ps {
        if self.share == 0.0 {
            return mean_ps;
        }
        let deviations = match self.shape {
            Shape::Normal => random.normal(),
            Shape::Uniform => SQRT_3 * (2.0 * random.unit() - 1.0),
            Shape::Laplace => {
                let distance = (random.exponential() / SQRT_2).min(FARTHEST);
                if random.chance(0.5) { distance } else { -distance }
            }
            Shape::Exponential => random.exponential() - 1.0,
        };
        (mean_ps as f64 * (1.0 + self.share * deviations) + 0.5) as Ps
    }
}

/// Parses the value of `noise=`.
pub(super) fn share(text: &str) -> Result<f64, TruthError> {
    text.parse()
        .ok()
        .filter(|x| (0.0..=MAX_SHARE).contains(x))
        .ok_or_else(|| error(format_args!("noise={text} is not a share from 0 to {MAX_SHARE}")))
}

/// Parses the value of `noise_shape=`.
pub(super) fn shape(text: &str) -> Result<Shape, TruthError> {
    match text {
        "normal" => Ok(Shape::Normal),
        "uniform" => Ok(Shape::Uniform),
        "laplace" => Ok(Shape::Laplace),
        "exponential" => Ok(Shape::Exponential),
        _ => {
            Err(error(format_args!("noise_shape={text} is none of normal, uniform, laplace and exponential")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_has_its_mean_and_its_deviation() {
        for shape in [Shape::Normal, Shape::Uniform, Shape::Laplace, Shape::Exponential] {
            let noise = Noise { share: 0.1, shape };
            let (mut random, n) = (Random::new(1), 200_000);
            let (mut sum, mut squares) = (0.0, 0.0);
            for _ in 0..n {
                let deviations = noise.around(1_000_000, &mut random) as f64 / 1e5 - 10.0;
                sum += deviations;
                squares += deviations * deviations;
            }
            let (mean, square) = (sum / f64::from(n), squares / f64::from(n));
            assert!(mean.abs() < 0.02 && (square - 1.0).abs() < 0.05, "{shape:?}: {mean} {square}");
        }
    }
}
