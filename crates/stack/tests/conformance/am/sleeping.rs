//! Endpoints that sleep while peers over shared memory are connected.

use crate::common::bulk::{
    ANSWERED, BLANK, ECHO, FETCHED, Origin, QUIET, Side, config, handlers, pair, while_polled,
};
use crate::common::transport::{BLOCKING_SHM, SHM};
use crate::common::{TIMEOUT, connect, until};
use netdyno_host::segment::open_segment;
use netdyno_protocol::frame::port::PortAddress;
use netdyno_stack::am::{ConnectError, Endpoint, Loss, Wait, Wire};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Offset of the word of a port that names the wake-up of its endpoint.
const WAKEUP: usize = 200;
/// Offset of the word of a port that says that its endpoint sleeps.
const ASLEEP: usize = 256;

fn is_rung<S>(endpoint: &Endpoint<S>) -> bool {
    poll(&mut [PollFd::new(endpoint, PollFlags::IN)], Some(&Timespec::default())).unwrap() == 1
}

/// Handles everything that has come, and then announces a sleep.
fn fall_asleep(side: &mut Side) {
    until("there is nothing to poll for", || {
        side.poll();
        !side.endpoint.until_due().is_zero()
    });
    assert!(!is_rung(&side.endpoint), "nobody has sent anything");
}

/// An action of one side that its peer must learn of.
type Act = fn(&mut Side);

#[test]
fn every_message_wakes_a_sleeper() {
    let acts: [(&str, Act); 4] = [
        ("a request", |a| a.endpoint.try_request(a.peer, ECHO, [1]).unwrap()),
        ("a request that may wait", |a| a.endpoint.request(&mut a.seen, a.peer, ECHO, [1]).unwrap()),
        ("a request with a payload", |a| a.endpoint.try_request_medium(a.peer, ECHO, [1], &[2]).unwrap()),
        ("the end of the connection", |a| a.endpoint.disconnect(a.peer)),
    ];
    for (what, act) in acts {
        let [mut a, mut b] = pair(&BLOCKING_SHM);
        fall_asleep(&mut b);
        act(&mut a);
        assert!(is_rung(&b.endpoint), "{what}");
        assert_eq!(b.endpoint.until_due(), Duration::ZERO, "{what}: there is something to poll for");
    }
}

#[test]
fn a_reply_and_a_credit_wake_the_requester() {
    let [mut a, mut b] = pair(&BLOCKING_SHM);
    a.endpoint.try_request(a.peer, ECHO, [1]).unwrap();
    fall_asleep(&mut a);
    assert_eq!(b.poll(), 1);
    assert!(is_rung(&a.endpoint), "a reply");

    let memory = b.memory(Origin::Allocated, 64);
    let remote = while_polled(&mut b, || a.attach(&memory));
    fall_asleep(&mut b);
    a.endpoint.store(&mut a.seen, remote.at(0), &[1; 64], QUIET, []).unwrap();
    assert!(is_rung(&b.endpoint), "a store");
    fall_asleep(&mut a);
    assert_eq!(b.poll(), 1);
    assert!(!is_rung(&a.endpoint), "no reply and no credit yet");
    // A side that goes to sleep owes nothing.
    fall_asleep(&mut b);
    assert!(is_rung(&a.endpoint), "a credit");
}

/// Both sides sleep while transfers through the bounce buffers wait for each other.
#[test]
fn transfers_wake_both_sides() {
    for origin in [Origin::Allocated, Origin::Registered] {
        let [mut a, mut b] = pair(&BLOCKING_SHM);
        let (theirs, ours) = (b.memory(origin, 5 << 20), a.memory(origin, 5 << 20));
        while_polled(&mut b, || {
            let remote = a.attach(&theirs);
            let bytes = vec![3; 5 << 20];
            a.endpoint.store(&mut a.seen, remote.at(0), &bytes, ANSWERED, [4]).unwrap();
            a.endpoint.get(&mut a.seen, remote.at(0), ours.range(0, 5 << 20), FETCHED, []).unwrap();
            until("both are done", || {
                if a.poll() == 0 {
                    a.endpoint.idle(TIMEOUT);
                }
                a.seen.fetched.len() == 1 && a.seen.replies == [4]
            });
        });
        assert!(!a.seen.fetched[0].bytes.contains(&BLANK));
    }
}

#[test]
fn a_side_that_is_awake_is_not_rung() {
    let [mut a, mut b] = pair(&BLOCKING_SHM);
    a.endpoint.try_request(a.peer, ECHO, [1]).unwrap();
    b.endpoint.idle(TIMEOUT);
    a.endpoint.try_request(a.peer, ECHO, [2]).unwrap();
    assert!(!is_rung(&b.endpoint));
}

