//! The message buffers of one direction, and which of them are posted to the layer.

use crate::PluginError;
use crate::memory::Memory;
use std::ptr::NonNull;

/// The slots of one direction. The buffer of slot n starts at n strides. With a stride of 0 all slots share
/// one buffer.
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

    /// Sets the stride. No operation may be posted.
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

    /// Returns the address of `bytes` bytes in the buffer of a free slot.
    #[inline(always)]
    fn place(&self, slot: usize, bytes: usize) -> Result<NonNull<u8>, PluginError> {
        let is_free = self.is_posted.get(slot) == Some(&false);
        let fits_stride = self.stride == 0 || bytes <= self.stride;
        let from = slot.saturating_mul(self.stride);
        let fits = from.saturating_add(bytes) <= self.memory.bytes();
        if !is_free || !fits_stride || !fits {
            return Err(self.misused(slot, bytes));
        }
        // SAFETY: the check above shows that `from` lies inside the memory.
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

    /// Marks the slot as posted and returns its buffer.
    #[inline(always)]
    pub(crate) fn post(&mut self, slot: usize, bytes: usize) -> Result<NonNull<u8>, PluginError> {
        let place = self.place(slot, bytes)?;
        self.is_posted[slot] = true;
        self.posted += 1;
        Ok(place)
    }

    /// Marks the slot as free, because the layer no longer uses its buffer.
    #[inline(always)]
    pub(crate) fn complete(&mut self, slot: usize) {
        if std::mem::take(&mut self.is_posted[slot]) {
            self.posted -= 1;
        }
    }

    /// Returns the first `bytes` of the buffer of a free slot.
    pub(crate) fn bytes(&self, slot: usize, bytes: usize) -> Result<&[u8], PluginError> {
        if self.stride == 0 && self.posted > 0 {
            return Err(PluginError::new("the memory of all slots is under way"));
        }
        let place = self.place(slot, bytes)?;
        // SAFETY: inside the memory, which is initialised. The layer writes only to posted slots, and posting
        // borrows this row exclusively.
        Ok(unsafe { std::slice::from_raw_parts(place.as_ptr(), bytes) })
    }

    /// Returns the first `bytes` of the buffer of a free slot, for writing.
    pub(crate) fn bytes_mut(&mut self, slot: usize, bytes: usize) -> Result<&mut [u8], PluginError> {
        if self.stride == 0 && self.posted > 0 {
            return Err(PluginError::new("the memory of all slots is under way"));
        }
        let place = self.place(slot, bytes)?;
        // SAFETY: inside the memory, which is initialised. The layer writes only to posted slots. No other
        // reference to the buffer exists, because the row is borrowed exclusively.
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
