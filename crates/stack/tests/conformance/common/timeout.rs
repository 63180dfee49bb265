//! Shared by all tests that wait: a seed, a deadline, and a way to wait.

use netdyno_host::wait::{Wait, nap_beside_others};
use std::cell::Cell;
use std::time::{Duration, Instant};

thread_local! {
    /// The seed of the test on this thread, and the number of seeds derived from it.
    static SEED: Cell<Option<(u64, u64)>> = const { Cell::new(None) };
}

/// Returns the seed of a test: `NETDYNO_SEED` to replay a run, otherwise a new seed. It is printed, so
/// that the output of a failed test shows it. Each further call in a test returns another seed, derived
/// from the first one.
pub fn seed() -> u64 {
    let (first, derived) = SEED.get().unwrap_or_else(|| {
        let seed = match std::env::var("NETDYNO_SEED") {
            Ok(text) => text.parse().unwrap(),
            Err(_) => fastrand::u64(..),
        };
        println!("NETDYNO_SEED={seed}");
        (seed, 0)
    });
    SEED.set(Some((first, derived + 1)));
    // The constant is odd, so all derived seeds differ (Knuth, The Art of Computer Programming, 6.4).
    first.wrapping_add(derived.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Runs a test with a seed with which it has failed once.
pub fn with_seed(seed: u64, test: impl FnOnce()) {
    println!("it has failed with NETDYNO_SEED={seed}");
    SEED.set(Some((seed, 0)));
    test();
}

/// Fails a test that waits too long.
#[derive(Clone, Copy)]
pub struct Deadline(Instant);

impl Deadline {
    /// Starts now.
    pub fn after(timeout: Duration) -> Self {
        Self(Instant::now() + timeout)
    }

    /// # Panics
    /// Panics if the time has passed.
    pub fn check(self, what: &str) {
        assert!(Instant::now() < self.0, "waited too long: {what}");
    }
}

/// A timeout for steps that take no time on an idle machine.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// Yields the processor after every 256 idle polls. A yield may cost milliseconds on a busy machine, but
/// a test that never yields takes that time from others.
#[derive(Default)]
pub struct Idler(u32);

impl Idler {
    /// Counts one poll that found nothing.
    pub fn idle(&mut self) {
        self.0 += 1;
        if self.0.is_multiple_of(256) {
            nap_beside_others();
            Wait::Yield.idle();
        }
    }
}

/// Repeats `step` until it returns true.
pub fn until(what: &str, mut step: impl FnMut() -> bool) {
    let (deadline, mut idler) = (Deadline::after(TIMEOUT), Idler::default());
    while !step() {
        deadline.check(what);
        idler.idle();
    }
}
