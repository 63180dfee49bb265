//! Peers that stop, close, or end: what is reported, when, and what is delivered before.

use crate::common::asking::{ASK, Kept as Seen, TELL, keeping};
use crate::common::process::{Child, argument, role};
use crate::common::{Deadline, Idler, TIMEOUT, Transport, connect, connect_all, until};
use netdyno_stack::am::{Endpoint, Handlers, LINGER, Loss, PeerId, PeerLost, RequestError, Wait, Wire};
use rustix::process::Signal;
use std::time::{Duration, Instant};

fn endpoint(transport: &Transport, window: u32, peer_timeout: Duration) -> Endpoint<Seen> {
    Endpoint::new(keeping(), transport.config().window(window).medium_bytes(64).peer_timeout(peer_timeout))
        .unwrap()
}

/// Polls until a loss is reported.
fn until_lost(endpoint: &mut Endpoint<Seen>, seen: &mut Seen) -> PeerLost {
    let (deadline, mut idler) = (Deadline::after(TIMEOUT), Idler::default());
    loop {
        deadline.check("a loss is reported");
        match endpoint.poll(seen) {
            Ok(0) => idler.idle(),
            Ok(_) => {}
            Err(lost) => return lost,
        }
    }
}

/// Polls for a while in which no peer may be lost.
fn poll_for(endpoint: &mut Endpoint<Seen>, seen: &mut Seen, time: Duration) {
    let (start, mut idler) = (Instant::now(), Idler::default());
    while start.elapsed() < time {
        if endpoint.poll(seen).unwrap() == 0 {
            idler.idle();
        }
    }
}

