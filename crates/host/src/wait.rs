//! What a process does while nothing arrives.

use std::cell::Cell;
use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// A turn of somebody else's that takes longer is one of a program that takes all of the processor that
/// it gets.
const LONG_TURN: Duration = Duration::from_millis(1);
/// Who has slept is let in before such a program; who yields, behind it each time.
const NAP: Duration = Duration::from_micros(20);
/// Naps before it is seen whether such a program is still there.
const NAPS: u32 = 32;

thread_local! {
    static MAY_NAP: Cell<bool> = const { Cell::new(false) };
    static NAPS_LEFT: Cell<u32> = const { Cell::new(0) };
    static LOST: Cell<u64> = const { Cell::new(0) };
}

/// From now on this thread, where it yields, naps beside a program that takes all of the processor. Not for
/// one that shares its processor with the peer that it waits for: that may compute for as long.
pub fn nap_beside_others() {
    MAY_NAP.set(true);
}

/// Turns that this thread has lost to such programs, while it yielded or for naps. `None` where it does
/// not nap.
pub fn lost_turns() -> Option<u64> {
    MAY_NAP.get().then(|| LOST.get())
}

/// How to wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    /// Look again at once. Fastest, and wrong where there are more processes than cores.
    #[default]
    Spin,
    /// Offer the processor to others between two looks ([`nap_beside_others`]).
    Yield,
    /// Sleep in the kernel until something arrives, where the wire can wake.
    Block,
}

impl Wait {
    /// One look was in vain.
    #[inline]
    pub fn idle(self) {
        match self {
            // A `pause` here gained nothing on any machine measured.
            Self::Spin => {}
            Self::Yield | Self::Block => give_way(),
        }
    }

    /// As spelled on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Spin => "spin",
            Self::Yield => "yield",
            Self::Block => "block",
        }
    }
}

/// Offers the processor to others. Beside a program that takes all of it, a look would be as long after
/// the one before as that program's turn takes: then it is after a nap.
fn give_way() {
    if !MAY_NAP.get() {
        return rustix::thread::sched_yield();
    }
    let left = NAPS_LEFT.get();
    if left > 0 {
        NAPS_LEFT.set(left - 1);
        LOST.set(LOST.get() + 1);
        return std::thread::sleep(NAP);
    }
    let began = Instant::now();
    rustix::thread::sched_yield();
    if began.elapsed() > LONG_TURN {
        NAPS_LEFT.set(NAPS);
        LOST.set(LOST.get() + 1);
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Wait {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Spin, Self::Yield, Self::Block]
            .into_iter()
            .find(|wait| wait.name() == text)
            .ok_or_else(|| format!("'{text}' is no way to wait: use spin, yield or block"))
    }
}

#[cfg(test)]
#[cfg(not(miri))]
mod tests {
    use super::*;
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    use std::sync::atomic::{AtomicBool, Ordering};

    fn pin(cpu: usize) {
        let mut only = CpuSet::new();
        only.set(cpu);
        sched_setaffinity(None, &only).unwrap();
    }

    /// Beside one that never gives the processor back, looks do not wait for its turns.
    #[test]
    fn who_yields_to_a_program_that_takes_all_naps() {
        let allowed = sched_getaffinity(None).unwrap();
        let cpu = (0..CpuSet::MAX_CPU).find(|&cpu| allowed.is_set(cpu)).unwrap();
        let is_over = &AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                pin(cpu);
                while !is_over.load(Ordering::Relaxed) {}
            });
            let naps = scope.spawn(move || {
                pin(cpu);
                assert_eq!(lost_turns(), None);
                nap_beside_others();
                let began = Instant::now();
                // The other one may not have begun.
                while NAPS_LEFT.get() == 0 && began.elapsed() < Duration::from_secs(60) {
                    Wait::Yield.idle();
                }
                let before = LOST.get();
                (0..NAPS).for_each(|_| Wait::Yield.idle());
                LOST.get() - before
            });
            let naps = naps.join();
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(naps.unwrap(), u64::from(NAPS));
        });
    }
}
