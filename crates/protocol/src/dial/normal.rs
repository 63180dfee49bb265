//! The inverse of the normal distribution function, which `libm` lacks.

use libm::{log, sqrt};

/// Returns the value that a standard normal variable is below with probability `p`, from e^-25 to 1 - e^-25:
/// Wichura's PPND16 (algorithm AS 241, Applied Statistics 37, 1988), without its far tails.
pub(super) fn inverse_normal(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180625 - q * q;
        return q * polynomial(&A, r) / polynomial(&B, r);
    }
    let r = sqrt(-log(p.min(1.0 - p))) - 1.6;
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
