//! A peer's registered memory, as the other side names it.

use crate::am::error::{OutOfBounds, TransferError};
use crate::am::peer_id::PeerId;

/// Memory of a peer that [`attach`](crate::am::Endpoint::attach) has found, for transfers to and from
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    pub(in crate::am) peer: PeerId,
    pub(in crate::am) memory: u64,
    pub(in crate::am) len: usize,
    /// Index among the attached memories of its transport; only shared memory uses it.
    pub(in crate::am) place: u32,
}

impl Remote {
    /// Returns the peer that owns the memory.
    pub fn peer(&self) -> PeerId {
        self.peer
    }

    /// Returns the identifier of the memory at the peer.
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// Returns the length of the memory, in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the memory has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the place `offset` bytes into the memory.
    pub fn at(self, offset: usize) -> Target {
        Target { remote: self, offset }
    }
}

/// The place in a peer's memory at which a transfer begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    pub(in crate::am) remote: Remote,
    pub(in crate::am) offset: usize,
}

impl Target {
    pub(super) fn check(self, len: usize) -> Result<(), TransferError> {
        OutOfBounds::check(self.offset, len, self.remote.len).map_err(TransferError::Remote)
    }
}
