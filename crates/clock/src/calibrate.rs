//! Measures the length of a tick, the cost of reading the counter, and the interruptions of an otherwise idle
//! processor.

use crate::ticks::now;
use std::time::{Duration, Instant};

/// Time over which the counter is compared with the monotonic clock. Both readings are accurate to some 30
/// ns, so that the length of a tick is accurate to a few parts in a million.
const CALIBRATION: Duration = Duration::from_millis(10);
/// A gap between two readings that is longer than this counts as a detour.
const DETOUR_NS: f64 = 1000.0;

/// A calibrated counter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clock {
    /// Length of a tick, in nanoseconds.
    pub tick_ns: f64,
    /// Median cost of one reading, in nanoseconds.
    pub cost_ns: f64,
    /// Smallest nonzero difference between two readings, in nanoseconds.
    pub resolution_ns: f64,
}

/// Reads both clocks as nearly as possible at the same moment.
fn both() -> (u64, Instant) {
    let mut best = (u64::MAX, 0, Instant::now());
    for _ in 0..16 {
        let before = now();
        let instant = Instant::now();
        let after = now();
        if after - before < best.0 {
            best = (after - before, before + (after - before) / 2, instant);
        }
    }
    (best.1, best.2)
}

impl Clock {
    /// Calibrates the counter against the monotonic clock. It takes 10 ms.
    pub fn calibrate() -> Self {
        let (tick_0, instant_0) = both();
        while instant_0.elapsed() < CALIBRATION {
            core::hint::spin_loop();
        }
        let (tick_1, instant_1) = both();
        let tick_ns = (instant_1 - instant_0).as_nanos() as f64 / (tick_1 - tick_0) as f64;
        let mut gaps: Vec<u64> = (0..2001)
            .map(|_| {
                let before = now();
                now() - before
            })
            .collect();
        gaps.sort_unstable();
        let resolution = gaps.iter().copied().find(|&gap| gap > 0).unwrap_or(1);
        Self {
            tick_ns,
            cost_ns: gaps[gaps.len() / 2] as f64 * tick_ns,
            resolution_ns: resolution as f64 * tick_ns,
        }
    }

    /// Converts nanoseconds to ticks, rounded down.
    pub fn ticks(&self, ns: f64) -> u64 {
        (ns / self.tick_ns) as u64
    }
}

/// Interruptions of a processor that only read its clock.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Detours {
    /// Length of the observation.
    pub observed_ns: f64,
    /// Number of gaps longer than a microsecond between two readings.
    pub count: u64,
    /// Sum of the gaps.
    pub lost_ns: f64,
    /// Longest gap.
    pub longest_ns: f64,
}

/// Reads the counter for `duration` and records the gaps. This is the selfish detour benchmark of Hoefler et
/// al. 2010, section 2.
pub fn detours(clock: &Clock, duration: Duration) -> Detours {
    let began = now();
    let end = began + clock.ticks(duration.as_nanos() as f64);
    let mut detours = Detours::default();
    let mut last = began;
    while last < end {
        let at = now();
        let gap_ns = (at - last) as f64 * clock.tick_ns;
        if gap_ns > DETOUR_NS {
            detours.count += 1;
            detours.lost_ns += gap_ns;
            detours.longest_ns = detours.longest_ns.max(gap_ns);
        }
        last = at;
    }
    detours.observed_ns = (last - began) as f64 * clock.tick_ns;
    detours
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_agrees_with_the_monotonic_clock() {
        let clock = Clock::calibrate();
        let (tick_0, instant_0) = both();
        std::thread::sleep(Duration::from_millis(20));
        let (tick_1, instant_1) = both();
        let ratio = (tick_1 - tick_0) as f64 * clock.tick_ns / (instant_1 - instant_0).as_nanos() as f64;
        assert!((ratio - 1.0).abs() < 1e-3, "{ratio}");
        assert!(clock.cost_ns > 0.0 && clock.resolution_ns > 0.0);
    }

    #[test]
    fn detours_are_a_part_of_the_time() {
        let clock = Clock::calibrate();
        let detours = detours(&clock, Duration::from_millis(5));
        assert!(detours.observed_ns >= 4.9e6);
        assert!(detours.lost_ns <= detours.observed_ns);
        assert!(detours.longest_ns <= detours.lost_ns);
    }
}
