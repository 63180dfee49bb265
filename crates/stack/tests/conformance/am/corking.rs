//! Corked endpoints: requests wait for the next poll, a flush, or a full batch, and never longer.

use crate::common::asking::{ASK, Kept as Seen, TELL, keeping};
use crate::common::{TIMEOUT, Transport, connect, until};
use netdyno_stack::am::{Config, Dials, Endpoint, Loss, PeerId, RequestError, Wait};
use std::time::Duration;

/// The number of requests to one peer that leave together at the latest.
const FULL_BATCH: u64 = 32;

fn endpoint(config: Config) -> Endpoint<Seen> {
    Endpoint::new(keeping(), config.window(64).peer_timeout(TIMEOUT)).unwrap()
}

/// Returns two endpoints, the first one corked, with the identifier of the second one there.
fn pair(transport: &Transport) -> [(Endpoint<Seen>, PeerId); 2] {
    let [mut a, mut b] = [(); 2].map(|()| endpoint(transport.config()));
    let (to_b, to_a) = connect(transport.wire, &mut a, &mut b);
    a.cork();
    [(a, to_b), (b, to_a)]
}

/// Returns whether requests over the transport wait at all.
fn waits(transport: &Transport) -> bool {
    transport.is_of_datagrams() && transport.dials == Dials::NONE
}

/// Returns the number of messages transmitted so far.
fn sent(endpoint: &Endpoint<Seen>, peer: PeerId) -> u64 {
    endpoint.statistics(peer).unwrap().counters.sent
}

/// Requests that wait and requests that do not keep their order, whatever their length.
pub fn corked_requests_keep_their_order(transport: &Transport) {
    const REQUESTS: u64 = 3_000;
    let [(mut a, to_b), (mut b, _)] = pair(transport);
    let (mut at_a, mut at_b) = (Seen::default(), Seen::default());
    let mut next = 0;
    until("all are answered", || {
        while next < REQUESTS {
            match next % 50 {
                0 => a.cork(),
                37 => a.uncork(),
                _ => {}
            }
            let payload = [7; 600];
            let len = if next % 7 == 3 { payload.len() } else { (next % 3) as usize };
            match a.try_request_medium(to_b, ASK, [next], &payload[..len]) {
                Ok(()) => next += 1,
                Err(RequestError::Full) => break,
                Err(error) => panic!("{error}"),
            }
        }
        a.poll(&mut at_a).unwrap();
        b.poll(&mut at_b).unwrap();
        at_a.replies.len() as u64 == REQUESTS
    });
    assert!(at_b.requests.iter().copied().eq(0..REQUESTS));
    assert!(at_a.replies.iter().copied().eq(0..REQUESTS));
}

pub fn corked_requests_wait_no_longer_than_the_next_poll(transport: &Transport) {
    if !waits(transport) {
        return;
    }
    type End = fn(&mut Endpoint<Seen>);
    let ends: [(&str, End); 4] = [
        ("poll", |endpoint| assert!(endpoint.poll(&mut Seen::default()).is_ok())),
        ("flush", Endpoint::flush),
        ("uncork", Endpoint::uncork),
        ("until_due", |endpoint| _ = endpoint.until_due()),
    ];
    let [(mut a, to_b), (mut b, _)] = pair(transport);
    let mut at_b = Seen::default();
    for (nth, (name, end)) in ends.into_iter().enumerate() {
        let before = sent(&a, to_b);
        a.cork();
        for n in 0..3 {
            a.try_request(to_b, TELL, [n]).unwrap();
        }
        assert_eq!(sent(&a, to_b), before, "{name}");
        end(&mut a);
        // After losses the congestion window may hold some of them back.
        let left = sent(&a, to_b) - before;
        assert!(left == 3 || (left > 0 && !transport.is_sound()), "{name}: {left}");
        // Then the congestion window has room for one at least.
        until("they arrive and are acknowledged", || {
            // On a bad network the sender has to send again.
            a.poll(&mut Seen::default()).unwrap();
            b.poll(&mut at_b).unwrap();
            at_b.requests.len() == 3 * (nth + 1) && a.in_flight(to_b) == 0
        });
    }
    assert!(at_b.requests.chunks(3).all(|requests| requests == [0, 1, 2]));
}

