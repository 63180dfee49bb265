//! A network that fails in one or both directions, for less and for more than the timeout of the ends.
//! Another network attacks them.

use super::relay::{self, A, B, Relay};
use crate::common::{Idler, TIMEOUT, seed, until};
use netdyno_stack::am::{Config, Endpoint, Handlers, Loss, PeerId, PeerLost, Wait};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

const ASK: u8 = 0;
/// The requests that a connection sends before it hears anything.
const SENT_AT_FIRST: u32 = 16;

/// Counts of arrivals. The handlers check that each arrives once and in order.
#[derive(Debug, Default)]
struct Seen {
    requests: u64,
    replies: u64,
}

struct Pair {
    a: Endpoint<Seen>,
    b: Endpoint<Seen>,
    to_b: PeerId,
    to_a: PeerId,
    at_a: Seen,
    at_b: Seen,
    relay: Relay,
    asked: u64,
    lost_by_b: Option<PeerLost>,
}

impl Pair {
    fn new(peer_timeout: Duration) -> Self {
        let mut handlers = Handlers::new();
        handlers.on_request(ASK, |seen: &mut Seen, request| {
            let [n, ..] = request.words();
            assert_eq!(n, seen.requests);
            assert_eq!(request.payload(), payload(n));
            seen.requests += 1;
            assert!(request.reply_medium(ASK, [n], payload(n)).is_ok());
        });
        handlers.on_reply(ASK, |seen: &mut Seen, reply| {
            assert_eq!(reply.words()[0], seen.replies);
            assert_eq!(reply.payload(), payload(seen.replies));
            seen.replies += 1;
        });
        let config = Config::new().window(64).peer_timeout(peer_timeout).wait(Wait::Yield);
        let mut a = Endpoint::new(handlers.clone(), config).unwrap();
        let mut b = Endpoint::new(handlers, config).unwrap();
        let (to_b, to_a, relay) = relay::connect(&mut a, &mut b, seed());
        Self {
            a,
            b,
            to_b,
            to_a,
            at_a: Seen::default(),
            at_b: Seen::default(),
            relay,
            asked: 0,
            lost_by_b: None,
        }
    }

    fn ask(&mut self) {
        if self.a.try_request_medium(self.to_b, ASK, [self.asked], payload(self.asked)).is_ok() {
            self.asked += 1;
        }
    }

    /// Lets both sides work for a while in which no peer may be lost.
    fn work(&mut self, time: Duration) {
        let (start, mut idler) = (Instant::now(), Idler::default());
        while start.elapsed() < time {
            self.ask();
            let handled = self.a.poll(&mut self.at_a).unwrap() + self.b.poll(&mut self.at_b).unwrap();
            if handled == 0 {
                idler.idle();
            }
        }
    }

    fn until_all_is_answered(&mut self) {
        until("all is answered", || {
            self.a.poll(&mut self.at_a).unwrap();
            self.b.poll(&mut self.at_b).unwrap();
            self.a.in_flight(self.to_b) == 0
        });
        assert_eq!((self.at_b.requests, self.at_a.replies), (self.asked, self.asked));
    }

    /// Polls b and keeps its report that a is lost.
    fn poll_b(&mut self) {
        if let Err(lost) = self.b.poll(&mut self.at_b) {
            self.lost_by_b.get_or_insert(lost);
        }
    }

    /// Lets both sides poll until a reports that b is lost.
    fn until_a_has_lost(&mut self) -> PeerLost {
        let mut found = None;
        until("the loss is reported", || {
            self.poll_b();
            found = self.a.poll(&mut self.at_a).err();
            found.is_some()
        });
        found.unwrap()
    }
}

fn payload(n: u64) -> &'static [u8] {
    const BYTES: &[u8] = &[0x5a; 300];
    &BYTES[..(n % 301) as usize]
}

#[test]
fn away_for_three_seconds_and_back() {
    let mut pair = Pair::new(TIMEOUT);
    pair.work(Duration::from_millis(100));
    let mut asked_at_once = Vec::new();
    // On a busy machine the relay may have to wait for a processor.
    let goes_on_at_once = (0..3).any(|_| {
        pair.relay.cut(&[A, B], true);
        pair.work(Duration::from_secs(3));
        let asked = pair.asked;
        pair.relay.cut(&[A, B], false);
        pair.work(Duration::from_millis(300));
        asked_at_once.push(pair.asked - asked);
        pair.asked > asked + 100
    });
    assert!(goes_on_at_once, "{asked_at_once:?}");
    pair.until_all_is_answered();
}

#[test]
fn away_in_one_direction_and_back() {
    let mut pair = Pair::new(TIMEOUT);
    for side in [A, B, A, B] {
        pair.work(Duration::from_millis(50));
        pair.relay.cut(&[side], true);
        pair.work(Duration::from_millis(300));
        pair.relay.cut(&[side], false);
    }
    pair.until_all_is_answered();
}

