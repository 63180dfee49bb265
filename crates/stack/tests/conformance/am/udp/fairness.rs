//! Many peers that store into the memory of one endpoint for a long time get equal shares of it.
//!
//! One thread polls all endpoints in turn. So the socket of the receiver is where the messages of all senders queue, and
//! the scheduler of the system has no part in the shares.

use crate::common::{Deadline, Idler, TIMEOUT, connect, until};
use netdyno_stack::am::{Config, Endpoint, Handlers, PeerId, Remote, Shared, Wait, Wire};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// The length of a store, in bytes: more than a window of messages.
const LEN: usize = 256 << 10;
const STORED: u8 = 0;

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
    fn connected_to(receiver: &mut Endpoint<Placed>) -> Self {
        let mut endpoint = endpoint();
        let (peer, _) = connect(Wire::Udp, &mut endpoint, receiver);
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

/// Attaches the memory of that key at all senders. The receiver answers meanwhile.
fn attach(senders: &mut [Sender], receiver: &mut Endpoint<Placed>, key: &[u8]) {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for Sender { endpoint, peer, remote } in senders {
                *remote = Some(endpoint.attach(&mut Placed::new(), *peer, key).unwrap());
            }
            is_over.store(true, Ordering::Release);
        });
        let mut idler = Idler::default();
        while !is_over.load(Ordering::Acquire) {
            receiver.poll(&mut Placed::new()).unwrap();
            idler.idle();
        }
    });
}

/// Returns the stores that were placed for each of `count` senders in the same time. Sender n begins n rounds of polls
/// after the first one, times `later`.
fn placed_for(count: usize, later: usize) -> Placed {
    let mut receiver = endpoint();
    let mut senders: Vec<Sender> = (0..count).map(|_| Sender::connected_to(&mut receiver)).collect();
    let memory = receiver.allocate(LEN).unwrap();
    attach(&mut senders, &mut receiver, &memory.key());
    let (bytes, deadline) = (Arc::from(vec![7; LEN]), Deadline::after(TIMEOUT));
    let (mut placed, mut rounds) = (vec![0; count], 0);
    let mut go_on_until = |is_reached: &dyn Fn(u64, usize) -> bool| {
        while !is_reached(placed.iter().sum(), rounds) {
            deadline.check("stores are placed");
            for sender in senders.iter_mut().take(rounds / later.max(1) + 1) {
                sender.go_on(&bytes);
            }
            receiver.poll(&mut placed).unwrap();
            rounds += 1;
        }
        placed.clone()
    };
    // All senders are on their way before the count begins.
    let before = go_on_until(&|stores, rounds| stores >= 4 * count as u64 && rounds > later * count);
    let enough = before.iter().sum::<u64>() + 240 + 20 * count as u64;
    let after = go_on_until(&|stores, _| stores >= enough);
    // An endpoint would otherwise linger for its peer.
    for Sender { endpoint, peer, .. } in &mut senders {
        until("all stores are placed", || {
            receiver.poll(&mut placed).unwrap();
            endpoint.poll(&mut Placed::new()).unwrap();
            endpoint.in_flight(*peer) == 0
        });
    }
    after.iter().zip(&before).map(|(after, before)| after - before).collect()
}

/// Returns Jain's index: the square of the sum over the number times the sum of the squares.
fn jain(shares: &[u64]) -> f64 {
    let sum: u64 = shares.iter().sum();
    let squares: u64 = shares.iter().map(|share| share * share).sum();
    (sum * sum) as f64 / (shares.len() as u64 * squares) as f64
}

#[test]
fn long_stores_of_many_peers_get_equal_shares() {
    for (count, later) in [2, 3, 4, 8, 16, 32].into_iter().flat_map(|count| [(count, 0), (count, 100)]) {
        let placed = placed_for(count, later);
        let index = jain(&placed);
        println!("{count} senders, {later} rounds after one another: Jain's index {index:.4} of {placed:?}");
        assert!(index >= 0.95, "{count} senders, {later} rounds after one another: {index:.3} of {placed:?}");
    }
}
