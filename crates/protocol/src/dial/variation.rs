//! The state from which each message of a process gets its effective parameters: a random source and the time
//! of the profile. It serves one [`TimeProfile`], or several of the same profile.

use super::parameters::EffectiveParameters;
use super::time_profile::TimeProfile;
use crate::random::Random;

/// A random source and the time of the profile. Times are in ticks.
#[derive(Clone, Debug)]
pub struct Variation {
    random: Random,
    phase: Phase,
}

impl Variation {
    /// Creates the state before the first message, for `time_profile` and others of the same profile. Random
    /// values are drawn from `seed`.
    pub fn new(time_profile: &TimeProfile, seed: u64) -> Self {
        Self { random: Random::new(seed), phase: Phase { idle: time_profile.idle(), began: None, last: 0 } }
    }

    /// Returns the effective parameters of a message that is sent at `now`. It departs when the interface is
    /// `free` of earlier messages. As long as these leave, there is no pause.
    #[inline]
    pub fn departing(&mut self, time_profile: &TimeProfile, now: u64, free: u64) -> EffectiveParameters {
        self.phase.last = self.phase.last.max(free.min(now));
        self.phase.note(now, now);
        time_profile.parameters_at(self.phase.elapsed(now.max(free)), &mut self.random)
    }

    /// Returns the effective parameters for [`Lane::due_by`](super::timing::Lane::due_by) of a message that
    /// is seen at `now`. `departed` is the time at which its last byte left, if it has a stamp. The gap per
    /// byte is that of this time, in the profile of the receiver. If G changes while the bytes leave, the
    /// sender may have used another G.
    #[inline]
    pub fn seen(
        &mut self,
        time_profile: &TimeProfile,
        now: u64,
        departed: Option<u64>,
    ) -> EffectiveParameters {
        let departed = departed.unwrap_or(now);
        self.phase.note(departed.min(now), now);
        time_profile.means_at(self.phase.elapsed(departed))
    }

    /// Draws the latency of a message that would be due at `here` without one.
    #[inline]
    pub fn latency(&mut self, time_profile: &TimeProfile, here: u64) -> u64 {
        time_profile.latency_at(self.phase.elapsed(here), &mut self.random)
    }

    /// Returns the effective parameters of a message that is released at `at`.
    #[inline]
    pub fn released(&mut self, time_profile: &TimeProfile, at: u64) -> EffectiveParameters {
        time_profile.parameters_at(self.phase.elapsed(at), &mut self.random)
    }
}

/// The time of a process's profile. It begins with the first message. If the profile says so, it restarts
/// with the first message after a pause.
#[derive(Clone, Debug)]
struct Phase {
    idle: Option<u64>,
    began: Option<u64>,
    last: u64,
}

impl Phase {
    /// Notes that a message moved at `moved`, which the process learned at `now`. A program that polls late
    /// makes no pause.
    #[inline]
    fn note(&mut self, moved: u64, now: u64) {
        let was_idle = self.idle.is_some_and(|idle| moved.saturating_sub(self.last) >= idle);
        let began = self.began.filter(|_| !was_idle).unwrap_or(now);
        (self.began, self.last) = (Some(began), self.last.max(moved));
    }

