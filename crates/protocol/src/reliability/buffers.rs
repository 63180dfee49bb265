//! The buffers of messages, for reuse.

use super::congestion::MAX_WINDOW;
use alloc::vec::Vec;

/// The free buffers: at most as many as messages can be in flight.
#[derive(Debug, Default)]
pub struct Buffers {
    free: Vec<Vec<u8>>,
}

impl Buffers {
    /// Returns an empty buffer: the one given back last, because it is the likeliest to be in the cache.
    pub fn take(&mut self) -> Vec<u8> {
        let mut buffer = self.free.pop().unwrap_or_default();
        buffer.clear();
        buffer
    }

    /// Takes back a buffer with any content.
    pub fn give_back(&mut self, buffer: Vec<u8>) {
        if self.free.len() < MAX_WINDOW as usize {
            self.free.push(buffer);
        }
    }

    /// Returns the memory of the free buffers, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.free.capacity() * size_of::<Vec<u8>>() + self.free.iter().map(Vec::capacity).sum::<usize>()
    }
}
