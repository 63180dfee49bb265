//! Every message arrives once, unchanged, and in order between each pair of endpoints.

use crate::common::traffic::Traffic;
use crate::common::{Deadline, Idler, TIMEOUT, Transport, connect, connect_all, seed, until};
use fastrand::Rng;
use netdyno_stack::am::{Config, Endpoint, Handlers, PeerId, TooLong, Wait};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

fn config(transport: &Transport, window: u32, medium_bytes: u32, wait: Wait) -> Config {
    transport.config().window(window).medium_bytes(medium_bytes).wait(wait).peer_timeout(TIMEOUT)
}

struct Side {
    endpoint: Endpoint<Traffic>,
    peer: PeerId,
    traffic: Traffic,
}

/// Returns a connected pair. Payloads are limited to what both sides take, so that a reply may be as long
/// as its request.
fn pair(transport: &Transport, seed: u64, a: Config, b: Config) -> [Side; 2] {
    let mut endpoints = [a, b].map(|config| Endpoint::new(Traffic::handlers(), config).unwrap());
    let [left, right] = &mut endpoints;
    let (to_right, to_left) = connect(transport.wire, left, right);
    let most = left.medium_bytes(to_right).min(right.medium_bytes(to_left));
    let [left, right] = endpoints;
    [
        Side { endpoint: left, peer: to_right, traffic: Traffic::new(seed, 0, most, [1]) },
        Side { endpoint: right, peer: to_left, traffic: Traffic::new(seed, 1, most, [0]) },
    ]
}

const WINDOWS: [(u32, u32); 7] = [(1, 1), (2, 2), (8, 8), (256, 256), (1, 256), (8, 2), (64, 128)];

/// Sends `messages` and receives as many. Each side goes on until both are done. On a busy machine a lost message costs
/// some time slices of others, so the timeout is that of one message.
fn run(side: &mut Side, messages: u64, done: &AtomicUsize, seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let (mut deadline, mut idler) = (Deadline::after(TIMEOUT), Idler::default());
    let Side { endpoint, peer, traffic } = side;
    let (mut is_counted, mut received) = (false, 0);
    while done.load(Ordering::Acquire) < 2 {
        deadline.check("traffic between two threads");
        if traffic.received(*peer) > received {
            received = traffic.received(*peer);
            deadline = Deadline::after(TIMEOUT);
        }
        if traffic.sent(*peer) < messages {
            // Uses both ways to send, with bursts between polls.
            if rng.bool() {
                traffic.send(endpoint, *peer).unwrap();
            } else {
                for _ in 0..rng.u64(..16).min(messages - traffic.sent(*peer)) {
                    if !traffic.try_send(endpoint, *peer).unwrap() {
                        break;
                    }
                }
            }
        }
        if endpoint.poll(traffic).unwrap() == 0 {
            idler.idle();
        }
        let has_all = traffic.sent(*peer) == messages
            && traffic.received(*peer) == messages
            && traffic.is_answered()
            && endpoint.in_flight(*peer) == 0;
        if has_all && !is_counted {
            is_counted = true;
            done.fetch_add(1, Ordering::AcqRel);
        }
    }
    assert_eq!(traffic.received(*peer), messages);
}

fn between_two_threads(transport: &Transport, a: Config, b: Config, messages: u64) {
    let seed = seed();
    println!("{a:?} and {b:?}");
    let [mut left, mut right] = pair(transport, seed, a, b);
    let done = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| run(&mut left, messages, &done, seed));
        run(&mut right, messages, &done, !seed);
    });
}

pub fn in_both_directions_between_two_threads(transport: &Transport) {
    for (a, b) in WINDOWS {
        let messages = if a.min(b) < 8 { 1_000 } else { 20_000 };
        between_two_threads(
            transport,
            config(transport, a, 512, Wait::Yield),
            config(transport, b, 512, Wait::Yield),
            messages,
        );
    }
}

pub fn with_the_largest_payloads_and_different_ones_at_both_ends(transport: &Transport) {
    between_two_threads(
        transport,
        config(transport, 8, 1 << 20, Wait::Yield),
        config(transport, 8, 1 << 20, Wait::Yield),
        400,
    );
    between_two_threads(
        transport,
        config(transport, 8, 4096, Wait::Yield),
        config(transport, 16, 192, Wait::Yield),
        3_000,
    );
    // Medium messages with an empty payload.
    between_two_threads(
        transport,
        config(transport, 8, 0, Wait::Yield),
        config(transport, 8, 0, Wait::Yield),
        3_000,
    );
}

