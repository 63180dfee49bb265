//! The buffers of one direction, and which of them the layer has a hold on.

use crate::PluginError;
use crate::memory::Memory;
use std::ptr::NonNull;

/// Slots of one direction. Slot n has the memory from n strides on; with a stride of 0 all have
/// the same.
pub(crate) struct Row {
    memory: Memory,
    stride: usize,
    is_posted: Vec<bool>,
    posted: usize,
}

impl Row {
    pub(crate) fn new(slots: usize, bytes: usize) -> Result<Self, PluginError> {
        Ok(Self { memory: Memory::new(bytes)?, stride: 0, is_posted: vec![false; slots], posted: 0 })
    }

    /// Another stride, where nothing is under way.
    pub(crate) fn set_stride(&mut self, stride: usize) -> Result<(), PluginError> {
        if self.posted > 0 {
            return Err(PluginError::new("messages are under way"));
        }
        self.stride = stride;
        Ok(())
    }

    pub(crate) fn slots(&self) -> usize {
        self.is_posted.len()
    }

    pub(crate) fn is_posted(&self, slot: usize) -> bool {
        self.is_posted.get(slot).is_some_and(|is_posted| *is_posted)
    }

    pub(crate) fn posted(&self) -> usize {
        self.posted
    }

    /// Where `bytes` of a slot begin that is not under way.
    #[inline(always)]
    fn place(&self, slot: usize, bytes: usize) -> Result<NonNull<u8>, PluginError> {
        let is_free = self.is_posted.get(slot) == Some(&false);
        let fits_stride = self.stride == 0 || bytes <= self.stride;
        let from = slot.saturating_mul(self.stride);
        let fits = from.saturating_add(bytes) <= self.memory.bytes();
        if !is_free || !fits_stride || !fits {
            return Err(self.misused(slot, bytes));
        }
        // SAFETY: `from` lies within the memory, as was just seen.
        Ok(unsafe { self.memory.start().add(from) })
    }

    #[cold]
    fn misused(&self, slot: usize, bytes: usize) -> PluginError {
        PluginError(match self.is_posted.get(slot) {
            None => format!("there is no slot {slot}: there are {}", self.slots()),
            Some(true) => format!("slot {slot} is posted and not complete"),
            Some(false) => format!("slot {slot} has no room for {bytes} bytes"),
        })
    }

    /// The memory for an operation, which the slot is now under way with.
    #[inline(always)]
    pub(crate) fn post(&mut self, slot: usize, bytes: usize) -> Result<NonNull<u8>, PluginError> {
        let place = self.place(slot, bytes)?;
        self.is_posted[slot] = true;
        self.posted += 1;
        Ok(place)
    }

    /// The layer has no hold on the slot any more.
    #[inline(always)]
    pub(crate) fn complete(&mut self, slot: usize) {
        if std::mem::take(&mut self.is_posted[slot]) {
            self.posted -= 1;
        }
    }

    /// What lies in a slot that is not under way.
    pub(crate) fn bytes(&self, slot: usize, bytes: usize) -> Result<&[u8], PluginError> {
        if self.stride == 0 && self.posted > 0 {
            return Err(PluginError::new("the memory of all slots is under way"));
        }
        let place = self.place(slot, bytes)?;
        // SAFETY: within the memory, which is initialised; the layer writes to slots that are
        // under way alone, and posting needs this row for itself.
        Ok(unsafe { std::slice::from_raw_parts(place.as_ptr(), bytes) })
    }

    /// The same, to be written to.
    pub(crate) fn bytes_mut(&mut self, slot: usize, bytes: usize) -> Result<&mut [u8], PluginError> {
        if self.stride == 0 && self.posted > 0 {
            return Err(PluginError::new("the memory of all slots is under way"));
        }
        let place = self.place(slot, bytes)?;
        // SAFETY: the place lies within the memory, which is initialised. The layer writes to slots that are
        // under way alone, and nobody else refers to it, as the row is borrowed for writing.
        Ok(unsafe { std::slice::from_raw_parts_mut(place.as_ptr(), bytes) })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;
    use crate::memory::FILL;

    #[test]
    fn what_is_under_way_is_out_of_reach() {
        let mut row = Row::new(2, 100).unwrap();
        row.set_stride(50).unwrap();
        row.bytes_mut(1, 50).unwrap().fill(7);
        row.post(1, 50).unwrap();
        assert!(row.bytes(1, 1).is_err() && row.bytes_mut(1, 1).is_err() && row.post(1, 1).is_err());
        assert!(row.set_stride(10).is_err());
        assert_eq!(row.bytes(0, 50).unwrap(), [FILL; 50]);
        row.complete(1);
        assert_eq!(row.bytes(1, 50).unwrap(), [7; 50]);
        row.set_stride(10).unwrap();
    }

    #[test]
    fn no_slot_reaches_beyond_its_memory() {
        let mut row = Row::new(3, 100).unwrap();
        row.set_stride(40).unwrap();
        assert!(row.post(0, 41).is_err() && row.post(2, 21).is_err() && row.post(3, 1).is_err());
        assert!(row.post(2, 20).is_ok());
    }

    #[test]
    fn memory_of_all_slots_is_changed_while_none_is_under_way() {
        let mut row = Row::new(2, 100).unwrap();
        row.bytes_mut(0, 100).unwrap().fill(1);
        assert_eq!(row.post(0, 100).unwrap(), row.post(1, 100).unwrap());
        row.complete(0);
        assert!(row.bytes_mut(0, 1).is_err());
        row.complete(1);
        assert!(row.bytes_mut(0, 1).is_ok());
    }
}
