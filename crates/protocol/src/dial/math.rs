//! The functions of real numbers that distributions need. `core` lacks them, and these return the same bits
//! on every machine.

use core::f64::consts::{LN_2, SQRT_2};

const MANTISSA_BITS: u32 = 52;
const MANTISSA: u64 = (1 << MANTISSA_BITS) - 1;
const BIAS: i64 = 1023;

/// Returns 2 to a power from -1022 to 1023.
const fn power_of_2(exponent: i64) -> f64 {
    f64::from_bits(((exponent + BIAS) as u64) << MANTISSA_BITS)
}

/// Returns the square root of a normal positive number, by Newton's iteration. Returns 0 for any other
/// number.
pub(super) fn sqrt(x: f64) -> f64 {
    if !(f64::MIN_POSITIVE..f64::INFINITY).contains(&x) {
        return 0.0;
    }
    // Half the exponent is right within some percent. Each step doubles the number of right digits.
    let mut root = f64::from_bits((x.to_bits() + 1f64.to_bits()) / 2);
    for _ in 0..5 {
        root = 0.5 * (root + x / root);
    }
    root
}

/// Returns the natural logarithm of a normal positive number: x = 2^k m with m around 1, and ln m = 2
/// artanh((m - 1) / (m + 1)) by its series.
pub(super) fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = (bits >> MANTISSA_BITS) as i64 - BIAS;
    let mut mantissa = f64::from_bits((bits & MANTISSA) | 1f64.to_bits());
    if mantissa > SQRT_2 {
        (mantissa, exponent) = (0.5 * mantissa, exponent + 1);
    }
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    // s is 0.172 at most: its 25th power is beyond the last bit.
    let series = (0..12).rev().fold(0.0, |sum, k| sum * (s * s) + 1.0 / f64::from(2 * k + 1));
    exponent as f64 * LN_2 + 2.0 * s * series
}

/// Returns e to the power of x: x = k ln 2 + r with |r| up to ln 2 / 2, and e^r by its series. x is limited
/// to ±700.
pub(super) fn exp(x: f64) -> f64 {
    let x = x.clamp(-700.0, 700.0);
    let k = (x / LN_2 + if x < 0.0 { -0.5 } else { 0.5 }) as i64;
    let r = x - k as f64 * LN_2;
    let series = (1..=16).rev().fold(1.0, |sum, n| 1.0 + r / f64::from(n) * sum);
    series * power_of_2(k)
}

/// Returns the value that a standard normal variable is below with probability `p`, from e^-25 to 1 - e^-25:
/// Wichura's PPND16 (algorithm AS 241, Applied Statistics 37, 1988), without its far tails.
pub(super) fn inverse_normal(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180625 - q * q;
        return q * polynomial(&A, r) / polynomial(&B, r);
    }
    let r = sqrt(-ln(p.min(1.0 - p))) - 1.6;
    let z = polynomial(&C, r) / polynomial(&D, r);
    if q < 0.0 { -z } else { z }
}

fn polynomial(coefficients: &[f64], x: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, coefficient| sum * x + coefficient)
}

const A: [f64; 8] = [
    3.387_132_872_796_366_5,
    133.141_667_891_784_38,
    1_971.590_950_306_551_3,
    13_731.693_765_509_46,
    45_921.953_931_549_87,
    67_265.770_927_008_7,
    33_430.575_583_588_13,
    2_509.080_928_730_122_7,
];
const B: [f64; 8] = [
    1.0,
    42.313_330_701_600_91,
    687.187_007_492_057_9,
    5_394.196_021_424_751,
    21_213.794_301_586_597,
    39_307.895_800_092_71,
    28_729.085_735_721_943,
    5_226.495_278_852_854,
];
const C: [f64; 8] = [
    1.423_437_110_749_683_5,
    4.630_337_846_156_546,
    5.769_497_221_460_691,
    3.647_848_324_763_204_5,
    1.270_458_252_452_368_4,
    0.241_780_725_177_450_6,
    0.022_723_844_989_269_184,
    7.745_450_142_783_414e-4,
];
const D: [f64; 8] = [
    1.0,
    2.053_191_626_637_759,
    1.676_384_830_183_803_8,
    0.689_767_334_985_1,
    0.148_103_976_427_480_08,
    0.015_198_666_563_616_457,
    5.475_938_084_995_345e-4,
    1.050_750_071_644_416_8e-9,
];

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_functions_are_those_of_std(x in -690.0..690.0f64) {
            let power = exp(x);
            // The error is the last bit of x, which e^x amplifies.
            prop_assert!((power / x.exp() - 1.0).abs() < 1e-13, "exp {x}");
            prop_assert!((ln(power) - power.ln()).abs() < 1e-15 * x.abs().max(1.0), "ln {power}");
            prop_assert!((sqrt(power) / power.sqrt() - 1.0).abs() < 1e-15, "sqrt {power}");
        }

        #[test]
        fn near_1_the_logarithm_is_exact_as_well(x in -0.1..0.1f64) {
            prop_assert!((ln(1.0 + x) - (1.0 + x).ln()).abs() < 1e-16);
        }
    }

    #[test]
    fn at_their_ends_they_are_numbers() {
        assert_eq!((sqrt(0.0), sqrt(-1.0), sqrt(f64::NAN), sqrt(1.0), sqrt(4.0)), (0.0, 0.0, 0.0, 1.0, 2.0));
        assert_eq!((ln(1.0), exp(0.0)), (0.0, 1.0));
        assert!(exp(1e9).is_finite() && exp(-1e9) > 0.0);
    }

    /// Against the normal density, integrated by Simpson's rule from 0.
    #[test]
    fn the_inverse_normal_is_the_inverse_of_the_normal() {
        let density = |z: f64| (-0.5 * z * z).exp() / (2.0 * core::f64::consts::PI).sqrt();
        let below = |z: f64| {
            let (steps, mut sum) = (2000, 0.0);
            let width = z / f64::from(steps);
            for nth in 0..steps {
                let at = f64::from(nth) * width;
                sum += density(at) + 4.0 * density(at + 0.5 * width) + density(at + width);
            }
            0.5 + sum * width / 6.0
        };
        for nth in 1..1000 {
            let p = f64::from(nth) / 1000.0;
            assert!((below(inverse_normal(p)) - p).abs() < 1e-13, "{p}");
        }
        for p in [1e-9, 1e-6, 1e-4, 1e-3] {
            assert!((below(inverse_normal(p)) - p).abs() < 1e-13, "{p}");
            assert!((inverse_normal(p) + inverse_normal(1.0 - p)).abs() < 1e-6, "{p}");
        }
        assert_eq!(inverse_normal(0.5), 0.0);
    }
}
