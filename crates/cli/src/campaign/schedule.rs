//! The schedule of a campaign: the time for the next launch, whether to begin another one, and the maximum
//! time left.
//!
//! `--max-time` is a maximum. The time left is divided among the launches that the user asked for, so that a
//! slow launch makes the later ones shorter. No launch begins after the time is up.

use std::time::{Duration, Instant};

/// Share of a launch's time for measuring; the start of its processes takes the rest.
const MEASURING_SHARE: f64 = 0.8;

/// The schedule of a campaign.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    began: Instant,
    /// Time for all layers together.
    time: Duration,
    layers: usize,
    /// Minimum number of launches of each layer.
    asked_for: usize,
}

impl Schedule {
    /// Creates the schedule of a campaign that began at `began`, with `max_time` and `asked_for` launches for
    /// each of `layers`.
    pub fn new(began: Instant, max_time: Duration, layers: usize, asked_for: usize) -> Self {
        let times = u32::try_from(layers).unwrap_or(u32::MAX);
        Self {
            began,
            time: max_time.saturating_mul(times),
            layers: layers.max(1),
            asked_for: asked_for.max(1),
        }
    }

    /// Returns the measuring time of a launch if all launches get the same.
    pub fn planned(&self) -> Duration {
        let launches = (self.layers * self.asked_for) as f64;
        self.time.mul_f64(MEASURING_SHARE / launches)
    }

    /// Returns the measuring time of a launch that begins `now`, after `rounds` complete rounds and
    /// `launches` launches of the current one.
    pub fn share_of_next(&self, now: Instant, rounds: usize, launches: usize) -> Duration {
        let rounds_left = self.asked_for.saturating_sub(rounds).max(1);
        let left = (rounds_left * self.layers).saturating_sub(launches).max(1);
        self.planned().min(self.left(now).mul_f64(MEASURING_SHARE / left as f64))
    }

    /// Reports whether a launch after the first round may begin `now`.
    pub fn has_time(&self, now: Instant) -> bool {
        now.duration_since(self.began) < self.time
    }

    /// Reports whether a round of length `round` ends in time if it begins `now`.
    pub fn fits(&self, now: Instant, round: Duration) -> bool {
        now.duration_since(self.began) + round <= self.time
    }

    /// Returns the share of the time that has passed.
    pub fn passed(&self, now: Instant) -> f64 {
        now.duration_since(self.began).as_secs_f64() / self.time.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// Returns the maximum time left. It never grows.
    pub fn left(&self, now: Instant) -> Duration {
        self.time.saturating_sub(now.duration_since(self.began))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_launch_that_took_long_makes_later_ones_shorter() {
        let began = Instant::now();
        let schedule = Schedule::new(began, 10 * SECOND, 1, 10);
        assert_eq!(schedule.share_of_next(began, 0, 0), schedule.planned());
        assert_eq!(schedule.share_of_next(began + SECOND, 1, 0), schedule.planned());
        let late = schedule.share_of_next(began + 7 * SECOND, 1, 0);
        assert_eq!(late, (3 * SECOND).mul_f64(MEASURING_SHARE / 9.0));
        assert_eq!(schedule.share_of_next(began + 11 * SECOND, 1, 0), Duration::ZERO);
    }

    #[test]
    fn the_launches_asked_for_fit_into_the_time() {
        let began = Instant::now();
        for (seconds, layers, launches) in [(1, 1, 9), (1, 6, 2), (30, 4, 9), (8, 1, 500), (600, 1, 3)] {
            let schedule = Schedule::new(began, seconds * SECOND, layers, launches);
            let mut now = began;
            for round in 0..launches {
                for nth in 0..layers {
                    assert!(schedule.has_time(now));
                    // Every launch uses its whole share, and a quarter of that to start its processes.
                    now += schedule.share_of_next(now, round, nth).mul_f64(1.0 / MEASURING_SHARE);
                }
            }
            let total = seconds * SECOND * u32::try_from(layers).unwrap();
            assert!(now.duration_since(began) <= total + Duration::from_micros(100));
        }
    }

    #[test]
    fn what_is_left_never_grows() {
        let began = Instant::now();
        let schedule = Schedule::new(began, SECOND, 2, 9);
        let left: Vec<Duration> = (0..30).map(|tenth| schedule.left(began + tenth * SECOND / 10)).collect();
        assert!(left.is_sorted_by(|earlier, later| earlier >= later));
        assert_eq!((left[0], left[29]), (2 * SECOND, Duration::ZERO));
        assert!(schedule.has_time(began + SECOND) && !schedule.has_time(began + 2 * SECOND));
        assert!(schedule.fits(began + SECOND, SECOND) && !schedule.fits(began + SECOND, 2 * SECOND));
    }
}