pub fn child_process(transport: &Transport) {
    let Some((role, parent)) = role() else { return };
    let mut endpoint = endpoint(transport, argument(&role, 1), TIMEOUT);
    let peer = parent.connect(transport.wire, &mut endpoint);
    let mut seen = Seen::default();
    match role[0].as_str() {
        // Answers until the parent is gone.
        "answers" => {
            while !parent.is_gone() {
                if endpoint.poll(&mut seen).is_err() {
                    break;
                }
                Wait::Yield.idle();
            }
        }
        // Sends that many requests without polling, and then leaves in the given way.
        "sends" => {
            for n in 0..argument(&role, 2) {
                endpoint.try_request(peer, if n % 2 == 0 { ASK } else { TELL }, [n]).unwrap();
            }
            parent.say("sent");
            if role[3] == "closes" {
                drop(endpoint);
                parent.say("closed");
            }
            while !parent.is_gone() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        other => panic!("no such role: {other}"),
    }
}

const PEER_TIMEOUT: Duration = Duration::from_millis(400);

pub fn a_stopped_peer_is_silent(transport: &Transport) {
    // A child that waits for a processor is not silent for so long.
    const PEER_TIMEOUT: Duration = Duration::from_millis(1500);
    let mut child = Child::start(&transport.path_of(module_path!()), "answers 8");
    let mut endpoint = endpoint(transport, 8, PEER_TIMEOUT);
    let mut seen = Seen::default();
    let peer = child.connect(transport.wire, &mut endpoint);
    for n in 0..100 {
        endpoint.request(&mut seen, peer, ASK, [n]).unwrap();
    }
    until("all is answered", || {
        endpoint.poll(&mut seen).unwrap();
        endpoint.in_flight(peer) == 0
    });

    // While no request is outstanding, the peer may be silent.
    child.signal(Signal::STOP);
    poll_for(&mut endpoint, &mut seen, 2 * PEER_TIMEOUT);

    let asked = Instant::now();
    let error = loop {
        if let Err(error) = endpoint.request(&mut seen, peer, ASK, [0]) {
            break error;
        }
    };
    // Over UDP the congestion window may have shrunk, so that some requests were not sent.
    let not_sent = if transport.wire == Wire::Shm { 0 } else { error.not_sent };
    assert_eq!(error, PeerLost { peer, loss: Loss::Silent(PEER_TIMEOUT), unresolved: 8, not_sent });
    assert!(asked.elapsed() >= PEER_TIMEOUT, "after {:?}", asked.elapsed());
    assert!(asked.elapsed() < PEER_TIMEOUT + Duration::from_secs(5));
    assert_eq!(seen.replies.len(), 100);

    // The peer stays lost, even if it continues.
    child.signal(Signal::CONT);
    poll_for(&mut endpoint, &mut seen, Duration::from_millis(100));
    assert_eq!(endpoint.request(&mut seen, peer, ASK, [0]), Err(error));
    assert_eq!(seen.replies.len(), 100);
}

pub fn a_peer_that_was_stopped_for_less_goes_on(transport: &Transport) {
    let mut child = Child::start(&transport.path_of(module_path!()), "answers 8");
    let mut endpoint = endpoint(transport, 8, TIMEOUT);
    let mut seen = Seen::default();
    let peer = child.connect(transport.wire, &mut endpoint);
    let mut asked = 0;
    for _ in 0..10 {
        for (signal, pause) in [(Signal::STOP, 30), (Signal::CONT, 3)] {
            child.signal(signal);
            let start = Instant::now();
            while start.elapsed() < Duration::from_millis(pause) {
                match endpoint.try_request(peer, ASK, [asked]) {
                    Ok(()) => asked += 1,
                    Err(RequestError::Full) => {}
                    Err(error) => panic!("{error}"),
                }
                endpoint.poll(&mut seen).unwrap();
                Wait::Yield.idle();
            }
        }
    }
    until("all is answered", || {
        endpoint.poll(&mut seen).unwrap();
        endpoint.in_flight(peer) == 0
    });
    assert!(asked > 8);
    assert!(seen.replies.iter().copied().eq(0..asked), "each once, in order");
}

/// A program that does not poll for a while does not see what its peer does. That time does not count
/// towards the peer timeout.
pub fn time_without_polls_is_not_the_silence_of_a_peer(transport: &Transport) {
    // Long enough for a message of which a few transmissions in a row are lost.
    const PEER_TIMEOUT: Duration = Duration::from_millis(1200);
    let (mut a, mut b) = (endpoint(transport, 8, PEER_TIMEOUT), endpoint(transport, 8, PEER_TIMEOUT));
    let (to_b, to_a) = connect(transport.wire, &mut a, &mut b);
    let (mut at_a, mut at_b) = (Seen::default(), Seen::default());
    for round in 0..3 {
        // A pause precedes the request and follows it. In one case the answer is already there after the
        // pause, and in the other it comes a moment later.
        std::thread::sleep(PEER_TIMEOUT + Duration::from_millis(100));
        a.try_request(to_b, ASK, [round]).unwrap();
        poll_for(&mut a, &mut at_a, Duration::from_millis(40));
        b.poll(&mut at_b).unwrap();
        if round == 1 {
            b.try_request(to_a, ASK, [round]).unwrap();
        }
        std::thread::sleep(PEER_TIMEOUT + Duration::from_millis(100));
        poll_for(&mut a, &mut at_a, Duration::from_millis(1));
        until("the answers", || {
            a.poll(&mut at_a).unwrap();
            b.poll(&mut at_b).unwrap();
            a.in_flight(to_b) == 0 && b.in_flight(to_a) == 0
        });
    }
    assert_eq!((at_a.replies, at_b.replies), (vec![0, 1, 2], vec![1]));
}

/// Messages sent before the end are delivered first, whatever the end is. Over UDP a killed peer may not
/// have sent all of its messages; the suite of kills covers that.
pub fn what_was_sent_before_the_end_is_delivered(transport: &Transport) {
    for (leaves, loss) in [("closes", Loss::Closed), ("is-killed", Loss::Ended)] {
        if transport.is_of_datagrams() && loss == Loss::Ended {
            continue;
        }
        let requests = 200;
        let mut child =
            Child::start(&transport.path_of(module_path!()), &format!("sends 256 {requests} {leaves}"));
        let mut endpoint = endpoint(transport, 256, TIMEOUT);
        let peer = child.connect(transport.wire, &mut endpoint);
        assert_eq!(child.hear(), "sent");
        match (loss, transport.wire) {
            (Loss::Closed, Wire::Shm) => assert_eq!(child.hear(), "closed"),
            // The child's endpoint lingers until its messages are acknowledged.
            (Loss::Closed, Wire::Udp | Wire::Xdp) => {}
            _ => child.kill(),
        }
        let mut seen = Seen::default();
        // These requests are never answered.
        for n in 0..3 {
            endpoint.request(&mut seen, peer, ASK, [n]).unwrap();
        }
        let lost = until_lost(&mut endpoint, &mut seen);
        assert!(seen.requests.iter().copied().eq(0..requests), "{} of {requests}", seen.requests.len());
        assert_eq!(lost, PeerLost { peer, loss, unresolved: 3, not_sent: 0 });
    }
}

/// Answers that a peer sent before its end count as answers.
pub fn what_was_answered_before_the_end_is_delivered(transport: &Transport) {
    let (mut a, mut b) = (endpoint(transport, 16, TIMEOUT), endpoint(transport, 16, TIMEOUT));
    let (to_b, _) = connect(transport.wire, &mut a, &mut b);
    let (mut at_a, mut at_b) = (Seen::default(), Seen::default());
    for n in 0..16 {
        a.try_request(to_b, ASK, [n]).unwrap();
    }
    until("most are handled", || {
        if !transport.is_sound() {
            a.poll(&mut at_a).unwrap();
        }
        b.poll(&mut at_b).unwrap();
        at_b.requests.len() >= 9
    });
    let answered = at_b.requests.len() as u64;
    assert!(answered < 16 || !transport.is_sound(), "some are left");
    let lost = std::thread::scope(|scope| {
        // Over UDP the endpoint lingers until its messages have arrived.
        scope.spawn(|| drop(b));
        until_lost(&mut a, &mut at_a)
    });
    assert_eq!(
        lost,
        PeerLost { peer: to_b, loss: Loss::Closed, unresolved: 16 - answered as u32, not_sent: 0 }
    );
    assert!(at_a.replies.iter().copied().eq(0..answered));
}

/// Two endpoints that close at once take no more messages, so neither waits until the other has taken its last one.
pub fn endpoints_that_close_at_once_do_not_wait_for_each_other(transport: &Transport) {
    // A busy machine may make one of them late.
    let ends_soon = (0..10).any(|_| {
        let (mut a, mut b) = (endpoint(transport, 16, TIMEOUT), endpoint(transport, 16, TIMEOUT));
        let (to_b, to_a) = connect(transport.wire, &mut a, &mut b);
        a.try_request(to_b, TELL, [0]).unwrap();
        b.try_request(to_a, TELL, [0]).unwrap();
        let began = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| drop(a));
            drop(b);
        });
        began.elapsed() < LINGER
    });
    assert!(ends_soon, "each waits for all of its time");
}

