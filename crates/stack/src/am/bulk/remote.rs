//! A peer's memory, as seen from here.

use crate::am::config::PeerId;
use crate::am::error::OutOfBounds;

/// Memory of a peer that transfers may go to and come from: what
/// [`attach`](crate::am::Endpoint::attach) has found to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    pub(in crate::am) peer: PeerId,
    pub(in crate::am) memory: u64,
    pub(in crate::am) len: usize,
    /// Its place among what is attached at its wire, where that counts.
    pub(in crate::am) place: u32,
}

impl Remote {
    /// Who has it.
    pub fn peer(&self) -> PeerId {
        self.peer
    }

    /// Its name there.
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// Bytes in it.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(in crate::am) fn check(&self, offset: usize, len: usize) -> Result<(), OutOfBounds> {
        OutOfBounds::check(offset, len, self.len)
    }
}
