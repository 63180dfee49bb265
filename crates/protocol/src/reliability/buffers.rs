//! Buffers that messages were kept in, to be used again.

use super::congestion::MOST;
use alloc::vec::Vec;

/// Free buffers, at most as many as messages can be under way.
#[derive(Debug, Default)]
pub struct Buffers {
    free: Vec<Vec<u8>>,
}

impl Buffers {
    /// An empty buffer. The one given back last is the likeliest to be in the cache.
    pub fn take(&mut self) -> Vec<u8> {
        let mut buffer = self.free.pop().unwrap_or_default();
        buffer.clear();
        buffer
    }

    /// Takes back a buffer, whatever is in it.
    pub fn give_back(&mut self, buffer: Vec<u8>) {
        if self.free.len() < MOST as usize {
            self.free.push(buffer);
        }
    }

    /// Memory that waits to be used again.
    pub fn memory_bytes(&self) -> usize {
        self.free.capacity() * size_of::<Vec<u8>>() + self.free.iter().map(Vec::capacity).sum::<usize>()
    }
}
