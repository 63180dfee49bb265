//! A seeded network in virtual time that loses, duplicates, delays, reorders and damages datagrams.

use super::events::Events;
use crate::faults::{FaultInjector, Faults};
use crate::random::Random;
use alloc::vec::Vec;

/// A time in which nothing is delivered in one or both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blackout {
    /// Its begin, ns.
    pub from_ns: u64,
    /// Its end, ns.
    pub until_ns: u64,
    /// The sender of the affected direction; `None`: both directions.
    pub sender: Option<usize>,
}

/// The network between side 0 and side 1.
#[derive(Debug)]
pub struct Network {
    random: Random,
    /// The fault injector of each direction, by its sender.
    injectors: [FaultInjector; 2],
    blackouts: Vec<Blackout>,
    /// The time after which no faults are injected, ns.
    healed_at_ns: u64,
    delay_ns: u64,
    jitter_ns: u64,
    /// The datagrams on their way, each with the side that it reaches.
    arrivals: Events<(usize, Vec<u8>)>,
}

impl Network {
    /// Creates a network that injects `faults`, one set for each sender, until `healed_at_ns`.
    pub fn new(seed: u64, faults: [Faults; 2], blackouts: Vec<Blackout>, healed_at_ns: u64) -> Self {
        let mut random = Random::new(seed);
        let (delay_ns, jitter_ns) = (1_000 + random.below(20_000), random.below(5_000));
        let injectors = faults.map(|faults| FaultInjector::new(faults, 20 * delay_ns, random.bits()));
        Self { random, injectors, blackouts, healed_at_ns, delay_ns, jitter_ns, arrivals: Events::new() }
    }

    /// Returns the time at which the next datagram arrives, ns.
    pub fn next_arrival_ns(&self) -> Option<u64> {
        self.arrivals.next_at()
    }

    /// Takes a datagram that has arrived by `now_ns`, with the side that it reaches.
    pub fn arrive(&mut self, now_ns: u64) -> Option<(usize, Vec<u8>)> {
        self.arrivals.take_until(now_ns)
    }

    /// Sends a datagram of `sender` through the network.
    pub fn send(&mut self, sender: usize, bytes: &[u8], now_ns: u64) {
        let is_dark = self.blackouts.iter().any(|dark| {
            (dark.from_ns..dark.until_ns).contains(&now_ns) && dark.sender.is_none_or(|dark| dark == sender)
        });
        if is_dark {
            return;
        }
        let Self { random, injectors, delay_ns, jitter_ns, arrivals, .. } = self;
        let mut pass = |bytes: &[u8], held_ns: u64| {
            let at_ns = now_ns + *delay_ns + random.below(*jitter_ns + 1) + held_ns;
            arrivals.schedule(at_ns, (1 - sender, bytes.to_vec()));
        };
        if now_ns < self.healed_at_ns {
            injectors[sender].inject(bytes, now_ns, pass);
        } else {
            pass(bytes, 0);
        }
    }
}
