//! Tests of Virtual Interfaces over UDP alone: addresses, unknown peers, and peers that start again.

use super::end::{End, connect, drive, pair, spell, spelled, wait_for};
use crate::common::process::{Child, Parent, argument, from_hex, role, to_hex};
use crate::common::transport::UDP;
use crate::common::{Deadline, TIMEOUT, seed};
use fastrand::Rng;
use netdyno_host::interface;
use netdyno_protocol::frame::vi_fragment;
use netdyno_protocol::frame::vi_message::{Head, Kind};
use netdyno_protocol::frame::vi_signal::Signal;
use netdyno_stack::vi::*;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn bound_to(bind: Option<SocketAddr>) -> WireKind {
    WireKind::Udp(UdpOptions::new().bind(bind))
}

/// Returns a host name of an IP address, with the port of another host name.
fn named(ip: IpAddr, host: &[u8]) -> Vec<u8> {
    let port = &host[host.len() - 2..];
    match ip {
        IpAddr::V4(ip) => [&ip.octets()[..], port].concat(),
        IpAddr::V6(ip) => [&ip.octets()[..], port].concat(),
    }
}

/// The server has the request, and closes without an answer.
#[test]
fn a_request_is_rejected_by_a_provider_that_closes() {
    for is_seen in [false, true] {
        let mut ends = [(); 2].map(|()| End::open(&UDP));
        let vi = ends[0].vi(Level::Delivery);
        let wait = ends[1].wait("server", TIMEOUT);
        let to = ends[1].address("server");
        ends[0].ask(vi, "client", to, false, TIMEOUT);
        drive(&mut ends, "a request", |ends| {
            if is_seen { matches!(ends[1].provider.waited(wait), Ok(Some(_))) } else { ends[1].progress() }
        });
        let [mut client, server] = ends;
        drop(server);
        let (asked, deadline) = (Instant::now(), Deadline::after(TIMEOUT));
        let answer = loop {
            if let Some(answer) = client.provider.answer(vi).transpose() {
                break answer;
            }
            deadline.check("an answer");
            client.sleep(Duration::from_millis(100));
        };
        assert!(matches!(answer, Err(ConnectError::Rejected)), "{answer:?} after {:?}", asked.elapsed());
    }
}

#[test]
fn a_provider_is_reached_by_every_address_of_its_host() {
    let loopbacks = ["127.0.0.1", "127.0.1.1"].map(|ip| ip.parse().unwrap());
    let addresses = interface::addresses().unwrap();
    for ip in loopbacks.into_iter().chain(addresses.into_iter().filter(IpAddr::is_ipv4)) {
        for level in Level::ALL {
            let mut ends = [(); 2].map(|()| End::open_on(bound_to(None)));
            let vis = ends.each_mut().map(|end| end.vi(level));
            let wait = ends[1].wait("server", TIMEOUT);
            let to = Address { host: named(ip, &ends[1].provider.host()), ..ends[1].address("server") };
            ends[0].ask(vis[0], "client", to, false, TIMEOUT);
            let mut answer = None;
            drive(&mut ends, "an answer", |ends| {
                if let Ok(Some(conn)) = ends[1].provider.waited(wait) {
                    ends[1].provider.accept(conn, vis[1]).unwrap();
                }
                answer = ends[0].provider.answer(vis[0]).transpose();
                answer.is_some()
            });
            answer.unwrap().unwrap();
            for (from, to) in [(0, 1), (1, 0)] {
                let received = ends[to].receive_into(vis[to], 0, 10);
                ends[from].send_from(vis[from], 0, 10);
                drive(&mut ends, "a message", |ends| {
                    if ends[from].done(vis[from], Side::Send).is_some() && !level.is_reliable() {
                        ends[from].send_from(vis[from], 0, 10);
                    }
                    ends[to].completion(received).status.has(Status::DONE)
                });
            }
            // The peer is also told of the end, whichever side disconnects.
            ends[1].provider.disconnect(vis[1]).unwrap();
            drive(&mut ends, "the end", |ends| ends[0].state(vis[0]) == State::Error);
        }
    }
}