pub fn a_full_batch_of_corked_requests_leaves(transport: &Transport) {
    if !waits(transport) {
        return;
    }
    let [(mut a, to_b), (mut b, _)] = pair(transport);
    for n in 1..FULL_BATCH {
        a.try_request(to_b, TELL, [n]).unwrap();
    }
    assert_eq!(sent(&a, to_b), 0);
    a.try_request(to_b, TELL, [FULL_BATCH]).unwrap();
    // The congestion window lets the first of them leave.
    assert!(sent(&a, to_b) > 0);
    let (mut at_a, mut at_b) = (Seen::default(), Seen::default());
    until("all arrive", || {
        a.poll(&mut at_a).unwrap();
        b.poll(&mut at_b).unwrap();
        at_b.requests.len() as u64 == FULL_BATCH
    });
    assert!(at_b.requests.iter().copied().eq(1..=FULL_BATCH));
}

/// An endpoint that sleeps sends first what waits.
pub fn corked_requests_leave_before_a_sleep(transport: &Transport) {
    let [mut a, mut b] = [(); 2].map(|()| endpoint(transport.config().wait(Wait::Block)));
    let (to_b, _) = connect(transport.wire, &mut a, &mut b);
    a.cork();
    a.try_request(to_b, TELL, [5]).unwrap();
    a.idle(Duration::from_millis(1));
    if waits(transport) {
        assert_eq!(sent(&a, to_b), 1);
    }
}

/// What waits is sent before an endpoint closes, as any request that was accepted.
pub fn corked_requests_leave_before_the_end(transport: &Transport) {
    let [(mut a, to_b), (mut b, to_a)] = pair(transport);
    for n in 0..3 {
        a.try_request(to_b, TELL, [n]).unwrap();
    }
    let mut at_b = Seen::default();
    let lost = std::thread::scope(|scope| {
        // Over UDP the endpoint lingers until its messages have arrived.
        scope.spawn(|| drop(a));
        let mut lost = None;
        until("the end is noticed", || {
            lost = b.poll(&mut at_b).err();
            lost.is_some()
        });
        lost
    });
    assert_eq!(lost.map(|lost| (lost.peer, lost.loss)), Some((to_a, Loss::Closed)));
    assert_eq!(at_b.requests, [0, 1, 2]);
}

/// The end of a peer is reported as without a cork, and requests to the others go on.
pub fn a_peer_that_ends_while_corked_requests_wait(transport: &Transport) {
    let [mut a, mut b, mut c] = [(); 3].map(|()| endpoint(transport.config()));
    let (to_b, _) = connect(transport.wire, &mut a, &mut b);
    let (to_c, _) = connect(transport.wire, &mut a, &mut c);
    a.cork();
    for n in 0..3 {
        a.try_request(to_b, ASK, [n]).unwrap();
        a.try_request(to_c, ASK, [n]).unwrap();
    }
    drop(b);
    let (mut at_a, mut at_c) = (Seen::default(), Seen::default());
    let mut lost = Vec::new();
    until("the loss is reported and the others are answered", || {
        lost.extend(a.poll(&mut at_a).err());
        c.poll(&mut at_c).unwrap();
        !lost.is_empty() && at_a.replies.len() == 3
    });
    assert_eq!(lost.iter().map(|lost| (lost.peer, lost.unresolved)).collect::<Vec<_>>(), [(to_b, 3)]);
    assert_eq!(a.try_request(to_b, ASK, [3]), Err(RequestError::Lost(lost[0])));
    assert_eq!((at_c.requests, at_a.replies), (vec![0, 1, 2], vec![0, 1, 2]));
}