pub fn while_both_sides_spin(transport: &Transport) {
    between_two_threads(
        transport,
        config(transport, 256, 128, Wait::Spin),
        config(transport, 256, 128, Wait::Spin),
        if transport.is_sound() { 100_000 } else { 20_000 },
    );
}

/// A random order of sends and polls in one thread, where a run can be replayed.
pub fn with_polls_of_both_sides_interleaved_in_one_thread(transport: &Transport) {
    let seed = seed();
    let mut rng = Rng::with_seed(seed);
    for (a, b) in WINDOWS {
        println!("windows {a} and {b}");
        let mut sides = pair(
            transport,
            seed,
            config(transport, a, 256, Wait::Yield),
            config(transport, b, 256, Wait::Yield),
        );
        let mut step = |sides: &mut [Side; 2], eagerness: [u32; 2]| {
            let at = rng.usize(..2);
            let Side { endpoint, peer, traffic } = &mut sides[at];
            if rng.u32(..10) < eagerness[at] {
                let has_room = endpoint.in_flight(*peer) < a.min(b);
                assert_eq!(traffic.try_send(endpoint, *peer).unwrap(), has_room);
            } else {
                endpoint.poll(traffic).unwrap();
            }
        };
        // How often each side sends rather than polls, so that rings become full as well as empty.
        for eagerness in [[1, 1], [9, 1], [1, 9], [9, 9]] {
            for _ in 0..5_000 {
                step(&mut sides, eagerness);
            }
        }
        // Over a bad wire with a window of one, retransmissions may have taken nearly all the time of these polls.
        let some = if transport.is_sound() { 100 } else { 10 };
        if !transport.is_sound() {
            until("some messages were sent", || {
                step(&mut sides, [5, 5]);
                sides.iter().all(|side| side.traffic.sent(side.peer) > some)
            });
        }
        until("everything is answered", || {
            for Side { endpoint, traffic, .. } in &mut sides {
                endpoint.poll(traffic).unwrap();
            }
            sides.iter().all(|side| side.traffic.is_answered() && side.endpoint.in_flight(side.peer) == 0)
        });
        let [left, right] = &sides;
        assert!(left.traffic.sent(left.peer) > some && right.traffic.sent(right.peer) > some);
        assert_eq!(left.traffic.sent(left.peer), right.traffic.received(right.peer));
        assert_eq!(right.traffic.sent(right.peer), left.traffic.received(left.peer));
    }
}

/// More peers than are polled at every call, and each endpoint sends to all of them.
pub fn among_24_endpoints_in_4_threads(transport: &Transport) {
    const ENDPOINTS: usize = 24;
    const MESSAGES: u64 = 50;
    let seed = seed();
    // Each peer takes two descriptors.
    let mut limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current = limit.maximum.map_or(Some(4096), |most| Some(most.min(4096)));
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).unwrap();

    let mut endpoints: Vec<_> = (0..ENDPOINTS)
        .map(|_| Endpoint::new(Traffic::handlers(), config(transport, 4, 64, Wait::Yield)).unwrap())
        .collect();
    let peers = connect_all(transport.wire, &mut endpoints);
    let mut all: Vec<_> = endpoints
        .into_iter()
        .zip(peers)
        .enumerate()
        .map(|(me, (endpoint, peers))| {
            let mut names: Vec<(usize, PeerId)> =
                peers.into_iter().enumerate().filter_map(|(name, peer)| Some((name, peer?))).collect();
            names.sort_by_key(|(_, peer)| peer.index());
            let traffic = Traffic::new(seed, me, 64, names.iter().map(|&(name, _)| name));
            (endpoint, traffic, names.into_iter().map(|(_, peer)| peer).collect::<Vec<_>>())
        })
        .collect();

    let done = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for (thread, part) in all.chunks_mut(ENDPOINTS / 4).enumerate() {
            let done = &done;
            scope.spawn(move || {
                let mut rng = Rng::with_seed(seed ^ thread as u64);
                let mut is_counted = vec![false; part.len()];
                let (deadline, mut idler) = (Deadline::after(TIMEOUT), Idler::default());
                while done.load(Ordering::Acquire) < ENDPOINTS {
                    deadline.check("traffic among many");
                    for ((endpoint, traffic, peers), is_counted) in part.iter_mut().zip(&mut is_counted) {
                        let peer = peers[rng.usize(..peers.len())];
                        if traffic.sent(peer) < MESSAGES {
                            traffic.try_send(endpoint, peer).unwrap();
                        }
                        endpoint.poll(traffic).unwrap();
                        if !*is_counted
                            && traffic.received_in_all() == MESSAGES * peers.len() as u64
                            && peers
                                .iter()
                                .all(|&peer| traffic.sent(peer) == MESSAGES && endpoint.in_flight(peer) == 0)
                        {
                            assert!(traffic.is_answered());
                            *is_counted = true;
                            done.fetch_add(1, Ordering::AcqRel);
                        }
                    }
                    idler.idle();
                }
            });
        }
    });
}

