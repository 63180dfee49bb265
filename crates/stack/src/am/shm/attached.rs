//! Memory of a peer that is mapped into this process.

use crate::am::bulk::{Mapped, Remote};
use crate::am::error::TransferError;

/// All mapped memory of one peer.
#[derive(Default)]
pub(super) struct Attached(Vec<Option<Mapped>>);

impl Attached {
    /// Adds a memory; replaces one with the same identifier. Returns its index. Unmaps what was deregistered meanwhile,
    /// because nobody may use it again.
    pub(super) fn insert(&mut self, mapped: Mapped) -> u32 {
        for place in &mut self.0 {
            place.take_if(|mapped| !mapped.is_open());
        }
        let is_same = |place: &Option<Mapped>| place.as_ref().is_some_and(|other| other.id == mapped.id);
        let place = self.0.iter().position(is_same).or_else(|| self.0.iter().position(Option::is_none));
        let place = place.unwrap_or_else(|| {
            self.0.push(None);
            self.0.len() - 1
        });
        self.0[place] = Some(mapped);
        place as u32
    }

    fn place(&mut self, remote: Remote) -> Option<&mut Option<Mapped>> {
        let place = self.0.get_mut(remote.place as usize)?;
        place.as_ref().is_some_and(|mapped| mapped.id == remote.memory).then_some(place)
    }

    /// Returns the memory, if it is still registered; otherwise unmaps it.
    #[inline]
    pub(super) fn get(&mut self, remote: Remote) -> Result<&Mapped, TransferError> {
        let place = self.place(remote).ok_or(TransferError::Deregistered)?;
        if !place.as_ref().is_some_and(Mapped::is_open) {
            *place = None;
        }
        place.as_ref().ok_or(TransferError::Deregistered)
    }

    pub(super) fn remove(&mut self, remote: Remote) {
        if let Some(place) = self.place(remote) {
            *place = None;
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