/// The last requests were never sent, and are reported apart from those that may have been handled. In
/// one case these were handled, and in the other they were not.
#[test]
fn away_for_longer_than_anybody_waits() {
    const ASKED: u32 = 40;
    let timeout = Duration::from_millis(300);
    for (cut, handled) in [(vec![A, B], 0), (vec![B], SENT_AT_FIRST)] {
        let mut pair = Pair::new(timeout);
        pair.relay.cut(&cut, true);
        let start = Instant::now();
        (0..ASKED).for_each(|_| pair.ask());
        let lost = pair.until_a_has_lost();
        assert!(start.elapsed() >= timeout, "{:?}", start.elapsed());
        let not_sent = ASKED - SENT_AT_FIRST;
        let expected = PeerLost { peer: pair.to_b, loss: Loss::Silent(timeout), unresolved: ASKED, not_sent };
        assert_eq!(lost, expected);
        assert_eq!(pair.at_b.requests, u64::from(handled));
        assert_eq!(pair.at_a.replies, 0);
        // The peer stays lost when the network is back, and it learns of that.
        pair.relay.cut(&cut, false);
        assert_eq!(pair.a.request(&mut pair.at_a, pair.to_b, ASK, [0]), Err(lost));
        assert_eq!(pair.a.in_flight(pair.to_b), ASKED);
        if handled > 0 {
            until("the other side learns of it", || {
                assert_eq!(pair.a.poll(&mut pair.at_a), Ok(0));
                pair.poll_b();
                pair.lost_by_b.is_some()
            });
            let found = pair.lost_by_b.unwrap();
            assert_eq!((found.peer, found.unresolved), (pair.to_a, 0));
            assert!(matches!(found.loss, Loss::Closed | Loss::Silent(_)), "{found}");
        }
    }
}

/// A side that does not poll handles nothing, and its peer misses nothing. Replies wait for the next poll.
#[test]
fn what_was_lost_is_sent_again_without_a_poll() {
    const ASKED: u64 = 10;
    let mut pair = Pair::new(TIMEOUT);
    pair.work(Duration::from_millis(50));
    pair.until_all_is_answered();
    let (requests, replies) = (pair.at_b.requests, pair.at_a.replies);
    pair.relay.cut(&[A, B], true);
    (0..ASKED).for_each(|_| pair.ask());
    pair.relay.cut(&[A, B], false);
    until("the other side has all requests", || {
        pair.a.tend();
        pair.poll_b();
        pair.at_b.requests == requests + ASKED
    });
    assert_eq!(pair.at_a.replies, replies);
    pair.until_all_is_answered();
}

/// A peer is not lost because it was silent while this side did not poll, and is lost if it stays silent then.
#[test]
fn the_own_absence_is_not_silence_of_a_peer() {
    let timeout = Duration::from_millis(400);
    let mut pair = Pair::new(timeout);
    pair.relay.cut(&[A, B], true);
    pair.ask();
    let began = Instant::now();
    while began.elapsed() < 3 * timeout {
        pair.a.tend();
        thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(pair.a.poll(&mut pair.at_a), Ok(0));
    let lost = pair.until_a_has_lost();
    assert_eq!((lost.peer, lost.loss, lost.unresolved), (pair.to_b, Loss::Silent(timeout), 1));
    // While it was polled, three quarters of the timeout have passed.
    assert!(began.elapsed() > 3 * timeout + timeout / 2, "{:?}", began.elapsed());
    pair.a.tend();
    assert_eq!(pair.a.poll(&mut pair.at_a), Ok(0));
}

/// Random, truncated, replayed and changed datagrams that seem to come from the peer itself only increase
/// counters.
#[test]
fn a_network_that_attacks() {
    let mut pair = Pair::new(TIMEOUT);
    pair.work(Duration::from_millis(50));
    pair.relay.control.is_hostile.store(true, Ordering::Relaxed);
    let mut memory_bytes = 0;
    for _ in 0..20 {
        pair.work(Duration::from_millis(50));
        memory_bytes = memory_bytes.max(pair.a.statistics(pair.to_b).unwrap().memory_bytes);
        memory_bytes = memory_bytes.max(pair.b.statistics(pair.to_a).unwrap().memory_bytes);
    }
    pair.relay.control.is_hostile.store(false, Ordering::Relaxed);
    pair.until_all_is_answered();
    let (a, b) = (pair.a.statistics(pair.to_b).unwrap(), pair.b.statistics(pair.to_a).unwrap());
    let attacks = pair.relay.control.attacks.load(Ordering::Relaxed);
    println!(
        "{} answered, {attacks} attacks, {a:?}, {:?}, {memory_bytes} bytes",
        pair.asked,
        pair.a.strays()
    );
    assert!(attacks > 100 && pair.asked > 100);
    assert!(a.counters.duplicates > 0 && b.counters.duplicates > 0);
    for endpoint in [&pair.a, &pair.b] {
        assert!(endpoint.strays().malformed > 0);
    }
    assert!(memory_bytes < 256 << 10, "{memory_bytes}");
}
