//! Measures how long a poll of the link takes, and says when to wait for a held message instead.
//!
//! A poll cannot be interrupted. If a held message falls due during a poll, it is released late, by the rest
//! of the poll. So a process starts no poll that would end after the next release. It waits for the release
//! instead, which takes no longer than the poll.

use super::link::Usual;

/// The cost of polls that found nothing, in ticks.
#[derive(Clone, Debug, Default)]
pub struct Polls {
    usual: Usual,
    /// The longest of the recent polls that were not interrupted.
    longest: u64,
}

impl Polls {
    /// Each poll reduces the longest by this fraction of it: 1/16.
    const FORGOTTEN: u64 = 16;
    /// A poll that takes this many times the usual was interrupted.
    const INTERRUPTED: u64 = 3;

    /// Notes a poll that found nothing and took `took` ticks.
    pub fn note(&mut self, took: u64) {
        self.usual.note(took);
        let most = self.usual.get().map_or(0, |usual| Self::INTERRUPTED * usual);
        let faded = self.longest - self.longest.div_ceil(Self::FORGOTTEN);
        self.longest = faded.max(took.min(most));
    }

    /// Reports whether to wait for the release at `next`, instead of polling at `now`.
    #[inline]
    pub fn waits(&self, now: u64, next: u64) -> bool {
        next <= now.saturating_add(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_would_end_after_the_release_is_not_begun() {
        let mut polls = Polls::default();
        assert!(polls.waits(1000, 1000) && !polls.waits(1000, 1001), "nothing is known");
        (0..10).for_each(|_| polls.note(200));
        assert!(polls.waits(1000, 1200) && !polls.waits(1000, 1201));
    }

    #[test]
    fn an_interruption_is_no_cost_of_looks_and_a_slow_time_is_forgotten() {
        let mut polls = Polls::default();
        (0..10).for_each(|_| polls.note(200));
        polls.note(1_000_000);
        assert!(!polls.waits(0, 1000));
        (0..100).for_each(|_| polls.note(200));
        assert!(polls.waits(0, 200) && !polls.waits(0, 260));
        // One poll in four also reads a socket.
        (0..100).for_each(|nth| polls.note(if nth % 4 == 0 { 500 } else { 200 }));
        assert!(polls.waits(0, 380) && !polls.waits(0, 600));
    }

    /// Once the cost of polls is known, every release is on time, whatever the polls take.
    #[test]
    fn nothing_is_late_by_a_look() {
        let (mut polls, mut now) = (Polls::default(), 0);
        for nth in 1..500u64 {
            let release = nth * 1017;
            while !polls.waits(now, release) {
                let took = 90 + (now * 7) % 20;
                polls.note(took);
                now += took;
            }
            let late = now.saturating_sub(release);
            assert!(late == 0 || nth < 3, "release {nth} was {late} late");
            now = now.max(release);
        }
    }
}
