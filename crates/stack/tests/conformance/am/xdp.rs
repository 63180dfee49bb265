//! AF_XDP at one end, and a UDP socket at the other. The kernel asks for the hardware addresses.

use crate::common::asking::{ASK, Counted, counting};
use crate::common::bulk::{ANSWERED, Seen, Side, bytes, contents, handlers};
use crate::common::{TIMEOUT, cables, until};
use netdyno_stack::am::{Config, Endpoint, Handlers, PeerId, Port, Wire};

/// Returns connected endpoints, the first over AF_XDP, with the identifier of each one's peer.
fn mixed<S: Send + Default>(handlers: fn() -> Handlers<S>) -> Option<[(Endpoint<S>, PeerId); 2]> {
    let wire_of = |address: std::net::Ipv4Addr| if address.octets()[3] == 1 { Wire::Xdp } else { Wire::Udp };
    let opened: [(Endpoint<S>, Port); 2] = cables::between_namespaces(|address| {
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
    let Some(ends) = mixed(handlers) else { return };
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
