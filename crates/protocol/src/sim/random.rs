//! A seeded random source without dependencies (SplitMix64, Steele et al. 2014).

/// For what is uniform: its variance is a twelfth of its width squared.
pub(super) const SQRT_3: f64 = 1.732_050_807_568_877_2;

/// The generator. The same seed gives the same numbers on every machine.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator that starts from `seed`.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 uniform bits.
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A uniform number below `end`; 0 where that is 0.
    pub const fn below(&mut self, end: u64) -> u64 {
        ((self.bits() as u128 * end as u128) >> 64) as u64
    }

    /// True with `probability`.
    pub fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.unit() < probability
    }

    /// A uniform number from 0 to below 1.
    pub const fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number with mean 0 and standard deviation 1, symmetric and within ±3.47: the sum
    /// of four uniform ones, near to normal and free of libm.
    pub fn normal(&mut self) -> f64 {
        // The sum of four uniform numbers from 0 to 1 has the variance 4 / 12.
        let bits = self.bits();
        let sum: u64 = (0..4).map(|quarter| (bits >> (16 * quarter)) & 0xffff).sum();
        // Each quarter stands for the middle of its 65536th.
        SQRT_3 * ((sum + 2) as f64 / 65536.0 - 2.0)
    }

    /// A number with mean 1 and deviation 1 that is never below 0 (von Neumann 1951, which compares uniform
    /// numbers and so is free of libm).
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
