//! A seeded random number generator (SplitMix64, Steele et al. 2014).

/// √3, for uniform distributions: their variance is a twelfth of their width squared.
pub(crate) const SQRT_3: f64 = 1.732_050_807_568_877_2;

/// The generator. The same seed gives the same numbers on every machine.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates a generator from `seed`.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns 64 uniform bits.
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a uniform number below `end`, or 0 if `end` is 0.
    pub const fn below(&mut self, end: u64) -> u64 {
        ((self.bits() as u128 * end as u128) >> 64) as u64
    }

    /// Returns `true` with `probability`.
    pub fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.unit() < probability
    }

    /// Returns a uniform number in [0, 1).
    pub const fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a number with mean 0 and standard deviation 1, symmetric and within ±3.47. It is the sum
    /// of four uniform numbers, which is close to normal and costs little.
    pub fn normal(&mut self) -> f64 {
        // The sum of four uniform numbers from 0 to 1 has the variance 4 / 12.
        let bits = self.bits();
        let sum = (bits & 0xffff) + ((bits >> 16) & 0xffff) + ((bits >> 32) & 0xffff) + (bits >> 48);
        // Each quarter stands for the middle of its interval of 1/65536.
        SQRT_3 * ((sum + 2) as f64 / 65536.0 - 2.0)
    }

    /// Returns an exponentially distributed number with mean 1 and standard deviation 1. The method
    /// compares uniform numbers and needs no logarithm (von Neumann 1951).
    pub fn exponential(&mut self) -> f64 {
        let mut whole = 0.0;
        loop {
            let first = self.bits();
            let (mut last, mut falls) = (first, 1);
            loop {
                let next = self.bits();
                if next >= last {
                    break;
                }
                (last, falls) = (next, falls + 1);
            }
            if falls % 2 == 1 {
                return whole + first as f64 / u64::MAX as f64;
            }
            whole += 1.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_has_mean_0_and_deviation_1() {
        let mut random = Random::new(1);
        let n = 100_000;
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..n {
            let z = random.normal();
            sum += z;
            squares += z * z;
        }
        let mean = sum / f64::from(n);
        assert!(mean.abs() < 0.02);
        assert!((squares / f64::from(n) - 1.0).abs() < 0.02);
    }
}
