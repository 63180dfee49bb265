//! Computation that takes a given time: a chain of dependent operations that neither the compiler nor the
//! processor can shorten.

use crate::calibrate::Clock;
use crate::ticks::{now, serialise};
use std::hint::black_box;

/// Number of steps in a calibration run.
const CALIBRATION_STEPS: u64 = 4000;

/// A computation with a known time per step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    step_ns: f64,
}

impl Work {
    /// Measures the time of a step. It takes the median over many short runs, so that interruptions do not
    /// count.
    pub fn calibrate(clock: &Clock) -> Self {
        let mut runs: Vec<u64> = (0..101)
            .map(|_| {
                let before = now();
                run(CALIBRATION_STEPS);
                now() - before
            })
            .collect();
        runs.sort_unstable();
        let run_ns = runs[runs.len() / 2] as f64 * clock.tick_ns - clock.cost_ns;
        Self { step_ns: run_ns / CALIBRATION_STEPS as f64 }
    }

    /// Returns the number of steps that take about `ns` nanoseconds.
    pub fn steps(&self, ns: f64) -> u64 {
        (ns / self.step_ns).round() as u64
    }
}

/// Runs `steps` dependent steps. They do not overlap with code before or after the call, so that the
/// processor time is really used up.
#[inline]
pub fn run(steps: u64) {
    serialise();
    let mut x = black_box(0x9e37_79b9_7f4a_7c15_u64);
    for _ in 0..steps {
        x = black_box_register(x.wrapping_mul(0xd129_0b26_88cc_a5d5));
    }
    black_box(x);
    serialise();
}

/// Hides a value from the optimiser and keeps it in its register, which `std::hint::black_box` does not
/// guarantee.
#[inline(always)]
fn black_box_register(mut x: u64) -> u64 {
    if cfg!(miri) {
        return x;
    }
    // SAFETY: the assembly is empty and only claims to change the register.
    unsafe { core::arch::asm!("/* {0} */", inout(reg) x, options(nomem, nostack, preserves_flags)) };
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Work sets overheads on a dial, so twice the steps must take twice the time. The test compares the
    /// shortest of several runs, so that a busy machine cannot make it fail.
    #[test]
    fn time_is_linear_in_steps() {
        // The lengths alternate, so that a change of the clock frequency affects all three.
        let mut least = [u64::MAX; 3];
        for _ in 0..300 {
            for (least, steps) in least.iter_mut().zip([20_000, 40_000, 80_000]) {
                let before = now();
                run(steps);
                *least = (*least).min(now() - before);
            }
        }
        let [one, two, four] = least.map(|ticks| ticks as f64);
        let ratio = (four - two) / (two - one);
        assert!((1.8..2.2).contains(&ratio), "{ratio}");
    }
}