    /// Returns the time since the profile began; 0 for an earlier time.
    #[inline]
    fn elapsed(&self, time: u64) -> u64 {
        time.saturating_sub(self.began.unwrap_or(time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dial::link::Seen;
    use crate::dial::parameters::{Dials, Own};
    use crate::dial::profile::Profile;
    use crate::dial::timing::{Departures, Gate, Lane};
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn time_profile(profile: &str, tick_ns: f64) -> TimeProfile {
        let profile: Profile = profile.parse().unwrap();
        TimeProfile::new(&Dials::NONE, Some(&profile), &Own::UNKNOWN, tick_ns).unwrap()
    }

    const SAWTOOTH: &str = "repeat 50us\nat 0us latency+50us\nat 50us latency+0us";

    #[test]
    fn time_begins_with_the_first_message_and_again_after_a_pause() {
        let Variation { mut phase, .. } =
            Variation::new(&time_profile("idle 1us\nat 0us latency+1us\nat 9us", 1.0), 1);
        assert_eq!(phase.elapsed(77), 0);
        let mut sent = |now| {
            phase.note(now, now);
            phase.elapsed(now)
        };
        let times = [5000, 5999, 6500, 6500, 7499, 8499, 8500, 12_000];
        assert_eq!(times.map(&mut sent), [0, 999, 1500, 1500, 2499, 0, 1, 0]);
        assert_eq!([11_000, 12_000, 12_345].map(|time| phase.elapsed(time)), [0, 0, 345]);
        let Variation { mut phase, .. } = Variation::new(&time_profile(SAWTOOTH, 1.0), 1);
        phase.note(5000, 5000);
        phase.note(1 << 40, 1 << 40);
        assert_eq!(phase.elapsed(1 << 40), (1 << 40) - 5000);
    }

    #[test]
    fn messages_that_kept_coming_make_no_pause_however_late_the_program_looks() {
        let time_profile =
            time_profile("idle 1us\nat 0us gap-per-byte=1ns/B\nat 100us gap-per-byte=101ns/B", 1.0);
        let mut variation = Variation::new(&time_profile, 1);
        let mut data = |seen, departed| variation.seen(&time_profile, seen, departed).data(2);
        assert_eq!([data(5000, Some(4900)), data(5000, Some(5000))], [1, 1]);
        // The program computes until 10 000, and a message arrives every 900.
        assert_eq!([5900, 6800, 7700, 8600].map(|departed| data(10_000, Some(departed))), [2, 3, 4, 5]);
        // No message has arrived for long.
        assert_eq!([data(11_000, Some(9700)), data(13_000, None)], [1, 1]);
    }

    #[test]
    fn there_is_no_pause_while_what_was_sent_is_leaving() {
        let time_profile =
            time_profile("idle 1us\nat 0us gap-per-byte=1ns/B\nat 100us gap-per-byte=101ns/B", 1.0);
        let mut variation = Variation::new(&time_profile, 1);
        let mut data = |now, free| variation.departing(&time_profile, now, free).data(2);
        assert_eq!([data(5000, 0), data(8000, 7500), data(8000, 9000), data(9999, 9000)], [1, 4, 5, 6]);
        assert_eq!(data(12_000, 11_000), 1);
    }

    #[test]
    fn what_waits_for_those_before_it_is_put_under_the_terms_of_its_departure() {
        let time_profile = time_profile(
            "at 0us gap-per-byte=10ns/B\nat 1us gap-per-byte=10ns/B\nat 1us gap-per-byte=1ns/B",
            1.0,
        );
        let (mut variation, mut departures) = (Variation::new(&time_profile, 1), Departures::default());
        let mut depart = |now| {
            let parameters = variation.departing(&time_profile, now, departures.free());
            departures.depart(now, 101, &parameters).at
        };
        // 100 bytes take 10 ns each. The second message departs as the step is reached.
        assert_eq!([7000; 3].map(&mut depart), [8000, 8100, 8200]);
    }

    proptest! {
        /// For any tick, all messages that arrive during a period are released at its end, in order. No
        /// message is early.
        #[test]
        fn a_sawtooth_releases_at_multiples_of_its_period(
            tick_ns in prop_oneof![Just(1.0), Just(0.4), 0.1..2.0f64],
            began in 0..1u64 << 40,
            messages in vec((0..100_000u64, 0..3000u64, 0..30_000u64), 1..80),
        ) {
            let time_profile = time_profile(SAWTOOTH, tick_ns);
            let period = (50_000.0 / tick_ns + 0.5) as u64;
            let mut variation = Variation::new(&time_profile, 1);
            let (mut departures, mut lane, mut gate) = (Departures::default(), Lane::default(), Gate::default());
            variation.departing(&time_profile, began, 0);
            let (mut now, mut last_seen, mut last) = (began, 0, 0);
            for (pause, way, late) in messages {
                now += pause;
                let parameters = variation.departing(&time_profile, now, departures.free());
                let departed = departures.depart(now, 8, &parameters);
                let seen = (now + way + late).max(last_seen);
                last_seen = seen;
                let parameters = variation.seen(&time_profile, seen, Some(departed.at));
                let mut arrived = 0;
                let due = lane.due_by(Some(departed), 8, Seen::late(seen), &parameters, |here| {
                    arrived = here;
                    variation.latency(&time_profile, here)
                });
                prop_assert!(due > arrived && due >= last, "{} {} {}", due, arrived, last);
                prop_assert_eq!((due - began) % period, 0);
                // The next end of a period, unless an earlier message was later.
                prop_assert!(due - arrived <= period || due == last);
                last = gate.pass(due, &variation.released(&time_profile, due));
            }
        }
    }
}
