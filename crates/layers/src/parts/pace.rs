//! The pace of polls. Polls that follow each other faster take a line away from its writer, and slower ones see a message
//! later. So an exchange without the layer is compared with the layer at the pace of the layer's polls.

use netdyno_clock::ticks;
use std::hint::black_box;

/// Polls in a timed row.
const ROW: u32 = 512;
/// Timed rows, of which the median counts.
const ROWS: usize = 9;
/// The slowest pace, in turns of a loop of one instruction or two.
const SLOWEST: u32 = 1000;

/// What follows each poll in vain.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace(u32);

impl Pace {
    /// Returns the pace at which `poll` takes as long as `wanted`. Both find nothing.
    pub(super) fn of(mut wanted: impl FnMut(), mut poll: impl FnMut(Self)) -> Self {
        let wanted = row(&mut wanted);
        let mut last = row(&mut || poll(Self(0)));
        for turns in 1..=SLOWEST {
            let now = row(&mut || poll(Self(turns)));
            if now >= wanted {
                let is_last_nearer = wanted.abs_diff(last) < wanted.abs_diff(now);
                return Self(turns - u32::from(is_last_nearer));
            }
            last = now;
        }
        Self(SLOWEST)
    }

    /// Passes the time until the next poll.
    #[inline(always)]
    pub(super) fn pass(self) {
        for turn in 0..self.0 {
            black_box(turn);
        }
    }
}

/// Returns the ticks of a row of polls.
fn row(poll: &mut impl FnMut()) -> u64 {
    let mut rows = [0; ROWS];
    for ticks in &mut rows {
        let began = ticks::now();
        (0..ROW).for_each(|_| poll());
        *ticks = ticks::now() - began;
    }
    rows.sort_unstable();
    rows[ROWS / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_poll_has_a_slower_pace() {
        let turns = |of: u32| Pace::of(|| Pace(of).pass(), Pace::pass).0;
        let (short, long) = (turns(10), turns(200));
        assert!(short < long, "{short} and {long}");
        assert!(long < SLOWEST);
    }

    #[test]
    fn a_poll_that_is_too_long_itself_gets_no_time() {
        assert!(
            Pace::of(
                || (),
                |pace| {
                    Pace(200).pass();
                    pace.pass();
                }
            )
            .0 <= 1
        );
    }
}
