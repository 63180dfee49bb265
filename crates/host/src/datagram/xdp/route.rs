//! The headers of datagrams to each peer, once the hardware address towards it is known.

use super::neighbours::Neighbours;
use netdyno_protocol::frame::ethernet::{HEADERS_LEN, Headers, LinkEnd};
use std::collections::HashMap;
use std::net::{SocketAddr, SocketAddrV4};

/// How long a hardware address is believed, and how long none is looked for again after the first looks.
const BELIEVED_NS: u64 = 1_000_000_000;
/// Time between the first looks for a hardware address.
const FIRST_NS: u64 = 1_000_000;
/// Looks at that pace.
const FIRST_LOOKS: u32 = 100;
/// The length of a datagram's IP header and UDP header.
const IP_AND_UDP_LEN: usize = 28;

/// The way to one peer.
#[derive(Debug)]
struct Route {
    headers: Option<Headers>,
    looks: u32,
    /// When the kernel is asked again.
    due_ns: u64,
}

/// The ways to all peers, from one interface.
#[derive(Debug)]
pub struct Routes {
    here: LinkEnd,
    interface: String,
    neighbours: Neighbours,
    longest: usize,
    routes: HashMap<SocketAddrV4, Route>,
    /// The peer of the last datagram, whose headers are most likely needed again.
    last: Option<(SocketAddrV4, Headers, u64)>,
    /// Peers without headers.
    unknown: usize,
}

impl Routes {
    /// Returns the ways from an interface that carries packets up to `mtu` bytes.
    pub fn new(here: LinkEnd, interface: String, mtu: usize, neighbours: Neighbours) -> Self {
        let longest = mtu.saturating_sub(IP_AND_UDP_LEN);
        Self { here, interface, neighbours, longest, routes: HashMap::new(), last: None, unknown: 0 }
    }

    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// Reports whether all peers so far are reached by the interface.
    #[inline]
    pub fn are_known(&self) -> bool {
        self.unknown == 0 && !self.routes.is_empty()
    }

    /// Returns the headers of a datagram to a peer. `None` if the interface does not reach the peer, if that is not
    /// known yet, or if the datagram is longer than the interface carries.
    #[inline]
    pub fn headers(&mut self, to: SocketAddr, len: usize, now_ns: u64) -> Option<[u8; HEADERS_LEN]> {
        let SocketAddr::V4(to) = to else { return None };
        if len > self.longest {
            return None;
        }
        if let Some((last, headers, due_ns)) = &self.last
            && *last == to
            && now_ns < *due_ns
        {
            return headers.of(len);
        }
        self.look_up(to, now_ns)?.of(len)
    }

    #[cold]
    fn look_up(&mut self, to: SocketAddrV4, now_ns: u64) -> Option<Headers> {
        let Self { here, interface, neighbours, routes, .. } = self;
        let route = routes.entry(to).or_insert(Route { headers: None, looks: 0, due_ns: 0 });
        if now_ns >= route.due_ns {
            let hardware = neighbours.hardware_towards(*to.ip(), interface);
            route.headers = hardware.map(|hardware| Headers::new(*here, LinkEnd { hardware, socket: to }));
            route.looks = if hardware.is_some() { 0 } else { route.looks.saturating_add(1) };
            let is_first = (1..FIRST_LOOKS).contains(&route.looks);
            route.due_ns = now_ns.saturating_add(if is_first { FIRST_NS } else { BELIEVED_NS });
        }
        let (headers, due_ns) = (route.headers, route.due_ns);
        self.last = headers.map(|headers| (to, headers, due_ns));
        self.unknown = self.routes.values().filter(|route| route.headers.is_none()).count();
        headers
    }
}