#[test]
fn a_host_says_where_it_is_reached() {
    let taken = End::open_on(bound_to(None));
    let other = End::open_on(bound_to(None));
    for end in [&taken, &other] {
        assert_eq!(end.provider.attributes().host_bytes, 6);
        assert_ne!(end.provider.host()[..4], [0; 4]);
    }
    // A port belongs to one provider.
    assert_ne!(taken.provider.host(), other.provider.host());
    let six = End::open_on(bound_to(Some("[::]:0".parse().unwrap())));
    assert_eq!(six.provider.attributes().host_bytes, 18);
    let port = port_of(&six.provider.host());
    let wire = bound_to(Some(SocketAddr::new("::1".parse().unwrap(), port)));
    let error = Provider::open(Config::new(wire)).err().unwrap().to_string();
    assert!(error.contains("choose another port"), "{error}");
}

fn shared(bind: Option<SocketAddr>) -> WireKind {
    WireKind::Udp(UdpOptions::new().bind(bind).shared())
}

/// Connects two ends as peers and sends a message each way.
fn exchange(ends: &mut [End; 2], level: Level) {
    let vis = ends.each_mut().map(|end| end.vi(level));
    connect(ends, vis);
    for (from, to) in [(0, 1), (1, 0)] {
        ends[from].write(0, b"some bytes");
        let received = ends[to].receive_into(vis[to], 100, 10);
        ends[from].send_from(vis[from], 0, 10);
        drive(ends, "a message", |ends| ends[to].completion(received).status.has(Status::DONE));
        assert_eq!(ends[to].read(100, 10), b"some bytes");
    }
    for (end, vi) in ends.iter_mut().zip(vis) {
        end.provider.disconnect(vi).unwrap();
    }
}

/// Connects two ends that share an address as peers. Both use the same discriminator.
fn meet_by_one_name(ends: &mut [End; 2]) {
    let vis = ends.each_mut().map(|end| end.vi(Level::Delivery));
    let to = Address { host: ends[0].provider.host(), discriminator: b"both".to_vec() };
    for (end, vi) in ends.iter_mut().zip(vis) {
        end.provider.ask(vi, b"both", to.clone(), true, Some(TIMEOUT)).unwrap();
    }
    drive(ends, "two peers", |ends| (0..2).all(|at| ends[at].state(vis[at]) == State::Connected));
}

/// Neither of the two ends has the socket of their common address. They connect while the provider that
/// has it is open, and after it has closed.
#[test]
fn providers_at_one_address_are_told_apart_by_discriminators() {
    let mut holder = End::open_on(shared(Some("127.0.0.1:0".parse().unwrap())));
    let address = holder.provider.shared_address();
    let mut guests = [(); 2].map(|()| End::open_on(shared(address)));
    let host = holder.provider.host();
    assert!(guests.iter().all(|guest| guest.provider.host() == host));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                holder.sleep(Duration::from_millis(1));
            }
        });
        for level in Level::ALL {
            exchange(&mut guests, level);
        }
        meet_by_one_name(&mut guests);
        is_over.store(true, Ordering::Relaxed);
    });
    drop(holder);
    exchange(&mut guests, Level::Delivery);
}

/// The queue of a holder that does not poll takes some hundred registrations.
#[test]
fn a_guest_registers_more_places_than_the_holders_queue_takes() {
    let holder = End::open_on(shared(Some("127.0.0.1:0".parse().unwrap())));
    let address = holder.provider.shared_address().unwrap();
    let mut ends = [holder, End::open_on(shared(Some(address)))];
    let waits: Vec<_> = (0..1000).map(|nth| ends[1].wait(&format!("server {nth}"), TIMEOUT)).collect();
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    let offer = ends[0].provider.attributes().offer(&ends[0].attributes(Level::Delivery));
    let to = ends[1].address("server 999");
    let request = Request { number: 0, is_of_peer: false, from: Address::default(), to, offer };
    // The holder refuses it until it has been told of the place; another number is another request.
    let mut nth = 0;
    drive(&mut ends, "the last place", |ends| {
        nth += 1;
        let request = Request { number: nth, ..request.clone() };
        client.send_to(&Signal::Request(request).encode(), address).unwrap();
        ends[1].provider.waited(waits[999]).unwrap().is_some()
    });
}

