//! Calls over a network that loses, repeats and reorders datagrams: the layer's client and server, with a network
//! between them that also keeps count.

use crate::client::measure;
use crate::common::with_server;
use netdyno_host::datagram::{DatagramSocket, DatagramWire, Datagrams, FaultyWire};
use netdyno_layers::catalogue::Layer;
use netdyno_measure::logp::data::Transport;
use netdyno_measure::task::Data;
use netdyno_protocol::faults::Faults;
use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// What the network saw.
#[derive(Default)]
struct Seen {
    /// The times that the client sent each call, by transaction id.
    calls: HashMap<u32, u64>,
    /// The replies that reached the client, by transaction id. Injected duplicates are not among them.
    replies: HashMap<u32, u64>,
}

fn xid_of(message: &[u8]) -> u32 {
    u32::from_be_bytes(*message.first_chunk().unwrap())
}

/// Carries datagrams between the client and the server until `over`, with faults in both directions.
fn carry(
    front: DatagramSocket,
    back: DatagramSocket,
    server: SocketAddr,
    faults: Faults,
    over: &AtomicBool,
) -> Seen {
    let mut seen = Seen::default();
    let (mut front, mut back) = (FaultyWire::new(front, faults, 1), FaultyWire::new(back, faults, 2));
    let (began, mut room, mut client) = (Instant::now(), [0; 1000], None);
    while !over.load(Ordering::Relaxed) {
        let now_ns = began.elapsed().as_nanos() as u64;
        front.on_time(now_ns);
        back.on_time(now_ns);
        let mut is_quiet = true;
        while let Some(Datagrams { len, from, .. }) = front.receive(&mut room) {
            client = Some(from);
            *seen.calls.entry(xid_of(&room[..len])).or_default() += 1;
            back.send(server, &room[..len], now_ns);
            is_quiet = false;
        }
        while let Some(Datagrams { len, .. }) = back.receive(&mut room) {
            *seen.replies.entry(xid_of(&room[..len])).or_default() += 1;
            front.send(client.unwrap(), &room[..len], now_ns);
            is_quiet = false;
        }
        front.flush();
        back.flush();
        if is_quiet {
            thread::sleep(Duration::from_micros(20));
        }
    }
    seen
}

/// Measures over a network with `faults`.
fn measured(faults: &str) -> (Transport, Seen) {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let [front, back] = [(); 2].map(|()| DatagramSocket::bind(any).unwrap());
    let (front_at, back_at) = (front.local(), back.local());
    let over = AtomicBool::new(false);
    with_server(Layer::OncRpcUdp, back_at, |server| {
        thread::scope(|scope| {
            let carrying = scope.spawn(|| carry(front, back, server, faults.parse().unwrap(), &over));
            let data = measure(Layer::OncRpcUdp, front_at);
            over.store(true, Ordering::Relaxed);
            let seen = carrying.join().unwrap();
            let Data::Logp(data) = data.unwrap() else { panic!("no signature") };
            (data.transport.unwrap(), seen)
        })
    })
}

/// Each call that the client sends again has the transaction id of the first time, and is counted.
#[test]
fn lost_calls_and_replies_are_called_again_with_the_same_id() {
    let (transport, seen) = measured("loss=0.01");
    let again: u64 = seen.calls.values().map(|times| times - 1).sum();
    assert!(again > 0 && transport.retransmitted == again, "{again}: {transport:?}");
    assert_eq!(transport.sent, seen.calls.len() as u64, "{transport:?}");
    // A call whose reply was lost is executed twice; one that was lost is not.
    assert!(seen.replies.values().any(|&times| times > 1));
    assert_eq!((transport.malformed, transport.foreign), (0, 0), "{transport:?}");
}

/// Late and repeated replies are those of no call that waits. They do not end the measurement.
#[test]
fn repeated_and_reordered_datagrams_are_no_replies_to_other_calls() {
    let (transport, seen) = measured("dup=0.1,reorder=0.1");
    assert!(transport.duplicates > 0, "{transport:?}");
    assert_eq!((transport.malformed, transport.sent), (0, seen.calls.len() as u64), "{transport:?}");
    // A duplicate of a call makes another reply, so that more duplicates come than the client's calls.
    let more: u64 = seen.replies.values().map(|times| times - 1).sum();
    assert!(more > 0, "{transport:?}");
}