pub fn a_loss_is_reported_once_and_the_others_go_on(transport: &Transport) {
    let mut endpoints: Vec<_> = (0..4).map(|_| endpoint(transport, 8, TIMEOUT)).collect();
    let peers = connect_all(transport.wire, &mut endpoints);
    let peer = |of: usize, with: usize| peers[of][with].unwrap();
    let mut seen: Vec<_> = (0..4).map(|_| Seen::default()).collect();
    endpoints[0].try_request(peer(0, 3), ASK, [1]).unwrap();
    endpoints.pop();
    let (mut losses, mut asked) = (Vec::new(), 0);
    let start = Instant::now();
    while losses.len() < 3 || start.elapsed() < Duration::from_millis(300) {
        assert!(start.elapsed() < TIMEOUT, "not all have noticed");
        for (me, endpoint) in endpoints.iter_mut().enumerate() {
            if me == 0 && endpoint.try_request(peer(0, 1), ASK, [asked]).is_ok() {
                asked += 1;
            }
            if let Err(lost) = endpoint.poll(&mut seen[me]) {
                losses.push((me, lost));
            }
        }
    }
    losses.sort_by_key(|(me, _)| *me);
    let lost = |me: usize| PeerLost {
        peer: peer(me, 3),
        loss: Loss::Closed,
        unresolved: u32::from(me == 0),
        not_sent: 0,
    };
    assert_eq!(losses, (0..3).map(|me| (me, lost(me))).collect::<Vec<_>>());

    // Each request to the lost peer fails, and no request to another peer does.
    for _ in 0..3 {
        assert_eq!(endpoints[0].try_request(peer(0, 3), ASK, [1]), Err(lost(0).into()));
        assert_eq!(endpoints[0].request(&mut seen[0], peer(0, 3), ASK, [1]), Err(lost(0)));
        let error = endpoints[0].request_medium(&mut seen[0], peer(0, 3), ASK, [1], &[1]);
        assert_eq!(error, Err(lost(0).into()));
    }
    until("the others have answered", || {
        for (endpoint, seen) in endpoints.iter_mut().zip(&mut seen) {
            endpoint.poll(seen).unwrap();
        }
        endpoints[0].in_flight(peer(0, 1)) == 0
    });
    assert!(asked > 0 && seen[0].replies.iter().copied().eq(0..asked));
}