/// The calls of the handlers, oldest first.
#[derive(Default)]
struct Seen {
    requests: Vec<Vec<u8>>,
    replies: Vec<Vec<u8>>,
    refused: Vec<TooLong>,
}

pub fn payloads_up_to_the_most_and_none_beyond(transport: &Transport) {
    const MOST: usize = 192;
    const THEIR_MOST: usize = 128;
    let mut handlers = Handlers::<Seen>::new();
    handlers.on_request(0, |seen, request| {
        let payload = request.payload();
        seen.requests.push(payload.to_vec());
        if let Err((too_long, request)) = request.reply_medium(0, [], payload) {
            // The refused reply leaves the request unanswered, so it can be answered again.
            seen.refused.push(too_long);
            request.reply(0, [1]);
        }
    });
    handlers.on_reply(0, |seen, reply| seen.replies.push(reply.payload().to_vec()));
    let mut a =
        Endpoint::new(handlers.clone(), config(transport, 16, THEIR_MOST as u32, Wait::Yield)).unwrap();
    let mut b = Endpoint::new(handlers, config(transport, 16, MOST as u32, Wait::Yield)).unwrap();
    let (peer, back) = connect(transport.wire, &mut a, &mut b);
    assert_eq!((a.medium_bytes(peer), b.medium_bytes(back)), (MOST, THEIR_MOST));

    let (mut at_a, mut at_b) = (Seen::default(), Seen::default());
    let payloads = [0, 1, 63, 64, 65, 127, 128, 129, 191, 192].map(|len| vec![len as u8; len]);
    for payload in &payloads {
        a.request_medium(&mut at_a, peer, 0, [], payload).unwrap();
    }
    let beyond = [7; MOST + 1];
    let too_long = TooLong { len: MOST + 1, most: MOST };
    assert_eq!(a.try_request_medium(peer, 0, [], &beyond), Err(too_long.into()));
    assert_eq!(a.request_medium(&mut at_a, peer, 0, [], &beyond), Err(too_long.into()));
    assert_eq!(a.in_flight(peer), payloads.len() as u32);
    until("all are answered", || {
        b.poll(&mut at_b).unwrap();
        a.poll(&mut at_a).unwrap();
        at_a.replies.len() == payloads.len()
    });
    assert_eq!(at_b.requests, payloads);
    let refused = [129, 191, 192].map(|len| TooLong { len, most: THEIR_MOST });
    assert_eq!(at_b.refused, refused);
    let replies = payloads.map(|payload| if payload.len() <= THEIR_MOST { payload } else { Vec::new() });
    assert_eq!(at_a.replies, replies);
    assert_eq!(a.in_flight(peer), 0);
}

/// A peer of one endpoint is no peer of another one, even if both are the first.
pub fn the_peer_of_another_endpoint(transport: &Transport) {
    let [mut a, mut b] = [(); 2].map(|()| Endpoint::<()>::new(Handlers::new(), transport.config()).unwrap());
    let (to_b, to_a) = connect(transport.wire, &mut a, &mut b);
    let calls: [fn(&mut Endpoint<()>, PeerId); 7] = [
        |endpoint, peer| endpoint.request(&mut (), peer, 0, [1]).unwrap(),
        |endpoint, peer| endpoint.try_request(peer, 0, [1, 2, 3, 4]).unwrap(),
        |endpoint, peer| endpoint.request_medium(&mut (), peer, 0, [], &[1]).unwrap(),
        |endpoint, peer| endpoint.disconnect(peer),
        |endpoint, peer| assert_eq!(endpoint.in_flight(peer), 0),
        |endpoint, peer| assert!(endpoint.statistics(peer).is_some()),
        |endpoint, peer| {
            let key = endpoint.allocate(1).unwrap().key();
            endpoint.attach(&mut (), peer, &key).unwrap();
        },
    ];
    for call in calls {
        let panic = catch_unwind(AssertUnwindSafe(|| call(&mut a, to_a))).unwrap_err();
        let said = panic.downcast_ref::<String>().unwrap();
        assert!(said.contains("is of another endpoint"), "{said}");
    }
    assert_eq!(a.in_flight(to_b), 0);
}