/// A copy of a request may arrive late, after the request was refused and given up.
#[test]
fn a_request_that_was_refused_is_for_no_provider_that_has_come_since() {
    let holder = End::open_on(shared(Some("127.0.0.1:0".parse().unwrap())));
    let address = holder.provider.shared_address().unwrap();
    let mut ends = [holder, End::open_on(shared(Some(address)))];
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.set_nonblocking(true).unwrap();
    let offer = ends[0].provider.attributes().offer(&ends[0].attributes(Level::Delivery));
    let to = ends[1].address("server");
    let request = |number| {
        let (from, to) = (Address::default(), to.clone());
        let request = Request { number, is_of_peer: false, from, to, offer };
        client.send_to(&Signal::Request(request).encode(), address).unwrap();
    };
    let refused = |ends: &mut [End; 2]| {
        let mut room = [0; 1500];
        drive(ends, "a refusal", |_| client.recv(&mut room).is_ok());
    };
    request(1);
    refused(&mut ends);
    let wait = ends[1].wait("server", TIMEOUT);
    request(1);
    refused(&mut ends);
    assert_eq!(ends[1].provider.waited(wait), Ok(None));
    request(2);
    drive(&mut ends, "a request", |ends| ends[1].provider.waited(wait).unwrap().is_some());
}

fn impatient(bind: Option<SocketAddr>, peer_timeout: Duration) -> WireKind {
    WireKind::Udp(UdpOptions::new().bind(bind).peer_timeout(peer_timeout))
}

/// Returns the port in a host name.
fn port_of(host: &[u8]) -> u16 {
    u16::from_be_bytes([host[host.len() - 2], host[host.len() - 1]])
}

#[test]
fn child_process() {
    let Some((role, parent)) = role() else { return };
    match role[0].as_str() {
        "waits" => wait_for_parent(&parent, argument(&role, 1)),
        _ => ask_parent(&role, &parent),
    }
}

/// Waits at all addresses of the host, connects, and sends nothing more.
fn wait_for_parent(parent: &Parent, level: usize) {
    let mut end = End::open_on(bound_to(Some("0.0.0.0:0".parse().unwrap())));
    let vi = end.vi(Level::ALL[level]);
    let wait = end.wait("child", TIMEOUT);
    parent.say(&spell(&end.address("child")));
    let mut conn = None;
    let deadline = Deadline::after(TIMEOUT);
    while conn.is_none() {
        deadline.check("a request");
        end.sleep(Duration::from_millis(10));
        conn = end.provider.waited(wait).unwrap();
    }
    conn.into_iter().for_each(|conn| end.provider.accept(conn, vi).unwrap());
    while !parent.is_gone() {
        end.sleep(Duration::from_millis(10));
    }
}

fn ask_parent(role: &[String], parent: &Parent) {
    let mut end = End::open(&UDP);
    let vi = end.vi(Level::Reception);
    let to = spelled(&role[1]);
    end.ask(vi, "child", to, false, TIMEOUT);
    let deadline = Deadline::after(TIMEOUT);
    while end.provider.answer(vi).unwrap().is_none() {
        deadline.check("an answer");
        end.sleep(Duration::from_millis(10));
    }
    parent.say(&to_hex(&end.provider.host()));
    while !parent.is_gone() {
        end.sleep(Duration::from_millis(10));
    }
}

/// Starts a child that waits, and connects a VI to it by an address of its host. Also returns the child's
/// port.
fn with_child(wire: WireKind, level: usize, ip: &str) -> (Child, End, ViHandle, u16) {
    let child = Child::start(module_path!(), &format!("waits {level}"));
    let address = spelled(&child.hear());
    let to = Address { host: named(ip.parse().unwrap(), &address.host), ..address };
    let port = port_of(&to.host);
    let mut end = End::open_on(wire);
    let vi = end.vi(Level::ALL[level]);
    end.ask(vi, "parent", to, false, TIMEOUT);
    let deadline = Deadline::after(TIMEOUT);
    while end.provider.answer(vi).unwrap().is_none() {
        deadline.check("an answer");
        end.sleep(Duration::from_millis(10));
    }
    (child, end, vi, port)
}

