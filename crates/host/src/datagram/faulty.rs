//! A wire that injects faults into the datagrams of another wire.

use super::{DatagramWire, Datagrams};
use netdyno_protocol::faults::{FaultInjector, Faults};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

/// Maximum injected delay: a few round trips of a fast network.
const HOLD_AT_MOST_NS: u64 = 100_000;

/// A wire that injects faults into the datagrams that another wire sends. When it is dropped, it sends the
/// datagrams that it delays.
#[derive(Debug)]
pub struct FaultyWire<W: DatagramWire> {
    wire: W,
    /// `None` if no fault can happen. An endpoint without faults pays for this test alone.
    delaying: Option<Box<Delaying>>,
}

/// A fault injector with its queue of delayed datagrams.
#[derive(Debug)]
struct Delaying {
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

impl<W: DatagramWire> FaultyWire<W> {
    /// Returns a wire that applies `faults`, drawn from `seed`, to all datagrams that `wire` shall send.
    pub fn new(wire: W, faults: Faults, seed: u64) -> Self {
        let delaying = (faults != Faults::NONE).then(|| {
            let injector = FaultInjector::new(faults, HOLD_AT_MOST_NS, seed);
            Box::new(Delaying { injector, held: BinaryHeap::new(), count: 0 })
        });
        Self { wire, delaying }
    }

    /// Returns the time at which the next delayed datagram is due.
    fn release_ns(&self) -> Option<u64> {
        self.delaying.as_ref()?.held.peek().map(|Reverse(held)| held.at_ns)
    }

    #[cold]
    fn inject(&mut self, to: SocketAddr, datagram: &[u8], now_ns: u64) {
        let Self { wire, delaying: Some(delaying) } = self else { return };
        let Delaying { injector, held, count } = &mut **delaying;
        injector.inject(datagram, now_ns, |bytes, held_ns| {
            if held_ns == 0 {
                return wire.join(to, bytes, now_ns);
            }
            *count += 1;
            held.push(Reverse(Held { at_ns: now_ns + held_ns, nth: *count, to, bytes: bytes.to_vec() }));
        });
    }
}

impl<W: DatagramWire> DatagramWire for FaultyWire<W> {
    fn local(&self) -> SocketAddr {
        self.wire.local()
    }

    fn refused(&self) -> u64 {
        self.wire.refused()
    }

    fn by_kernel(&self) -> u64 {
        self.wire.by_kernel()
    }

    fn description(&self) -> Option<String> {
        self.wire.description()
    }

    fn set_only_peer(&mut self, peer: Option<SocketAddr>) {
        self.wire.set_only_peer(peer);
    }

    #[inline]
    fn send(&mut self, to: SocketAddr, datagram: &[u8], now_ns: u64) {
        match self.delaying {
            None => self.wire.send(to, datagram, now_ns),
            Some(_) => {
                self.inject(to, datagram, now_ns);
                self.wire.flush();
            }
        }
    }

    #[inline]
    fn join(&mut self, to: SocketAddr, datagram: &[u8], now_ns: u64) {
        match self.delaying {
            None => self.wire.join(to, datagram, now_ns),
            Some(_) => self.inject(to, datagram, now_ns),
        }
    }

    #[inline]
    fn flush(&mut self) {
        self.wire.flush();
    }

    #[inline]
    fn receive(&mut self, room: &mut [u8]) -> Option<Datagrams> {
        self.wire.receive(room)
    }

    #[inline]
    fn deadline(&self) -> Option<u64> {
        match self.delaying {
            None => self.wire.deadline(),
            Some(_) => [self.release_ns(), self.wire.deadline()].into_iter().flatten().min(),
        }
    }

    /// Sends the datagrams whose delay has passed.
    fn on_time(&mut self, now_ns: u64) {
        while self.release_ns().is_some_and(|at_ns| at_ns <= now_ns)
            && let Some(Reverse(held)) = self.delaying.as_mut().and_then(|delaying| delaying.held.pop())
        {
            self.wire.join(held.to, &held.bytes, now_ns);
        }
        self.wire.flush();
        self.wire.on_time(now_ns);
    }
}

impl<W: DatagramWire> AsFd for FaultyWire<W> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wire.as_fd()
    }
}

impl<W: DatagramWire> Drop for FaultyWire<W> {
    fn drop(&mut self) {
        self.on_time(u64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagram::DatagramSocket;
    use crate::datagram::tests::{ANY, all_that_comes, wait_for};
    use netdyno_protocol::frame::datagram::LONGEST;

    fn pair(faults: Faults) -> (FaultyWire<DatagramSocket>, DatagramSocket) {
        let [a, b] = [(); 2].map(|()| DatagramSocket::bind(ANY).unwrap());
        (FaultyWire::new(a, faults, 1), b)
    }

    #[test]
    fn what_is_held_back_is_overtaken_and_comes() {
        for is_dropped in [false, true] {
            let (mut a, mut b) = pair(Faults { reorder: 0.5, ..Faults::NONE });
            for n in 0..20 {
                a.send(b.local(), &[n], 0);
            }
            assert!(a.deadline().is_some_and(|at_ns| at_ns > 0));
            if is_dropped {
                drop(a);
            } else {
                a.on_time(HOLD_AT_MOST_NS);
                assert_eq!(a.deadline(), None);
            }
            let came: Vec<u8> = (0..20).map(|_| wait_for(&mut b).unwrap()[0]).collect();
            assert!(!came.is_sorted(), "{came:?}");
            let mut all = came;
            all.sort_unstable();
            assert_eq!(all, (0..20).collect::<Vec<_>>());
        }
    }

    /// The fault injector decides about each datagram of a batch independently.
    #[test]
    fn faults_spoil_the_datagrams_of_a_train_one_by_one() {
        let (mut a, mut b) = pair(Faults { loss: 0.2, duplicate: 0.1, corrupt: 0.2, ..Faults::NONE });
        let mut came = Vec::new();
        for _ in 0..20 {
            (0..50).for_each(|n| a.join(b.local(), &[n; LONGEST], 0));
            a.flush();
            came.extend(all_that_comes(&mut b));
        }
        let sound =
            came.iter().filter(|bytes| bytes.len() == LONGEST && bytes.iter().all(|&n| n == bytes[0]));
        assert!((600..800).contains(&sound.count()));
        assert!((800..960).contains(&came.len()), "{}", came.len());
        assert!(came.iter().any(|bytes| bytes.len() < LONGEST));
    }
}
