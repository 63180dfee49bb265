//! The headers of datagrams to each peer, once the hardware address towards it is known.

use super::neighbours::Neighbours;
use super::path::PathProbe;
use netdyno_protocol::frame::ethernet::{HEADERS_LEN, Headers, LinkEnd};
use std::collections::HashMap;
use std::net::{SocketAddr, SocketAddrV4};

/// How long a hardware address is believed, and how long none is looked for again after the first looks.
const BELIEVED_NS: u64 = 1_000_000_000;
/// After this time the kernel sends a datagram, which makes it find out whether the address is still that of the peer.
const VERIFIED_NS: u64 = 10_000_000_000;
/// Time between the first looks for a hardware address.
const FIRST_NS: u64 = 1_000_000;
/// Looks at that pace.
const FIRST_LOOKS: u32 = 100;
/// The most routes. Strangers may be answered, too, whatever address they claim.
const MOST_ROUTES: usize = 4096;
/// The length of a datagram's IP header and UDP header.
const IP_AND_UDP_LEN: usize = 28;

/// The way to one peer.
#[derive(Debug)]
struct Route {
    way: Option<Way>,
    looks: u32,
    /// When the kernel last sent a datagram there.
    verified_ns: u64,
    /// When the kernel is asked again.
    due_ns: u64,
}

/// What is known of the way to a peer.
#[derive(Clone, Copy, Debug)]
struct Way {
    headers: Headers,
    /// The longest datagram.
    longest: usize,
}

impl Way {
    #[inline]
    fn headers_of(&self, len: usize) -> Option<[u8; HEADERS_LEN]> {
        if len <= self.longest { self.headers.of(len) } else { None }
    }
}

/// The ways to all peers, from one interface.
#[derive(Debug)]
pub struct Routes {
    here: LinkEnd,
    interface: String,
    neighbours: Neighbours,
    paths: PathProbe,
    /// The longest packet of the interface.
    mtu: usize,
    routes: HashMap<SocketAddrV4, Route>,
    /// The peer of the last datagram, whose headers are most likely needed again.
    last: Option<(SocketAddrV4, Way, u64)>,
    /// Peers without headers to which something was sent a short time ago.
    unknown: usize,
}

impl Routes {
    /// Returns the ways from an interface that carries packets up to `mtu` bytes.
    pub fn new(
        here: LinkEnd,
        (interface, mtu): (String, usize),
        neighbours: Neighbours,
        paths: PathProbe,
    ) -> Self {
        Self { here, interface, neighbours, paths, mtu, routes: HashMap::new(), last: None, unknown: 0 }
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
    /// known yet, if the datagram is longer than the way carries, or if the kernel is to verify the way.
    #[inline]
    pub fn headers(&mut self, to: SocketAddr, len: usize, now_ns: u64) -> Option<[u8; HEADERS_LEN]> {
        let SocketAddr::V4(to) = to else { return None };
        if let Some((last, way, due_ns)) = &self.last
            && *last == to
            && now_ns < *due_ns
        {
            return way.headers_of(len);
        }
        self.look_up(to, now_ns)?.headers_of(len)
    }

    #[cold]
    fn look_up(&mut self, to: SocketAddrV4, now_ns: u64) -> Option<Way> {
        let Self { here, interface, neighbours, paths, mtu, routes, .. } = self;
        if !routes.contains_key(&to) && routes.len() >= MOST_ROUTES {
            let oldest = routes.iter().min_by_key(|(_, route)| route.due_ns).map(|(peer, _)| *peer);
            oldest.map(|peer| routes.remove(&peer));
        }
        let new = Route { way: None, looks: 0, verified_ns: now_ns, due_ns: 0 };
        let route = routes.entry(to).or_insert(new);
        let (mut is_to_be_verified, is_news) = (false, now_ns >= route.due_ns);
        if is_news {
            let hardware = neighbours.hardware_towards(*to.ip(), interface);
            route.way = hardware.map(|hardware| {
                let packet = paths.longest_packet(to).map_or(*mtu, |packet| packet.min(*mtu));
                let headers = Headers::new(*here, LinkEnd { hardware, socket: to });
                Way { headers, longest: packet.saturating_sub(IP_AND_UDP_LEN) }
            });
            route.looks = if hardware.is_some() { 0 } else { route.looks.saturating_add(1) };
            let is_first = (1..FIRST_LOOKS).contains(&route.looks);
            route.due_ns = now_ns.saturating_add(if is_first { FIRST_NS } else { BELIEVED_NS });
            is_to_be_verified = now_ns.saturating_sub(route.verified_ns) >= VERIFIED_NS;
            if is_to_be_verified {
                route.verified_ns = now_ns;
            }
        }
        let (way, due_ns) = (route.way, route.due_ns);
        self.last = way.map(|way| (to, way, due_ns));
        if is_news {
            // A peer to which nothing is sent any more, as a lost one, does not count.
            let is_sought =
                |route: &&Route| route.way.is_none() && now_ns <= route.due_ns.saturating_add(BELIEVED_NS);
            self.unknown = self.routes.values().filter(is_sought).count();
        }
        way.filter(|_| !is_to_be_verified)
    }
}
