//! What the tests of Active Messages share: a wire, a seed, a deadline, other processes.

#![allow(dead_code, reason = "each test file uses its part")]

pub mod asking;
pub mod bulk;
pub mod killing;
pub mod process;
pub mod traffic;

use crate::{DIALS, FAULTS, WIRE};
use netdyno_stack::am::{Config, Endpoint, PeerId};
use std::time::{Duration, Instant};

/// What all endpoints of a test have in common: the network that it is about.
pub fn base() -> Config {
    Config { faults: FAULTS, seed: seed(), dials: DIALS, ..Config::default() }
}

/// Connects two endpoints of this process.
pub fn connect<S>(a: &mut Endpoint<S>, b: &mut Endpoint<S>) -> (PeerId, PeerId) {
    let (port_a, port_b) = (a.open_port(WIRE).unwrap(), b.open_port(WIRE).unwrap());
    let (address_a, address_b) = (port_a.address(), port_b.address());
    (a.connect(port_a, &address_b).unwrap(), b.connect(port_b, &address_a).unwrap())
}

/// Connects each endpoint with every other one. `peers[i][j]` is what `i` calls `j`.
pub fn connect_all<S>(endpoints: &mut [Endpoint<S>]) -> Vec<Vec<Option<PeerId>>> {
    let count = endpoints.len();
    let mut peers = vec![vec![None; count]; count];
    for (i, j) in (0..count).flat_map(|i| (0..i).map(move |j| (i, j))) {
        let [a, b] = endpoints.get_disjoint_mut([i, j]).unwrap();
        let (to_b, to_a) = connect(a, b);
        (peers[i][j], peers[j][i]) = (Some(to_b), Some(to_a));
    }
    peers
}

/// The seed of a test: `NETDYNO_SEED` to replay one, otherwise a new one. It is printed,
/// and shown where the test fails.
pub fn seed() -> u64 {
    let seed = match std::env::var("NETDYNO_SEED") {
        Ok(text) => text.parse().unwrap(),
        Err(_) => fastrand::u64(..),
    };
    println!("NETDYNO_SEED={seed}");
    seed
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
            std::thread::yield_now();
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
