//! What every test needs that waits: a seed, a deadline, and a way to wait.

use netdyno_host::wait::{Wait, nap_beside_others};
use std::cell::Cell;
use std::time::{Duration, Instant};

thread_local! {
    /// The seed of the test that this thread runs, and how many seeds were derived from it.
    static SEED: Cell<Option<(u64, u64)>> = const { Cell::new(None) };
}

/// Returns the seed of a test: `NETDYNO_SEED` to replay one, otherwise a new one. The seed is printed,
/// and shown where the test fails. Each further call of a test returns another seed, derived from the
/// first one.
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
    // An odd constant: no two of them are the same (Knuth, The Art of Computer Programming, 6.4).
    first.wrapping_add(derived.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Runs a test with a seed that it has failed with.
pub fn with_seed(seed: u64, test: impl FnOnce()) {
    println!("it has failed with NETDYNO_SEED={seed}");
    SEED.set(Some((seed, 0)));
    test();
}

/// Ends a wait that would not end.
#[derive(Clone, Copy)]
pub struct Deadline(Instant);

impl Deadline {
    /// From now on.
    pub fn after(patience: Duration) -> Self {
        Self(Instant::now() + patience)
    }

    /// # Panics
    /// When it has passed.
    pub fn check(self, what: &str) {
        assert!(Instant::now() < self.0, "waited too long: {what}");
    }
}

/// Patience with what takes no time on a machine that has nothing else to do.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Gives the processor away now and then: each time may cost milliseconds on a busy
/// machine, and never doing it may cost others theirs.
#[derive(Default)]
pub struct Idler(u32);

impl Idler {
    /// One look was in vain.
    pub fn idle(&mut self) {
        self.0 += 1;
        if self.0.is_multiple_of(256) {
            nap_beside_others();
            Wait::Yield.idle();
        }
    }
}

/// Repeats `step` until it says that it is done.
pub fn until(what: &str, mut step: impl FnMut() -> bool) {
    let (deadline, mut idler) = (Deadline::after(PATIENCE), Idler::default());
    while !step() {
        deadline.check(what);
        idler.idle();
    }
}
