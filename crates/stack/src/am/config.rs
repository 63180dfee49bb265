//! How an endpoint is to be, and what its peers are called.

use super::error::OpenError;
use netdyno_host::wait::Wait;
use netdyno_protocol::dial::terms::Dials;
use netdyno_protocol::faults::Faults;
use netdyno_protocol::frame::port;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// A way to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wire {
    /// Shared memory, on the same host.
    Shm,
    /// UDP datagrams, to any host.
    Udp,
}

/// A peer of one endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PeerId {
    index: u32,
    /// Its place among the peers of its wire, and in the highest bit which that is. Not an
    /// enum: its spare values would tag, in one byte, every result that may name a peer, and
    /// messages in such results were copied at odd addresses, at twice the time for each.
    place: u32,
}

/// Set in the place of a peer that is reached over UDP.
const OVER_UDP: u32 = 1 << 31;

impl PeerId {
    pub(super) const fn new(index: usize, wire: Wire, place: usize) -> Self {
        let wire = match wire {
            Wire::Shm => 0,
            Wire::Udp => OVER_UDP,
        };
        Self { index: index as u32, place: place as u32 | wire }
    }

    /// Its place in the order of connecting, from 0.
    pub const fn index(self) -> usize {
        self.index as usize
    }

    /// How it is reached.
    #[inline(always)]
    pub const fn wire(self) -> Wire {
        if self.place & OVER_UDP == 0 { Wire::Shm } else { Wire::Udp }
    }

    #[inline(always)]
    pub(super) const fn place(self) -> usize {
        (self.place & !OVER_UDP) as usize
    }
}

/// How an endpoint is to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Requests to one peer that may be unanswered: a power of two from 1 to 32768. Of
    /// two different windows of a connection the smaller one counts; over UDP at most 16384.
    pub window: u32,
    /// Payload that a medium message to this endpoint may carry: a multiple of 64 up to
    /// 1 MiB. Over UDP no more than [`LONGEST_PAYLOAD`](super::LONGEST_PAYLOAD) of it counts.
    pub medium_bytes: u32,
    /// Patience with a peer that lives but answers nothing while requests wait.
    pub peer_timeout: Duration,
    /// What to do while nothing arrives.
    pub wait: Wait,
    /// The socket for peers over UDP, opened with the first port: an address of this host
    /// that they can reach, and a port, 0 for any that is free.
    pub bind: SocketAddr,
    /// What goes wrong with the datagrams that are sent, on purpose.
    pub faults: Faults,
    /// The seed of what is random: faults, and dials that vary. Another one at each end, or both
    /// draw the same.
    pub seed: u64,
    /// What links to peers on this host are made to be like, on purpose: the same at both ends. Gaps
    /// are set (=), overheads added (+): nobody has measured what a link has of its own. Over shared
    /// memory gets are not dialled; over UDP a payload is shorter by
    /// [`STAMP_LEN`](super::STAMP_LEN).
    pub dials: Dials,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            window: 256,
            medium_bytes: 4096,
            peer_timeout: Duration::from_secs(5),
            wait: Wait::Spin,
            bind: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
            faults: Faults::NONE,
            seed: 0,
            dials: Dials::NONE,
        }
    }
}

impl Config {
    pub(super) fn check(&self) -> Result<(), OpenError> {
        if !port::window_is_valid(self.window) {
            return Err(OpenError::Window(self.window));
        }
        if !port::medium_is_valid(self.medium_bytes) {
            return Err(OpenError::Medium(self.medium_bytes));
        }
        Ok(())
    }
}
