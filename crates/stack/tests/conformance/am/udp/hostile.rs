//! A third process that sends random, replayed, truncated and forged datagrams at full speed, from an
//! address of its own.

use super::relay::attack;
use crate::common::asking::{ASK, Counted as Seen, counting};
use crate::common::process::{Child, argument, from_hex, role, to_hex};
use crate::common::{Deadline, Idler, TIMEOUT, connect, seed};
use fastrand::Rng;
use netdyno_protocol::frame::datagram::{self, Arrived, Header, Kind};
use netdyno_protocol::frame::udp_port::UdpPortAddress;
use netdyno_stack::am::{Config, Endpoint, PeerId, Port, Wait, Wire};
use std::net::{SocketAddr, UdpSocket};

const REQUESTS: u64 = 20_000;

fn endpoint() -> Endpoint<Seen> {
    let config = Config::new().peer_timeout(TIMEOUT).wait(Wait::Yield);
    Endpoint::new(counting(), config).unwrap()
}

/// Returns a valid message for a connection, with its number, as if an attacker had overheard it.
fn overheard(address: &UdpPortAddress) -> Vec<u8> {
    let header = Header {
        kind: Kind::Request,
        handler: ASK,
        connection: address.connection,
        sequence: 0,
        transmission: 1,
        arrived: Arrived::default(),
        completed: 0,
        departed: None,
    };
    let mut bytes = Vec::new();
    datagram::write(&header, &[0xbad], &[], &mut bytes);
    datagram::stamp(&mut bytes, 0, 1, Arrived::default());
    bytes
}

#[test]
fn child_process() {
    let Some((role, parent)) = role() else { return };
    let mut rng = Rng::with_seed(argument(&role, 1));
    let victims: Vec<SocketAddr> = role[2..].iter().map(|address| address.parse().unwrap()).collect();
    let known: Vec<Vec<u8>> = victims.iter().map(|_| from_hex(&parent.hear())).collect();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    parent.say("attacks");
    while !parent.is_gone() {
        for (victim, known) in victims.iter().zip(&known) {
            // The send fails if the victim's buffer is full.
            let _ = socket.send_to(&attack(std::slice::from_ref(known), &mut rng), victim);
        }
    }
}

/// Starts the third process, which attacks the sockets of these ports.
fn attacker(ports: &[Port]) -> Child {
    let addresses: Vec<UdpPortAddress> =
        ports.iter().map(|port| UdpPortAddress::parse(&port.address()).unwrap()).collect();
    let sockets: Vec<String> = addresses.iter().map(|address| address.socket.to_string()).collect();
    let mut child = Child::start(module_path!(), &format!("attacks {} {}", seed(), sockets.join(" ")));
    for address in &addresses {
        child.tell(&to_hex(&overheard(address)));
    }
    assert_eq!(child.hear(), "attacks");
    child
}

/// Sends requests until all are answered, and polls every endpoint.
fn exchange(asker: &mut Endpoint<Seen>, peer: PeerId, others: &mut [&mut Endpoint<Seen>]) {
    let (mut at_asker, mut asked) = (Seen::default(), 0);
    let mut seen: Vec<Seen> = others.iter().map(|_| Seen::default()).collect();
    let (deadline, mut idler) = (Deadline::after(TIMEOUT), Idler::default());
    while at_asker.replies < REQUESTS {
        deadline.check("traffic under attack");
        if asked < REQUESTS && asker.try_request(peer, ASK, [asked]).is_ok() {
            asked += 1;
        }
        let mut handled = asker.poll(&mut at_asker).unwrap();
        for (other, seen) in others.iter_mut().zip(&mut seen) {
            handled += other.poll(seen).unwrap();
        }
        if handled == 0 {
            idler.idle();
        }
    }
    assert_eq!(seen[0].requests, REQUESTS, "each once");
}

/// With a single peer the socket is connected, so the kernel drops datagrams of unknown peers.
#[test]
fn a_stranger_against_endpoints_of_one_peer() {
    let (mut a, mut b) = (endpoint(), endpoint());
    let (port_a, port_b) = (a.open_port(Wire::Udp).unwrap(), b.open_port(Wire::Udp).unwrap());
    let ports = [port_a, port_b];
    let _attacker = attacker(&ports);
    let [address_a, address_b] = ports.each_ref().map(Port::address);
    let [port_a, port_b] = ports;
    let to_b = a.connect(port_a, &address_b).unwrap();
    b.connect(port_b, &address_a).unwrap();
    exchange(&mut a, to_b, &mut [&mut b]);
}

/// With several peers the endpoint drops and counts these datagrams.
#[test]
fn a_stranger_against_endpoints_of_several_peers() {
    let (mut a, mut b, mut c) = (endpoint(), endpoint(), endpoint());
    connect(Wire::Udp, &mut a, &mut c);
    connect(Wire::Udp, &mut b, &mut c);
    let (port_a, port_b) = (a.open_port(Wire::Udp).unwrap(), b.open_port(Wire::Udp).unwrap());
    let ports = [port_a, port_b];
    let _attacker = attacker(&ports);
    let [address_a, address_b] = ports.each_ref().map(Port::address);
    let [port_a, port_b] = ports;
    let to_b = a.connect(port_a, &address_b).unwrap();
    let to_a = b.connect(port_b, &address_a).unwrap();
    exchange(&mut a, to_b, &mut [&mut b, &mut c]);
    for (endpoint, peer) in [(&a, to_b), (&b, to_a)] {
        let (strays, statistics) = (endpoint.strays(), endpoint.statistics(peer).unwrap());
        println!("{strays:?}, {statistics:?}");
        assert!(strays.foreign > 100);
        assert!(statistics.memory_bytes < 256 << 10, "{statistics:?}");
    }
}
