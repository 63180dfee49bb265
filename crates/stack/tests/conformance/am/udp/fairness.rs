//! Many peers that store into the memory of one endpoint for a long time get equal shares of it.
//!
//! One thread polls all endpoints in turn, so that the scheduler of the system has no part in the shares. The messages of
//! all senders queue in the socket of the receiver, or before a link with a short queue.

use super::bottleneck::Bottleneck;
use crate::common::{Deadline, Idler, TIMEOUT, connect, until};
use netdyno_stack::am::{Config, Endpoint, Handlers, PeerId, Remote, Shared, Wait, Wire};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// The length of a store, in bytes: more than a window of messages.
const LEN: usize = 256 << 10;
const STORED: u8 = 0;
/// The most datagrams that pass the link between the turns of two senders.
const PASSED: usize = 64;

/// The number of stores that were placed for each peer.
type Placed = Vec<u64>;

struct Sender {
    endpoint: Endpoint<Placed>,
    peer: PeerId,
    remote: Option<Remote>,
}

fn endpoint() -> Endpoint<Placed> {
    let mut handlers = Handlers::new();
    handlers.on_store(STORED, |placed: &mut Placed, stored| placed[stored.peer().index()] += 1);
    handlers.on_refused(|_, refused| panic!("{refused:?}"));
    Endpoint::new(handlers, Config::new().peer_timeout(TIMEOUT).wait(Wait::Yield)).unwrap()
}

impl Sender {
    fn connected_to(receiver: &mut Endpoint<Placed>, link: Option<&mut Bottleneck>) -> Self {
        let mut endpoint = endpoint();
        let peer = match link {
            None => connect(Wire::Udp, &mut endpoint, receiver).0,
            Some(link) => link.connect(&mut endpoint, receiver),
        };
        Self { endpoint, peer, remote: None }
    }

    /// Begins a store whenever the one before is on its way, so that there is always one.
    fn go_on(&mut self, bytes: &Arc<[u8]>) {
        let nothing = &mut Placed::new();
        if let Some(remote) = self.remote.as_ref().filter(|_| self.endpoint.in_flight(self.peer) < 2) {
            let bytes = Shared::from(Arc::clone(bytes));
            self.endpoint.store_shared(nothing, remote.at(0), bytes, STORED, []).unwrap();
        }
        self.endpoint.poll(nothing).unwrap();
    }
}

/// A receiver, its senders, and the link between them, if they share one.
struct World {
    receiver: Endpoint<Placed>,
    senders: Vec<Sender>,
    link: Option<Bottleneck>,
    placed: Placed,
    rounds: usize,
}

impl World {
    fn new(count: usize, mut link: Option<Bottleneck>) -> Self {
        let mut receiver = endpoint();
        let senders = (0..count).map(|_| Sender::connected_to(&mut receiver, link.as_mut())).collect();
        let mut world = Self { receiver, senders, link, placed: vec![0; count], rounds: 0 };
        world.attach();
        world
    }

    /// Attaches memory of the receiver at all senders. The receiver answers meanwhile.
    fn attach(&mut self) {
        let key = self.receiver.allocate(LEN).unwrap().key();
        let (is_over, mut senders) = (AtomicBool::new(false), std::mem::take(&mut self.senders));
        let count = senders.len();
        thread::scope(|scope| {
            scope.spawn(|| {
                for Sender { endpoint, peer, remote } in &mut senders {
                    *remote = Some(endpoint.attach(&mut Placed::new(), *peer, &key).unwrap());
                }
                is_over.store(true, Ordering::Release);
            });
            let mut idler = Idler::default();
            while !is_over.load(Ordering::Acquire) {
                for peer in 0..count {
                    self.carry(peer);
                }
                idler.idle();
            }
        });
        self.senders = senders;
    }

    /// Carries what one peer has sent, one datagram over the link, and what the receiver answers. Returns the peer of
    /// that datagram.
    fn carry(&mut self, peer: usize) -> Option<usize> {
        let Some(link) = &mut self.link else {
            self.receiver.poll(&mut self.placed).unwrap();
            return None;
        };
        link.take(peer);
        let passed = link.pass();
        self.receiver.poll(&mut self.placed).unwrap();
        passed.into_iter().chain([peer]).for_each(|peer| link.answer(peer));
        passed
    }

