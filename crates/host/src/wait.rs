//! The wait strategies of a process while no message arrives.

use std::cell::Cell;
use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// If a yield takes longer than this, the time slice went to a CPU-bound program.
const LONG_TURN: Duration = Duration::from_millis(1);
/// Duration of a nap. The scheduler runs a thread that wakes from sleep before a CPU-bound program. A thread
/// that yields runs after that program every time.
const NAP: Duration = Duration::from_micros(20);
/// Number of naps before the thread yields again, to check whether a CPU-bound program still runs.
const NAPS: u32 = 32;

thread_local! {
    static MAY_NAP: Cell<bool> = const { Cell::new(false) };
    static NAPS_LEFT: Cell<u32> = const { Cell::new(0) };
    static LOST: Cell<u64> = const { Cell::new(0) };
}

/// Lets this thread nap instead of yielding while a CPU-bound program shares its processor. Do not call it if
/// the thread shares its processor with the peer that it waits for, because the peer may compute for as long.
pub fn nap_beside_others() {
    MAY_NAP.set(true);
}

/// Returns the number of time slices that this thread has lost to CPU-bound programs. It counts long yields
/// and naps. Returns `None` if the thread does not nap.
pub fn lost_turns() -> Option<u64> {
    MAY_NAP.get().then(|| LOST.get())
}

/// The wait strategy of an idle process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    /// Polls again at once. It is the fastest strategy, and wrong if there are more processes than cores.
    #[default]
    Spin,
    /// Yields the processor between two polls. See [`nap_beside_others`].
    Yield,
    /// Sleeps in the kernel until a message arrives, if the wire supports wake-ups.
    Block,
}

impl Wait {
    /// Waits as the strategy demands after a poll without result.
    #[inline]
    pub fn idle(self) {
        match self {
            // A `pause` here gained nothing on any machine measured.
            Self::Spin => {}
            Self::Yield | Self::Block => give_way(),
        }
    }

    /// Returns the name of the strategy on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Spin => "spin",
            Self::Yield => "yield",
            Self::Block => "block",
        }
    }
}

/// Yields the processor. Beside a CPU-bound program each yield would last as long as that program's time
/// slice. The thread then naps instead.
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

    /// Beside a program that never yields, polls do not wait for the end of its time slices.
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
                // The other thread may not have started yet.
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
