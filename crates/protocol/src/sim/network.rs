//! A seeded network in virtual time: it loses, repeats, delays, reorders and damages.

use super::random::Random;
use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::{Ordering, Reverse};

/// What a network does to datagrams, as probabilities from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
    /// A datagram is lost.
    pub loss: f64,
    /// A datagram comes twice.
    pub duplicate: f64,
    /// A datagram is held back, so that later ones overtake it.
    pub reorder: f64,
    /// Bits of a datagram are changed, or it is cut.
    pub corrupt: f64,
    /// A bad time begins, in which most datagrams are lost.
    pub burst: f64,
}

/// A bad time lasts at most this long.
const BURST_AT_MOST_NS: u64 = 5_000_000;
/// Share of datagrams that a bad time takes.
const BURST_LOSS: f64 = 0.9;

/// Time without any delivery in one or both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blackout {
    /// When it begins.
    pub from_ns: u64,
    /// When it ends.
    pub until_ns: u64,
    /// The direction, by its sender, or both.
    pub sender: Option<usize>,
}

#[derive(Debug, PartialEq, Eq)]
struct Arrival {
    at_ns: u64,
    nth: u64,
    to: usize,
    bytes: Vec<u8>,
}

impl Ord for Arrival {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at_ns, self.nth).cmp(&(other.at_ns, other.nth))
    }
}

impl PartialOrd for Arrival {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The network between side 0 and side 1.
#[derive(Debug)]
pub struct Network {
    random: Random,
    faults: [Faults; 2],
    blackouts: Vec<Blackout>,
    /// After this time nothing goes wrong any more.
    healed_at_ns: u64,
    delay_ns: u64,
    jitter_ns: u64,
    bad_until_ns: [u64; 2],
    arrivals: BinaryHeap<Reverse<Arrival>>,
    count: u64,
}

impl Network {
    /// A network with `faults` for what each side sends, until `healed_at_ns`.
    pub fn new(seed: u64, faults: [Faults; 2], blackouts: Vec<Blackout>, healed_at_ns: u64) -> Self {
        let mut random = Random::new(seed);
        let (delay_ns, jitter_ns) = (1_000 + random.below(20_000), random.below(5_000));
        Self {
            random,
            faults,
            blackouts,
            healed_at_ns,
            delay_ns,
            jitter_ns,
            bad_until_ns: [0; 2],
            arrivals: BinaryHeap::new(),
            count: 0,
        }
    }

    /// When the next datagram arrives.
    pub fn next_arrival_ns(&self) -> Option<u64> {
        self.arrivals.peek().map(|Reverse(arrival)| arrival.at_ns)
    }

    /// A datagram that has arrived by `now_ns`, and at whom.
    pub fn arrive(&mut self, now_ns: u64) -> Option<(usize, Vec<u8>)> {
        if self.next_arrival_ns()? > now_ns {
            return None;
        }
        self.arrivals.pop().map(|Reverse(arrival)| (arrival.to, arrival.bytes))
    }

    /// `sender` hands a datagram to the network.
    pub fn send(&mut self, sender: usize, bytes: &[u8], now_ns: u64) {
        let faults = if now_ns < self.healed_at_ns { self.faults[sender] } else { Faults::default() };
        let dark = self.blackouts.iter().any(|dark| {
            (dark.from_ns..dark.until_ns).contains(&now_ns) && dark.sender.is_none_or(|dark| dark == sender)
        });
        if dark || self.is_lost(sender, &faults, now_ns) {
            return;
        }
        let copies = 1 + u64::from(self.random.chance(faults.duplicate));
        for _ in 0..copies {
            let mut bytes = bytes.to_vec();
            if self.random.chance(faults.corrupt) {
                self.damage(&mut bytes);
            }
            let mut at_ns = now_ns + self.delay_ns + self.random.below(self.jitter_ns + 1);
            if self.random.chance(faults.reorder) {
                at_ns += self.random.below(20 * self.delay_ns);
            }
            self.count += 1;
            self.arrivals.push(Reverse(Arrival { at_ns, nth: self.count, to: 1 - sender, bytes }));
        }
    }

    fn is_lost(&mut self, sender: usize, faults: &Faults, now_ns: u64) -> bool {
        if self.random.chance(faults.burst) {
            self.bad_until_ns[sender] = now_ns + self.random.below(BURST_AT_MOST_NS);
        }
        let bad = faults.burst > 0.0 && now_ns < self.bad_until_ns[sender];
        self.random.chance(if bad { BURST_LOSS } else { faults.loss })
    }

    fn damage(&mut self, bytes: &mut Vec<u8>) {
        if self.random.chance(0.2) {
            bytes.truncate(self.random.below(bytes.len() as u64 + 1) as usize);
            return;
        }
        for _ in 0..=self.random.below(4) {
            let at = self.random.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << self.random.below(8);
        }
    }
}
