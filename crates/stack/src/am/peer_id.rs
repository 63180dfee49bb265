//! The identifier of a peer.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

/// A transport to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Wire {
    /// Shared memory, on the same host.
    Shm,
    /// UDP datagrams, to any host.
    Udp,
    /// The same datagrams over AF_XDP sockets, past the kernel's protocols.
    Xdp,
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Shm => "shared memory",
            Self::Udp => "UDP",
            Self::Xdp => "AF_XDP",
        })
    }
}

/// Identifies a peer of one endpoint. Another endpoint of the process panics if it is given the
/// identifier.
// Aligned, because every message carries one: a copy is then one load and one store, and crosses no cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(align(8))]
pub struct PeerId {
    index: u32,
    /// The peer's place, which no other peer of the process has. This is not an enum of the transports,
    /// because the compiler would use its spare values as a one-byte tag in every result that may name a
    /// peer. Messages in such results were copied at odd addresses, which doubled the time of each.
    place: u32,
}

impl PeerId {
    /// Returns the peer's position in the order of connecting, from 0.
    pub const fn index(self) -> usize {
        self.index as usize
    }

    /// Returns the peer's index among the peers of its transport.
    #[inline(always)]
    pub(super) const fn place(self) -> usize {
        (self.place % PLACES) as usize
    }
}

/// Number of places of one transport of an endpoint.
const PLACES: u32 = 1 << 20;

/// The first place of the transport that is opened next. Places are given out again after 4096
/// transports.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// The places of the peers of one transport of one endpoint.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    first: u32,
}

impl Places {
    pub(super) fn new() -> Self {
        Self { first: NEXT.fetch_add(PLACES, Ordering::Relaxed) }
    }

    /// Returns the identifier of the peer that has `index` in the endpoint, and `place` among the peers
    /// of the transport. Returns `None` if the transport has too many peers.
    pub(super) fn id(self, index: usize, place: usize) -> Option<PeerId> {
        let place = u32::try_from(place).ok().filter(|place| *place < PLACES)?;
        Some(PeerId { index: index as u32, place: self.first + place })
    }

    /// Returns the index of a peer among the peers of the transport. The index of a peer of another
    /// transport or endpoint is out of range, so that a look-up needs no other check.
    #[inline(always)]
    pub(super) const fn index_of(self, peer: PeerId) -> usize {
        peer.place.wrapping_sub(self.first) as usize
    }

    /// Returns whether these are the places of the peer's transport.
    pub(super) const fn include(self, peer: PeerId) -> bool {
        self.index_of(peer) < PLACES as usize
    }
}