/// A new provider at the address of one that has ended reports that it does not know the connection. So
/// the peer does not wait for an answer that never comes.
#[test]
fn a_peer_that_began_again_is_known_by_what_it_says() {
    let mut end = End::open(&UDP);
    let vi = end.vi(Level::Reception);
    let wait = end.wait("parent", TIMEOUT);
    let mut child = Child::start(module_path!(), &format!("asks {}", spell(&end.address("parent"))));
    let deadline = Deadline::after(TIMEOUT);
    let conn = loop {
        deadline.check("a request");
        if let Some(conn) = end.provider.waited(wait).unwrap() {
            break conn;
        }
        end.sleep(Duration::from_millis(10));
    };
    end.provider.accept(conn, vi).unwrap();
    let host = from_hex(&child.hear());
    child.kill();
    let port = port_of(&host);
    let again = End::open_on(bound_to(Some(SocketAddr::from(([127, 0, 0, 1], port)))));
    let sent = end.send_from(vi, 0, 10);
    let mut ends = [end, again];
    drive(&mut ends, "the end of a connection", |ends| !ends[0].failures.is_empty());
    assert_eq!(ends[0].failures[0].error, AsyncError::ConnLost);
    // The failure comes from that report, not from the timeout, so the send is flushed.
    assert!(ends[0].completion(sent).status.has(Status::FLUSHED));
}

/// The same, where the new provider answers from another address than was asked. It is identified by its
/// number.
#[test]
fn a_peer_that_began_again_is_known_by_its_number() {
    for level in [0, 2] {
        let (mut child, mut end, vi, port) = with_child(UDP.vi_wire(), level, "127.0.1.1");
        child.kill();
        let everywhere = bound_to(Some(SocketAddr::from(([0, 0, 0, 0], port))));
        let again = End::open_on(everywhere);
        let sent = end.send_from(vi, 0, 10);
        let mut ends = [end, again];
        drive(&mut ends, "the end of a connection", |ends| !ends[0].failures.is_empty());
        assert_eq!(ends[0].failures[0].error, AsyncError::ConnLost);
        assert!(level == 0 || ends[0].completion(sent).status.has(Status::FLUSHED));
    }
}

/// The end of a peer is noticed at every level, even if no message is due from the peer.
#[test]
fn a_peer_that_is_killed_while_nobody_speaks_is_lost() {
    const PEER_TIMEOUT: Duration = Duration::from_millis(1500);
    let loopback = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    for level in 0..Level::ALL.len() {
        let (mut child, mut end, vi, _) = with_child(impatient(loopback, PEER_TIMEOUT), level, "127.0.0.1");
        let receive = end.receive_into(vi, 0, 10);
        child.kill();
        let killed = Instant::now();
        let deadline = Deadline::after(PEER_TIMEOUT + Duration::from_secs(5));
        while end.failures.is_empty() {
            deadline.check("the end of a killed peer");
            end.sleep(Duration::from_secs(1));
        }
        // The peer is not lost before its timeout, because it might have been slow.
        assert!(killed.elapsed() > PEER_TIMEOUT / 2);
        assert_eq!(end.failures[0].error, AsyncError::ConnLost);
        assert_eq!(end.state(vi), State::Error);
        assert!(end.completion(receive).status.has(Status::FLUSHED));
    }
}

/// Peers that have nothing to send stay connected.
#[test]
fn peers_that_are_silent_are_not_lost() {
    const PEER_TIMEOUT: Duration = Duration::from_millis(300);
    let loopback = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let mut ends = [(); 2].map(|()| End::open_on(impatient(loopback, PEER_TIMEOUT)));
    let vis = Level::ALL.map(|level| {
        let vis = ends.each_mut().map(|end| end.vi(level));
        connect(&mut ends, vis);
        vis
    });
    let until = Instant::now() + 4 * PEER_TIMEOUT;
    while Instant::now() < until {
        ends.iter_mut().for_each(|end| end.sleep(Duration::from_millis(2)));
    }
    for (end, at) in ends.iter_mut().zip(0..) {
        assert!(end.failures.is_empty(), "{:?}", end.failures);
        assert!(vis.iter().all(|vis| end.state(vis[at]) == State::Connected));
    }
}

