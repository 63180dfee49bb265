//! Windows, credits, and the calls in which handlers run.

use crate::common::asking::{ASK, Kept as Seen, TELL, keeping};
use crate::common::{TIMEOUT, Transport, connect, until};
use netdyno_stack::am::{Config, Endpoint, Handlers, Loss, OpenError, PeerId, PeerLost, RequestError, Wait};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

fn endpoint(config: Config) -> Endpoint<Seen> {
    Endpoint::new(keeping(), config).unwrap()
}

fn windows(transport: &Transport, a: u32, b: u32) -> [Config; 2] {
    [a, b].map(|window| transport.config().window(window).medium_bytes(64).peer_timeout(TIMEOUT))
}

struct Pair {
    a: Endpoint<Seen>,
    b: Endpoint<Seen>,
    to_b: PeerId,
    to_a: PeerId,
    at_a: Seen,
    at_b: Seen,
}

fn pair(transport: &Transport, [a, b]: [Config; 2]) -> Pair {
    let (mut a, mut b) = (endpoint(a), endpoint(b));
    let (to_b, to_a) = connect(transport.wire, &mut a, &mut b);
    Pair { a, b, to_b, to_a, at_a: Seen::default(), at_b: Seen::default() }
}

/// Sends until the window is full. Returns the number of requests sent.
fn fill(endpoint: &mut Endpoint<Seen>, peer: PeerId, handler: u8) -> u32 {
    let mut sent = 0;
    loop {
        match endpoint.try_request(peer, handler, [u64::from(sent)]) {
            Ok(()) => sent += 1,
            Err(RequestError::Full) => return sent,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Runs on a network without faults, where one side can be polled without the other.
pub fn a_window_is_full_exactly_when_it_is(transport: &Transport) {
    if !transport.is_sound() {
        return;
    }
    let cases = [(1, 1), (2, 2), (8, 8), (256, 256), (1 << 15, 1 << 15), (1, 256), (256, 2), (8, 16)];
    for (a_size, b_size) in cases {
        let Pair { mut a, mut b, to_b, to_a, mut at_a, mut at_b } =
            pair(transport, windows(transport, a_size, b_size));
        // The smaller window of the two sides applies. Over UDP it is at most 2^14.
        let window =
            if transport.is_of_datagrams() { a_size.min(b_size).min(1 << 14) } else { a_size.min(b_size) };
        assert_eq!(fill(&mut a, to_b, ASK), window);
        assert_eq!(a.in_flight(to_b), window);
        assert_eq!(a.try_request_medium(to_b, ASK, [], &[1]), Err(RequestError::Full));
        // The other direction has a window of its own, of the same size.
        assert_eq!(fill(&mut b, to_a, ASK), window);

        // A handled request makes room for another one once its reply is taken.
        until("a request is handled", || b.poll(&mut at_b).unwrap() > 0);
        assert_eq!(a.try_request(to_b, ASK, []), Err(RequestError::Full), "the reply is not taken yet");
        until("its reply is taken", || {
            // Over UDP the reply may follow requests in the stream, which must be acknowledged first.
            if transport.is_of_datagrams() {
                b.poll(&mut at_b).unwrap();
            }
            a.poll(&mut at_a).unwrap();
            a.in_flight(to_b) < window
        });
        let answered = at_a.replies.len() as u32;
        assert!(answered > 0 && a.in_flight(to_b) >= window - at_b.requests.len() as u32);
        let room = window - a.in_flight(to_b);
        for n in window..window + room {
            assert_eq!(a.try_request(to_b, ASK, [u64::from(n)]), Ok(()));
        }
        assert_eq!(a.try_request(to_b, ASK, []), Err(RequestError::Full));

        until("both sides are answered", || {
            a.poll(&mut at_a).unwrap();
            b.poll(&mut at_b).unwrap();
            a.in_flight(to_b) == 0 && b.in_flight(to_a) == 0
        });
        let all: Vec<u64> = (0..u64::from(window + room)).collect();
        assert_eq!((&at_b.requests, &at_a.replies), (&all, &all));
        let all = &all[..window as usize];
        assert_eq!((&at_a.requests[..], &at_b.replies[..]), (all, all));
    }
}

/// An endpoint of which every poll finds messages of one peer still gives another one its credit back.
pub fn a_busy_endpoint_gives_every_credit_back(transport: &Transport) {
    if !transport.is_sound() {
        return;
    }
    let config = transport.config().window(64).peer_timeout(TIMEOUT);
    let [mut a, mut b, mut busy] = [(); 3].map(|()| endpoint(config));
    let (from_a, _) = connect(transport.wire, &mut a, &mut busy);
    let (from_b, _) = connect(transport.wire, &mut b, &mut busy);
    let [mut at_a, mut at_b, mut at_busy] = [(); 3].map(|()| Seen::default());
    a.try_request(from_a, TELL, [1]).unwrap();
    until("the credit is back", || {
        fill(&mut b, from_b, TELL);
        busy.poll(&mut at_busy).unwrap();
        b.poll(&mut at_b).unwrap();
        a.poll(&mut at_a).unwrap();
        a.in_flight(from_a) == 0
    });
}

/// The requests that a UDP connection sends before it hears anything.
const ON_THE_WIRE_AT_FIRST: u32 = 16;

/// Both sides have full windows, and each can still answer without the help of the other. This does not
/// hold where the other side must retransmit, or where messages are not due at once.
pub fn a_reply_never_waits(transport: &Transport) {
    if !transport.is_sound() || !transport.dials.are_none() {
        return;
    }
    for window in [1, 2, 8, 256] {
        if transport.is_of_datagrams() && window > ON_THE_WIRE_AT_FIRST {
            continue;
        }
        let Pair { mut a, mut b, to_b, to_a, mut at_a, mut at_b } =
            pair(transport, windows(transport, window, window));
        assert_eq!(fill(&mut a, to_b, ASK), window);
        assert_eq!(fill(&mut b, to_a, ASK), window);
        // Neither side waits for the other: each handles everything that has arrived by polls alone.
        while a.poll(&mut at_a) != Ok(0) {}
        assert_eq!(at_a.requests.len() as u32, window, "answered with a full window of its own");
        assert_eq!(a.in_flight(to_b), window);
        while b.poll(&mut at_b) != Ok(0) {}
        assert_eq!((at_b.replies.len() as u32, b.in_flight(to_a)), (window, 0));
        while a.poll(&mut at_a) != Ok(0) {}
        assert_eq!((at_a.replies.len() as u32, a.in_flight(to_b)), (window, 0));
    }
}

/// Both sides wait for room at the same time, repeatedly, without a deadlock.
pub fn both_sides_may_wait_for_room(transport: &Transport) {
    for (a, b) in [(1, 1), (2, 2), (8, 8), (1, 8)] {
        let Pair { mut a, mut b, to_b, to_a, mut at_a, mut at_b } = pair(transport, windows(transport, a, b));
        const REQUESTS: u64 = 1_000;
        let done = AtomicUsize::new(0);
        let side = |endpoint: &mut Endpoint<Seen>, seen: &mut Seen, peer: PeerId| {
            for n in 0..REQUESTS {
                endpoint.request(seen, peer, if n % 3 == 0 { TELL } else { ASK }, [n]).unwrap();
            }
            until("all are answered", || {
                endpoint.poll(seen).unwrap();
                endpoint.in_flight(peer) == 0 && seen.requests.len() as u64 == REQUESTS
            });
            done.fetch_add(1, Ordering::AcqRel);
            // The peer may still wait for credits, or for a retransmission.
            until("the other side", || {
                endpoint.poll(seen).unwrap();
                done.load(Ordering::Acquire) == 2
            });
        };
        std::thread::scope(|scope| {
            scope.spawn(|| side(&mut a, &mut at_a, to_b));
            side(&mut b, &mut at_b, to_a);
        });
        assert!(at_a.requests.iter().copied().eq(0..REQUESTS));
        assert!(at_b.requests.iter().copied().eq(0..REQUESTS));
    }
}

/// Credits of handled requests return although no reply carries them. With half a window owed a credit is
/// sent at once; with less it is sent when the endpoint is idle.
pub fn unanswered_requests_give_their_credit_back(transport: &Transport) {
    for wait in [Wait::Spin, Wait::Yield] {
        for window in [1, 2, 8, 256] {
            for requests in [1, window / 2, window / 2 + 1, window - 1, window] {
                let configs = windows(transport, window, window).map(|config| config.wait(wait));
                let Pair { mut a, mut b, to_b, mut at_a, mut at_b, .. } = pair(transport, configs);
                for n in 0..requests {
                    a.try_request(to_b, TELL, [u64::from(n)]).unwrap();
                }
                // The requester takes its credits whenever it polls.
                until("the credits come back", || {
                    b.poll(&mut at_b).unwrap();
                    a.poll(&mut at_a).unwrap();
                    a.in_flight(to_b) == 0
                });
                assert!(at_b.requests.iter().copied().eq(0..u64::from(requests)));
                assert_eq!(at_a, Seen::default(), "a credit is no message");
                assert_eq!(fill(&mut a, to_b, TELL), window);
            }
        }
    }
}

/// Runs on a network without faults, where messages are due at once. The side that gets the credits does
/// nothing for it.
pub fn half_a_window_of_unanswered_requests_is_credited_at_once(transport: &Transport) {
    if !transport.is_sound() || !transport.dials.are_none() {
        return;
    }
    let Pair { mut a, mut b, to_b, mut at_a, mut at_b, .. } = pair(transport, windows(transport, 8, 8));
    assert_eq!(fill(&mut a, to_b, TELL), 8);
    // While there are requests to handle, credits below half a window are not sent.
    until("half of them are handled", || {
        b.poll(&mut at_b).unwrap();
        at_b.requests.len() >= 4
    });
    until("they are credited", || {
        a.poll(&mut at_a).unwrap();
        a.in_flight(to_b) <= 4
    });
}

pub fn handlers_run_in_poll_and_in_a_request_that_waits(transport: &Transport) {
    let Pair { mut a, mut b, to_b, to_a, mut at_a, mut at_b } = pair(transport, windows(transport, 2, 2));
    // No handler runs in a call that does not wait.
    b.try_request(to_a, ASK, [7]).unwrap();
    a.try_request(to_b, ASK, [0]).unwrap();
    a.request(&mut at_a, to_b, ASK, [1]).unwrap();
    assert_eq!(at_a, Seen::default());

    // The window is full. The request waits for the other side, and handles its requests meanwhile.
    std::thread::scope(|scope| {
        let responder = scope.spawn(|| {
            // Takes the answer before it makes room, so that the request handler at the waiting side has
            // run before the wait ends.
            until("the waiting side answers", || {
                b.poll(&mut at_b).unwrap();
                !at_b.replies.is_empty() && at_b.requests.len() == 3
            });
        });
        a.request(&mut at_a, to_b, ASK, [2]).unwrap();
        assert!(!at_a.replies.is_empty(), "room comes with a reply, which has its handler run");
        // A network with faults needs both sides until the end.
        until("the other side is done", || {
            a.poll(&mut at_a).unwrap();
            responder.is_finished()
        });
    });
    assert_eq!(at_a.requests, [7]);
    until("all is answered", || {
        b.poll(&mut at_b).unwrap();
        a.poll(&mut at_a).unwrap();
        a.in_flight(to_b) == 0
    });
    assert_eq!(at_a.replies, [0, 1, 2]);
    assert_eq!((at_b.requests, at_b.replies), (vec![0, 1, 2], vec![7]));
}

/// While the window stays full, a request that waits for room still answers the peer.
pub fn a_waiting_request_answers_its_peer(transport: &Transport) {
    let Pair { mut a, mut b, to_b, to_a, mut at_a, .. } = pair(transport, windows(transport, 1, 1));
    a.try_request(to_b, ASK, [0]).unwrap();
    std::thread::scope(|scope| {
        let other = scope.spawn(move || {
            // Sends requests without polling, because a poll would handle the peer's request. So it takes
            // the peer's answer only inside its own waiting request.
            let mut at_b = Seen::default();
            b.try_request(to_a, ASK, [1]).unwrap();
            b.request(&mut at_b, to_a, ASK, [2]).unwrap();
            until("both answers", || {
                b.poll(&mut at_b).unwrap();
                at_b.replies == [1, 2] && at_b.requests == [0, 3]
            });
        });
        a.request(&mut at_a, to_b, ASK, [3]).unwrap();
        // A network with faults needs both sides until the end, which the other side reports.
        until("both questions", || {
            let result = a.poll(&mut at_a);
            assert!(result.is_ok() || at_a.replies == [0, 3], "{result:?}");
            at_a.requests == [1, 2] && at_a.replies == [0, 3] && other.is_finished()
        });
    });
}

#[test]
fn what_cannot_be_made_is_refused() {
    let open = |window, medium_bytes| {
        let config = Config::new().window(window).medium_bytes(medium_bytes);
        Endpoint::<()>::new(Handlers::new(), config).err()
    };
    for window in [0, 3, 257, 1 << 16, u32::MAX] {
        assert!(matches!(open(window, 64), Some(OpenError::Window(refused)) if refused == window));
    }
    for medium in [1, 63, 65, (1 << 20) + 64, u32::MAX] {
        assert!(matches!(open(8, medium), Some(OpenError::Medium(refused)) if refused == medium));
    }
    assert!(open(1, 0).is_none());
    assert!(open(1 << 15, 1 << 20).is_none());
}

/// Nothing is due for a disconnected peer, whatever was in flight.
pub fn a_peer_that_was_given_up_keeps_nobody_awake(transport: &Transport) {
    let [config, _] = windows(transport, 8, 8).map(|config| config.wait(Wait::Block));
    let Pair { mut a, to_b, mut at_a, .. } = pair(transport, [config, config]);
    fill(&mut a, to_b, ASK);
    a.disconnect(to_b);
    // A network with faults delays some of the closing messages, and each is due once and ends a sleep.
    until("an undisturbed sleep", || {
        a.poll(&mut at_a).unwrap();
        let began = Instant::now();
        a.idle(Duration::from_millis(50));
        began.elapsed() >= Duration::from_millis(50)
    });
    let started = Instant::now();
    for _ in 0..4 {
        a.poll(&mut at_a).unwrap();
        a.idle(Duration::from_millis(50));
    }
    assert!(started.elapsed() >= Duration::from_millis(150), "{:?}", started.elapsed());
}

pub fn a_peer_that_was_given_up_takes_nothing(transport: &Transport) {
    let Pair { mut a, mut b, to_b, to_a, mut at_a, mut at_b } = pair(transport, windows(transport, 8, 8));
    a.try_request(to_b, ASK, [0]).unwrap();
    b.try_request(to_a, ASK, [1]).unwrap();
    a.disconnect(to_b);
    let lost = PeerLost { peer: to_b, loss: Loss::Closed, unresolved: 1, not_sent: 0 };
    assert_eq!(a.try_request(to_b, ASK, [2]), Err(lost.into()));
    assert_eq!(a.request(&mut at_a, to_b, ASK, [2]), Err(lost));
    assert_eq!(a.poll(&mut at_a), Ok(0), "given up is not lost: nothing to report");
    assert_eq!(at_a, Seen::default());

    // The other side takes what was sent before, and then learns of the disconnection.
    let mut found = None;
    until("the other side learns of it", || {
        // This poll sends the closing message again if the network has lost it.
        assert_eq!(a.poll(&mut at_a), Ok(0));
        found = b.poll(&mut at_b).err();
        found.is_some()
    });
    assert_eq!(found, Some(PeerLost { peer: to_a, loss: Loss::Closed, unresolved: 1, not_sent: 0 }));
    // The network may lose the request, and nothing is retransmitted to a disconnected peer.
    assert!(at_b.requests == [0] || (!transport.is_sound() && at_b.requests.is_empty()));
}