/// Many peers that close at once are reported one after the other, without pauses. This does not run on a
/// network that may lose a closing message, because the peer timeout only runs while requests are
/// outstanding.
pub fn many_losses_are_reported_within_the_bound_for_one(transport: &Transport) {
    if !transport.is_sound() {
        return;
    }
    // Over AF_XDP each endpoint needs an interface.
    let count = if transport.wire == Wire::Xdp { 20 } else { 100 };
    let config = transport.config().window(2).medium_bytes(0);
    let mut hub = Endpoint::<Seen>::new(Handlers::new(), config).unwrap();
    let mut others: Vec<_> =
        (0..count).map(|_| Endpoint::<Seen>::new(Handlers::new(), config).unwrap()).collect();
    let peers: Vec<PeerId> =
        others.iter_mut().map(|other| connect(transport.wire, &mut hub, other).0).collect();
    hub.poll(&mut Seen::default()).unwrap();
    drop(others);
    let mut losses = peers.iter().map(|_| until_lost(&mut hub, &mut Seen::default()).peer);
    let mut lost = vec![losses.next().unwrap()];
    let start = Instant::now();
    lost.extend(losses);
    assert_eq!(lost, peers);
    // A pause of one check interval between the reports would add up to five seconds, or one over AF_XDP.
    let most = if transport.wire == Wire::Xdp { 0.8 } else { 4.0 };
    assert!(start.elapsed().as_secs_f64() < most, "{:?}", start.elapsed());
}

/// An endpoint that gives a peer up tells the peer. Otherwise a peer without requests would wait for
/// ever.
pub fn a_peer_given_up_as_silent_learns_of_it(transport: &Transport) {
    let (mut a, mut b) = (endpoint(transport, 8, PEER_TIMEOUT), endpoint(transport, 8, TIMEOUT));
    let (to_b, to_a) = connect(transport.wire, &mut a, &mut b);
    let (mut at_a, mut at_b) = (Seen::default(), Seen::default());
    a.try_request(to_b, ASK, [1]).unwrap();
    let lost = until_lost(&mut a, &mut at_a);
    assert_eq!(lost, PeerLost { peer: to_b, loss: Loss::Silent(PEER_TIMEOUT), unresolved: 1, not_sent: 0 });
    let mut found = None;
    until("the other side learns of it", || {
        // This poll sends the closing message again if the network has lost it.
        assert_eq!(a.poll(&mut at_a), Ok(0));
        found = b.poll(&mut at_b).err();
        found.is_some()
    });
    assert_eq!(found, Some(PeerLost { peer: to_a, loss: Loss::Closed, unresolved: 0, not_sent: 0 }));
    assert_eq!(at_b.requests, [1]);
}