/// A provider that is being closed refuses requests, so that no requester waits in vain.
#[test]
fn a_provider_that_is_closed_answers_who_asks() {
    let (ends, [ours, _]) = pair(&UDP, Level::Reception);
    let [mut closing, silent] = ends;
    // The silent peer does not acknowledge this message, so closing takes a while.
    closing.send_from(ours, 0, 10);
    let mut asking = End::open(&UDP);
    let vi = asking.vi(Level::Reception);
    asking.ask(vi, "client", closing.address("server"), false, TIMEOUT / 6);
    let closed = std::thread::spawn(move || drop(closing));
    let deadline = Deadline::after(TIMEOUT);
    let answer = loop {
        deadline.check("an answer");
        match asking.provider.answer(vi) {
            Ok(None) => asking.sleep(Duration::from_millis(1)),
            answer => break answer,
        }
    };
    assert_eq!(answer, Err(ConnectError::NoMatch));
    closed.join().unwrap();
    drop(silent);
}

/// Returns a random datagram of a stranger, valid or not.
fn forged(rng: &mut Rng, request: &Request) -> Vec<u8> {
    let number = rng.u64(..);
    match rng.u32(..6) {
        0 => (0..rng.usize(..1500)).map(|_| rng.u8(..)).collect(),
        1 => Signal::Request(Request { number, ..request.clone() }).encode(),
        2 => Signal::Disconnect { to: 0, number }.encode(),
        3 => Signal::Accept { to: rng.u64(..), number, offer: request.offer }.encode(),
        4 => {
            let mut bytes = Signal::Request(request.clone()).encode();
            let at = rng.usize(..bytes.len());
            bytes[at] ^= 1 << rng.u32(..8);
            bytes.truncate(rng.usize(..=bytes.len()));
            bytes
        }
        _ => {
            let mut bytes = Vec::new();
            let head = Head { number: rng.u32(..), len: 20, kind: Kind::Send { immediate: None } };
            vi_fragment::write(number, &head, 0, &mut bytes);
            bytes.extend([7; 20]);
            vi_fragment::seal(&mut bytes);
            bytes
        }
    }
}

#[test]
fn strangers_disturb_nobody() {
    let seed = seed();
    let (mut ends, [ours, theirs]) = pair(&UDP, Level::Reception);
    let victims = ends.each_ref().map(|end| {
        let host = end.provider.host();
        SocketAddr::from(([127, 0, 0, 1], port_of(&host)))
    });
    // One end waits, so that a request of the stranger may arrive.
    let wait = ends[1].wait("server", TIMEOUT);
    let offer = ends[0].provider.attributes().offer(&ends[0].attributes(Level::Delivery));
    let [from, to] = [ends[0].address("stranger"), ends[1].address("server")];
    let request = Request { number: 1, is_of_peer: false, from, to, offer };
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_nonblocking(true).unwrap();
            let mut rng = Rng::with_seed(seed);
            while !is_over.load(Ordering::Relaxed) {
                for _ in 0..50 {
                    let _ = socket.send_to(&forged(&mut rng, &request), victims[rng.usize(..2)]);
                }
                std::thread::sleep(Duration::from_micros(200));
            }
        });
        for nth in 0..2000 {
            ends[0].write(0, &[nth as u8; 10]);
            ends[1].receive_into(theirs, 100, 10);
            ends[0].send_from(ours, 0, 10);
            let sent = wait_for(&mut ends, 0, ours, Side::Send).completion;
            let received = wait_for(&mut ends, 1, theirs, Side::Receive).completion;
            assert!(!sent.status.is_error() && !received.status.is_error());
            assert_eq!(ends[1].read(100, 10), [nth as u8; 10]);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(ends.iter().all(|end| end.failures.is_empty()));
    // A request of the stranger arrived, as that of any peer may.
    assert!(ends[1].provider.waited(wait).unwrap().is_some());
}
