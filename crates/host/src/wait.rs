//! The wait strategies of a process while no message arrives.

use netdyno_protocol::quantity;
use std::cell::Cell;
use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// If a yield takes longer than this, the time slice went to a CPU-bound program.
const LONG_TURN: Duration = Duration::from_millis(1);
/// Duration of a nap. The scheduler runs a thread that wakes from sleep before a CPU-bound program. A thread
/// that yields runs after that program every time.
const NAP: Duration = Duration::from_micros(20);
/// The longest time to spin before a sleep.
const LONGEST_SPIN: Duration = Duration::from_secs(1);
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
    /// Polls for this time, and then sleeps like [`Wait::Block`].
    SpinFor(Duration),
}

impl Wait {
    /// Reports whether the process sleeps in the kernel.
    pub const fn sleeps(self) -> bool {
        matches!(self, Self::Block | Self::SpinFor(_))
    }

    /// Waits after a poll without result as the strategy demands where nothing can wake a sleeper.
    #[inline]
    pub fn idle(self) {
        match self {
            // A `pause` here gained nothing on any machine measured.
            Self::Spin => {}
            Self::Yield | Self::Block | Self::SpinFor(_) => give_way(),
        }
    }
}

/// Parses the time of `spin:20us`.
fn spin_for(text: &str) -> Result<Wait, String> {
    let longest_ns = LONGEST_SPIN.as_nanos() as f64;
    match quantity::nanoseconds(text) {
        Ok(ns) if (1.0..=longest_ns).contains(&ns) => Ok(Wait::SpinFor(Duration::from_nanos(ns as u64))),
        _ => Err(format!("'{text}' is no time to spin: use 1ns to 1s, as in spin:20us")),
    }
}

/// Writes a time in the largest unit that divides it.
fn write_time(f: &mut fmt::Formatter<'_>, time: Duration) -> fmt::Result {
    let ns = time.as_nanos();
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1000, "us")];
    let (unit_ns, unit) =
        units.into_iter().find(|(unit_ns, _)| ns.is_multiple_of(*unit_ns)).unwrap_or((1, "ns"));
    write!(f, "{}{unit}", ns / unit_ns)
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
        match self {
            Self::Spin => f.write_str("spin"),
            Self::Yield => f.write_str("yield"),
            Self::Block => f.write_str("block"),
            Self::SpinFor(time) => {
                f.write_str("spin:")?;
                write_time(f, *time)
            }
        }
    }
}

impl FromStr for Wait {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "spin" => Ok(Self::Spin),
            "yield" => Ok(Self::Yield),
            "block" => Ok(Self::Block),
            _ => match text.strip_prefix("spin:") {
                Some(time) => spin_for(time),
                None => Err(format!("'{text}' is no way to wait: use spin, yield, block or spin:20us")),
            },
        }
    }
}

#[cfg(test)]
#[cfg(not(miri))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn ways_to_wait_are_spelled_as_they_are_parsed() {
        for text in ["spin", "yield", "block", "spin:20us", "spin:1ns", "spin:1s", "spin:1500ns", "spin:3ms"]
        {
            assert_eq!(text.parse::<Wait>().map(|wait| wait.to_string()), Ok(text.into()));
        }
        assert_eq!("spin:1.5us".parse(), Ok(Wait::SpinFor(Duration::from_nanos(1500))));
        for text in
            ["", "spin:", "spin:0us", "spin:-1us", "spin:2s", "spin:20", "spin:nanus", "block:1us", "SPIN"]
        {
            assert!(text.parse::<Wait>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics_and_times_survive(text in ".{0,20}", ns in 1u64..=1_000_000_000) {
            let _ = text.parse::<Wait>();
            let _ = format!("spin:{text}").parse::<Wait>();
            let wait = Wait::SpinFor(Duration::from_nanos(ns));
            prop_assert_eq!(wait.to_string().parse(), Ok(wait));
        }
    }

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
