//! A link that all peers of one endpoint share, with a queue that drops what does not fit.
//!
//! The caller turns it. So neither a clock nor the scheduler of the system decides which datagrams are dropped.

use netdyno_protocol::frame::datagram::{self, Arrived, MOST_GRANTED};
use netdyno_protocol::frame::udp_port::UdpPortAddress;
use netdyno_stack::am::{Endpoint, PeerId, Wire};
use std::collections::VecDeque;
use std::net::{SocketAddr, UdpSocket};

/// The datagrams that the queue holds, as many as the simulated switch has.
const ROOM: usize = 64;
const LONGEST: usize = 2048;

/// A peer's way to the endpoint and back.
struct Way {
    /// The peer sends to the first as if it were the endpoint, and the endpoint to the second.
    sockets: [UdpSocket; 2],
    peer: SocketAddr,
    endpoint: SocketAddr,
}

pub struct Bottleneck {
    ways: Vec<Way>,
    queue: VecDeque<(usize, Vec<u8>)>,
    /// Whether the grants of the endpoint reach its peers.
    has_grants: bool,
}

impl Bottleneck {
    pub const fn new(has_grants: bool) -> Self {
        Self { ways: Vec::new(), queue: VecDeque::new(), has_grants }
    }

    /// Connects the next peer with the endpoint over the link. Returns its ID of the endpoint.
    pub fn connect<S>(&mut self, peer: &mut Endpoint<S>, endpoint: &mut Endpoint<S>) -> PeerId {
        let (port, end_port) = (peer.open_port(Wire::Udp).unwrap(), endpoint.open_port(Wire::Udp).unwrap());
        let [at_peer, at_end] =
            [&port, &end_port].map(|port| UdpPortAddress::parse(&port.address()).unwrap());
        let sockets = [(); 2].map(|()| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_nonblocking(true).unwrap();
            socket
        });
        let [to_end, to_peer] = [(at_end, 0), (at_peer, 1)].map(|(address, side)| {
            UdpPortAddress { socket: sockets[side].local_addr().unwrap(), ..address }.encode()
        });
        let id = peer.connect(port, &to_end).unwrap();
        endpoint.connect(end_port, &to_peer).unwrap();
        self.ways.push(Way { sockets, peer: at_peer.socket, endpoint: at_end.socket });
        id
    }

    /// Queues what a peer has sent, and drops what does not fit.
    pub fn take(&mut self, peer: usize) {
        let mut room = [0; LONGEST];
        while let Ok(len) = self.ways[peer].sockets[0].recv(&mut room) {
            if self.queue.len() < ROOM {
                self.queue.push_back((peer, room[..len].to_vec()));
            }
        }
    }

    /// Passes the oldest datagram of the queue on to the endpoint. Returns its sender.
    pub fn pass(&mut self) -> Option<usize> {
        let (peer, bytes) = self.queue.pop_front()?;
        let Way { sockets, endpoint, .. } = &self.ways[peer];
        sockets[1].send_to(&bytes, endpoint).unwrap();
        Some(peer)
    }

    /// Passes on to a peer what the endpoint has sent to it.
    pub fn answer(&mut self, peer: usize) {
        let mut room = [0; LONGEST];
        let Way { sockets, peer, .. } = &self.ways[peer];
        while let Ok(len) = sockets[1].recv(&mut room) {
            let bytes = &mut room[..len];
            if !self.has_grants {
                grant_all(bytes);
            }
            sockets[0].send_to(bytes, peer).unwrap();
        }
    }
}

/// Turns the grant of a datagram into the largest.
fn grant_all(bytes: &mut [u8]) {
    let header = datagram::parse(bytes).unwrap().header;
    let arrived = Arrived { granted: MOST_GRANTED, ..header.arrived };
    datagram::stamp(bytes, header.sequence, header.transmission, arrived);
}