    /// Lets the senders take turns, and between two turns those whose datagrams arrive, as if each had a processor of
    /// its own. Sender n begins n rounds of turns after the first one, times `later`.
    fn turn(&mut self, bytes: &Arc<[u8]>, later: usize) {
        for n in 0..self.senders.len().min(self.rounds / later.max(1) + 1) {
            self.senders[n].go_on(bytes);
            let mut passed = self.carry(n);
            for _ in 0..PASSED {
                let Some(peer) = passed else { break };
                self.senders[peer].go_on(bytes);
                passed = self.carry(peer);
            }
        }
        self.rounds += 1;
    }

    /// Waits for all stores, because an endpoint would otherwise linger for its peer.
    fn finish(&mut self) {
        for n in 0..self.senders.len() {
            until("all stores are placed", || {
                self.carry(n);
                let Sender { endpoint, peer, .. } = &mut self.senders[n];
                endpoint.poll(&mut Placed::new()).unwrap();
                endpoint.in_flight(*peer) == 0
            });
        }
    }

    /// Returns the stores that were placed for each of the senders in the same time.
    fn placed(mut self, later: usize) -> Placed {
        let (bytes, deadline, count) =
            (Arc::from(vec![7; LEN]), Deadline::after(TIMEOUT), self.senders.len());
        // All senders are on their way before the count begins.
        while self.placed.iter().sum::<u64>() < 4 * count as u64 || self.rounds <= later * count {
            deadline.check("stores are placed");
            self.turn(&bytes, later);
        }
        let before = self.placed.clone();
        let enough = before.iter().sum::<u64>() + 800 + 4 * count as u64;
        while self.placed.iter().sum::<u64>() < enough {
            deadline.check("stores are placed");
            self.turn(&bytes, later);
        }
        let placed = self.placed.iter().zip(&before).map(|(after, before)| after - before).collect();
        self.finish();
        placed
    }
}

/// Returns Jain's index: the square of the sum over the number times the sum of the squares.
fn jain(shares: &[u64]) -> f64 {
    let sum: u64 = shares.iter().sum();
    let squares: u64 = shares.iter().map(|share| share * share).sum();
    (sum * sum) as f64 / (shares.len() as u64 * squares) as f64
}

const COUNTS: [usize; 6] = [2, 3, 4, 8, 16, 32];

/// Returns the index of so many senders.
fn fairness(count: usize, later: usize, link: Option<Bottleneck>) -> f64 {
    let placed = World::new(count, link).placed(later);
    let index = jain(&placed);
    println!("{count} senders, {later} rounds after one another: Jain's index {index:.4} of {placed:?}");
    index
}

#[test]
fn long_stores_of_many_peers_get_equal_shares() {
    for (count, later) in COUNTS.into_iter().flat_map(|count| [(count, 0), (count, 100)]) {
        assert!(fairness(count, later, None) >= 0.95);
    }
}

/// The queue of the link is shorter than the windows of its senders together. Grants keep it from overflowing.
#[test]
fn long_stores_share_a_link_with_a_short_queue() {
    for (count, later) in COUNTS.into_iter().flat_map(|count| [(count, 0), (count, 10)]) {
        assert!(fairness(count, later, Some(Bottleneck::new(true))) >= 0.95);
    }
}

/// Without grants some of the senders have most of the link.
#[test]
fn without_grants_they_do_not_share_it() {
    let attempt = || [2, 3, 8].map(|count| fairness(count, 10, Some(Bottleneck::new(false))));
    let is_unfair = |indices: &[f64; 3]| indices.iter().filter(|&&index| index < 0.95).count() >= 2;
    // Once in 50 attempts the senders share it by chance.
    let attempts: Vec<[f64; 3]> = (0..3).map(|_| attempt()).collect();
    assert!(attempts.iter().any(is_unfair), "{attempts:?}");
}
