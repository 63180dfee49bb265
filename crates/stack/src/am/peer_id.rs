//! The identifier of a peer.

/// A transport to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wire {
    /// Shared memory, on the same host.
    Shm,
    /// UDP datagrams, to any host.
    Udp,
}

/// Identifies a peer of one endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PeerId {
    index: u32,
    /// The peer's index among the peers of its transport; the highest bit is the transport. This is not
    /// an enum, because the compiler would use its spare values as a one-byte tag in every result that
    /// may name a peer. Messages in such results were copied at odd addresses, which doubled the time of
    /// each.
    place: u32,
}

/// The bit of `place` that marks a peer over UDP.
const OVER_UDP: u32 = 1 << 31;

impl PeerId {
    pub(super) const fn new(index: usize, wire: Wire, place: usize) -> Self {
        let wire = match wire {
            Wire::Shm => 0,
            Wire::Udp => OVER_UDP,
        };
        Self { index: index as u32, place: place as u32 | wire }
    }

    /// Returns the peer's position in the order of connecting, from 0.
    pub const fn index(self) -> usize {
        self.index as usize
    }

    /// Returns the transport to the peer.
    #[inline(always)]
    pub const fn wire(self) -> Wire {
        if self.place & OVER_UDP == 0 { Wire::Shm } else { Wire::Udp }
    }

    #[inline(always)]
    pub(super) const fn place(self) -> usize {
        (self.place & !OVER_UDP) as usize
    }
}