/// A sleep ends after a while, so that the end of a peer is noticed, and a peer that does not ring costs
/// only time.
#[test]
fn a_sleep_is_bounded() {
    let [mut a, mut b] = [(); 2].map(|()| Endpoint::new(handlers(), config(&BLOCKING_SHM)).unwrap());
    let (port_a, port_b) = (a.open_port(Wire::Shm).unwrap(), b.open_port(Wire::Shm).unwrap());
    let PortAddress { pid, fd, nonce, .. } = PortAddress::parse(&port_b.address()).unwrap();
    let inbox = open_segment(pid, fd, nonce, len_of(pid, fd)).unwrap();
    let (address_a, address_b) = (port_a.address(), port_b.address());
    let to_b = a.connect(port_a, &address_b).unwrap();
    b.connect(port_b, &address_a).unwrap();
    until("there is nothing to poll for", || {
        b.poll(&mut Default::default()).unwrap();
        !b.until_due().is_zero()
    });
    // The peer takes the announcement away.
    inbox.word(ASLEEP).store(0, Ordering::Relaxed);
    a.try_request(to_b, ECHO, [1]).unwrap();
    assert!(!is_rung(&b));
    let started = Instant::now();
    assert!(b.until_due() < TIMEOUT);
    b.idle(TIMEOUT);
    assert_eq!(b.poll(&mut Default::default()), Ok(1));
    assert!(started.elapsed() < TIMEOUT);

    std::mem::forget(a);
    let started = Instant::now();
    b.idle(TIMEOUT);
    assert!(started.elapsed() < TIMEOUT, "a silent peer");
}

fn len_of(pid: u32, fd: u32) -> usize {
    std::fs::metadata(format!("/proc/{pid}/fd/{fd}")).unwrap().len() as usize
}

/// A sleeper with peers over both wires is woken by either.
#[test]
fn either_wire_wakes_a_sleeper() {
    let mut b = Endpoint::new(handlers(), config(&BLOCKING_SHM)).unwrap();
    let mut others = [Wire::Shm, Wire::Udp].map(|wire| {
        let mut other = Endpoint::new(handlers(), config(&SHM)).unwrap();
        let (to_b, _) = connect(wire, &mut other, &mut b);
        (other, to_b)
    });
    let (mut at_b, mut at_other) = Default::default();
    for (other, to_b) in &mut others {
        until("there is nothing to poll for", || {
            b.poll(&mut at_b).unwrap() == 0 && !b.until_due().is_zero() && !is_rung(&b)
        });
        other.request(&mut at_other, *to_b, ECHO, [1]).unwrap();
        until("a message wakes the sleeper", || is_rung(&b));
        until("the message is handled", || {
            b.idle(TIMEOUT);
            b.poll(&mut at_b).unwrap() > 0
        });
    }
}

/// An endpoint that never sleeps names no wake-up, so that its peers need not check whether it sleeps.
#[test]
fn only_an_endpoint_that_may_sleep_has_a_wakeup() {
    for wait in [Wait::Spin, Wait::Yield, Wait::Block] {
        let mut endpoint = Endpoint::new(handlers(), config(&SHM).wait(wait)).unwrap();
        let port = endpoint.open_port(Wire::Shm).unwrap();
        let PortAddress { pid, fd, nonce, .. } = PortAddress::parse(&port.address()).unwrap();
        let inbox = open_segment(pid, fd, nonce, len_of(pid, fd)).unwrap();
        let is_named = inbox.word(WAKEUP).load(Ordering::Relaxed) != 0;
        assert_eq!(is_named, wait == Wait::Block);
    }
}

/// A process could name any file of its own as its wake-up. Only a pipe is ever written to.
#[test]
fn a_wakeup_that_is_no_pipe_is_refused() {
    for name in [1 + u64::from(u32::MAX), u64::MAX, 1 << 20] {
        let [mut a, mut b] = [(); 2].map(|()| Endpoint::new(handlers(), config(&BLOCKING_SHM)).unwrap());
        let (port_a, port_b) = (a.open_port(Wire::Shm).unwrap(), b.open_port(Wire::Shm).unwrap());
        let PortAddress { pid, fd, nonce, .. } = PortAddress::parse(&port_b.address()).unwrap();
        let inbox = open_segment(pid, fd, nonce, len_of(pid, fd)).unwrap();
        let address = port_b.address();
        for name in [name, u64::from(fd) + 1] {
            inbox.word(WAKEUP).store(name, Ordering::Relaxed);
            let port = a.open_port(Wire::Shm).unwrap();
            let refused = a.connect(port, &address).unwrap_err();
            assert!(matches!(refused, ConnectError::Wakeup(_)), "{refused}");
        }
        drop(port_a);
    }
}

/// A peer that closes ends the sleep, and its end is reported at once.
#[test]
fn a_closed_peer_is_reported_at_once() {
    let [a, mut b] = pair(&BLOCKING_SHM);
    fall_asleep(&mut b);
    drop(a);
    assert!(is_rung(&b.endpoint));
    b.endpoint.idle(TIMEOUT);
    let lost = b.endpoint.poll(&mut b.seen).unwrap_err();
    assert_eq!(lost.loss, Loss::Closed);
}
