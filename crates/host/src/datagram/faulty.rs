//! The fault injector of a socket: it decides about each datagram, and queues those that it delays.

use netdyno_protocol::faults::{FaultInjector, Faults};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;

/// Maximum injected delay: a few round trips of a fast network.
pub const HOLD_AT_MOST_NS: u64 = 100_000;

/// A fault injector with its queue of delayed datagrams.
#[derive(Debug)]
pub struct Faulty {
    injector: FaultInjector,
    held: BinaryHeap<Reverse<Held>>,
    count: u64,
}

/// A delayed datagram. The order is by due time, then by arrival.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Held {
    at_ns: u64,
    nth: u64,
    to: SocketAddr,
    bytes: Vec<u8>,
}

impl Faulty {
    /// Returns the time at which the next delayed datagram is due, in nanoseconds.
    pub fn next_release_ns(&self) -> Option<u64> {
        self.held.peek().map(|Reverse(held)| held.at_ns)
    }

    pub fn new(faults: Faults, seed: u64) -> Self {
        Self {
            injector: FaultInjector::new(faults, HOLD_AT_MOST_NS, seed),
            held: BinaryHeap::new(),
            count: 0,
        }
    }

    pub fn pass(
        &mut self,
        to: SocketAddr,
        datagram: &[u8],
        now_ns: u64,
        mut transmit: impl FnMut(SocketAddr, &[u8]),
    ) {
        self.injector.inject(datagram, now_ns, |bytes, held_ns| {
            if held_ns == 0 {
                return transmit(to, bytes);
            }
            self.count += 1;
            let held = Held { at_ns: now_ns + held_ns, nth: self.count, to, bytes: bytes.to_vec() };
            self.held.push(Reverse(held));
        });
    }

    pub fn release(&mut self, now_ns: u64, mut transmit: impl FnMut(SocketAddr, &[u8])) {
        while self.held.peek().is_some_and(|Reverse(held)| held.at_ns <= now_ns) {
            if let Some(Reverse(held)) = self.held.pop() {
                transmit(held.to, &held.bytes);
            }
        }
    }
}
