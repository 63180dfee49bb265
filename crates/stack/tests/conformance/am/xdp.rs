//! AF_XDP at one end, and a UDP socket at the other. The kernel asks for the hardware addresses.

use crate::common::asking::{ASK, Counted, Kept, counting, keeping};
use crate::common::bulk::{ANSWERED, Seen, Side, bytes, contents, handlers};
use crate::common::{TIMEOUT, cables, until};
use netdyno_stack::am::{Config, Endpoint, Handlers, PeerId, Port, Wire};
use std::net::Ipv4Addr;

fn wire_of(address: Ipv4Addr) -> Wire {
    if address.octets()[3] == 1 { Wire::Xdp } else { Wire::Udp }
}

/// Returns connected endpoints, the first over AF_XDP, with the identifier of each one's peer.
fn mixed<S: Send + Default>(handlers: fn() -> Handlers<S>) -> Option<[(Endpoint<S>, PeerId); 2]> {
    mixed_after(|_| {}, handlers)
}

/// Returns connected endpoints, as [`mixed`] does, after `prepare` at each address.
fn mixed_after<S: Send + Default>(
    prepare: impl Fn(Ipv4Addr) + Sync,
    handlers: fn() -> Handlers<S>,
) -> Option<[(Endpoint<S>, PeerId); 2]> {
    let opened: [(Endpoint<S>, Port); 2] = cables::between_namespaces(|address| {
        prepare(address);
        let config = Config::new().bind((address, 0).into()).peer_timeout(TIMEOUT);
        let mut endpoint = Endpoint::new(handlers(), config).unwrap();
        let port = endpoint.open_port(wire_of(address)).unwrap();
        (endpoint, port)
    })?;
    let [(mut a, port_a), (mut b, port_b)] = opened;
    let (address_a, address_b) = (port_a.address(), port_b.address());
    let (to_b, to_a) = (a.connect(port_a, &address_b).unwrap(), b.connect(port_b, &address_a).unwrap());
    Some([(a, to_b), (b, to_a)])
}

#[test]
fn requests_go_both_ways() {
    const REQUESTS: u64 = 20_000;
    let Some([(mut a, to_b), (mut b, to_a)]) = mixed(counting) else { return };
    let mut seen = [Counted::default(), Counted::default()];
    let mut sent = [0; 2];
    until("all are answered", || {
        for (end, (endpoint, peer)) in [(&mut a, to_b), (&mut b, to_a)].into_iter().enumerate() {
            while sent[end] < REQUESTS && endpoint.try_request(peer, ASK, [sent[end]]).is_ok() {
                sent[end] += 1;
            }
            endpoint.poll(&mut seen[end]).unwrap();
        }
        seen.iter().all(|seen| seen.replies == REQUESTS)
    });
    assert_eq!(seen.map(|seen| seen.requests), [REQUESTS; 2]);
    // Nothing was sent again, so nothing was lost.
    assert_eq!(a.strays().malformed + b.strays().malformed, 0);
}

#[test]
fn stores_go_both_ways() {
    if let Some(ends) = mixed(handlers) {
        store_both_ways(ends);
    }
}

/// The cable drops packets that are longer than the other end takes. Only the kernel knows of that, and it cuts them.
#[test]
fn stores_go_over_a_way_with_shorter_packets() {
    let narrow = |address: Ipv4Addr| {
        let commands = match wire_of(address) {
            Wire::Xdp => format!("route replace 10.89.0.0/24 dev end src {address} mtu 1000\n"),
            _ => "link set end mtu 1000\n".to_owned(),
        };
        cables::ip(&commands).unwrap();
    };
    if let Some(ends) = mixed_after(narrow, handlers) {
        store_both_ways(ends);
    }
}

fn store_both_ways(ends: [(Endpoint<Seen>, PeerId); 2]) {
    let [mut a, mut b] = ends.map(|(endpoint, peer)| Side { endpoint, peer, seen: Seen::default() });
    let len = 3_000_001;
    for turn in 0..2_u64 {
        let (from, to) = if turn == 0 { (&mut a, &mut b) } else { (&mut b, &mut a) };
        let memory = to.endpoint.allocate(len).unwrap();
        let sent = bytes(turn, len);
        let remote = crate::common::bulk::while_polled(to, || from.attach(&memory));
        crate::common::bulk::while_polled(to, || {
            from.endpoint.store(&mut from.seen, remote.at(0), &sent, ANSWERED, [turn]).unwrap();
            from.settle("the store is answered");
        });
        assert_eq!(contents(&memory), sent);
    }
}

/// The kernel chooses a queue of the interface by the addresses and ports of a datagram.
#[test]
fn datagrams_of_many_sockets_come_by_several_queues() {
    const SOCKETS: usize = 12;
    const REQUESTS: u64 = 2_000;
    type Opened = Vec<(Endpoint<Kept>, Vec<Port>)>;
    let open = |wire, address: Ipv4Addr, ports: usize| {
        let config = Config::new().bind((address, 0).into()).window(8).peer_timeout(TIMEOUT);
        let mut endpoint = Endpoint::new(keeping(), config).unwrap();
        let ports = (0..ports).map(|_| endpoint.open_port(wire).unwrap()).collect();
        (endpoint, ports)
    };
    let opened: Option<[Opened; 2]> = cables::between_namespaces(|address| match wire_of(address) {
        Wire::Xdp => vec![open(Wire::Xdp, address, SOCKETS)],
        wire => (0..SOCKETS).map(|_| open(wire, address, 1)).collect(),
    });
    let Some([mut hub, mut others]) = opened else { return };
    let (mut hub, ports) = hub.remove(0);
    assert!(ports[0].description().unwrap().contains("4 queues"), "{:?}", ports[0].description());
    let mut peers = Vec::new();
    for (port, (other, theirs)) in ports.into_iter().zip(&mut others) {
        let their_port = theirs.remove(0);
        let (here, there) = (port.address(), their_port.address());
        hub.connect(port, &there).unwrap();
        peers.push(other.connect(their_port, &here).unwrap());
    }
    let mut at_hub = Kept::default();
    let mut seen: Vec<Kept> = (0..SOCKETS).map(|_| Kept::default()).collect();
    let mut sent = [0; SOCKETS];
    until("all are answered", || {
        hub.poll(&mut at_hub).unwrap();
        for (at, (other, _)) in others.iter_mut().enumerate() {
            while sent[at] < REQUESTS && other.try_request(peers[at], ASK, [sent[at]]).is_ok() {
                sent[at] += 1;
            }
            other.poll(&mut seen[at]).unwrap();
        }
        seen.iter().all(|seen| seen.replies.len() as u64 == REQUESTS)
    });
    let all: Vec<u64> = (0..REQUESTS).collect();
    assert!(seen.iter().all(|seen| seen.replies == all));
    assert_eq!(at_hub.requests.len(), SOCKETS * REQUESTS as usize);
}
