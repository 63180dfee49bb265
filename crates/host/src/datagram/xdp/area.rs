//! The memory that holds all frames of an AF_XDP wire. This process and the kernel share it.

use crate::pages::{anonymous, base};
use memmap2::MmapRaw;
use std::io;
use std::slice;

/// Length of a frame with its headroom, in bytes: the least that the kernel allows. A whole Ethernet frame fits.
pub const FRAME_LEN: u32 = 2048;

/// The number of a frame's first byte in the area.
pub type FrameAt = u64;

/// The frames, and which of them are free.
#[derive(Debug)]
pub struct Area {
    memory: MmapRaw,
    free: Vec<FrameAt>,
}

impl Area {
    /// Returns an area of `frames` frames, all free.
    ///
    /// # Errors
    /// Returns an error if the system has no space for the mapping.
    pub fn new(frames: usize) -> io::Result<Self> {
        let memory = anonymous(frames * FRAME_LEN as usize)?;
        let free = (0..frames as u64).rev().map(|frame| frame * u64::from(FRAME_LEN)).collect();
        Ok(Self { memory, free })
    }

    /// Returns the address of the area in this process.
    pub fn address(&self) -> u64 {
        base(&self.memory).as_ptr() as u64
    }

    /// Returns the length of the area in bytes.
    pub fn len(&self) -> u64 {
        self.memory.len() as u64
    }

    /// Returns the number of free frames.
    pub fn free(&self) -> usize {
        self.free.len()
    }

    /// Takes a free frame.
    #[inline]
    pub fn take(&mut self) -> Option<FrameAt> {
        self.free.pop()
    }

    /// Makes a frame free, by the number of any of its bytes.
    #[inline]
    pub fn give_back(&mut self, at: u64) {
        self.free.push(start_of(at));
    }

    /// Returns `len` bytes from byte `at` on, if they lie within one frame.
    #[inline]
    pub fn bytes(&self, at: u64, len: u32) -> Option<&[u8]> {
        self.lies_within(at, len).then(|| {
            // SAFETY: inside the mapping. The kernel has handed the frame over, and does not write to it before
            // this process gives it back, for which it needs the area mutably.
            unsafe { slice::from_raw_parts(self.memory.as_ptr().add(at as usize), len as usize) }
        })
    }

    /// Returns `len` bytes from byte `at` on for writing, if they lie within one frame.
    #[inline]
    pub fn bytes_mut(&mut self, at: u64, len: u32) -> Option<&mut [u8]> {
        self.lies_within(at, len).then(|| {
            // SAFETY: as in `bytes`; the area is borrowed mutably.
            unsafe { slice::from_raw_parts_mut(self.memory.as_mut_ptr().add(at as usize), len as usize) }
        })
    }

    #[inline]
    fn lies_within(&self, at: u64, len: u32) -> bool {
        let offset = at % u64::from(FRAME_LEN);
        at < self.len() && offset + u64::from(len) <= u64::from(FRAME_LEN)
    }
}

/// Returns the number of the first byte of the frame that holds a byte.
#[inline]
pub fn start_of(at: u64) -> FrameAt {
    at & !u64::from(FRAME_LEN - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_one_frame_only() {
        let mut area = Area::new(2).unwrap();
        let [first, second] = [(); 2].map(|()| area.take().unwrap());
        assert_eq!((first, second, area.take()), (0, 2048, None));
        area.bytes_mut(second + 2047, 1).unwrap()[0] = 7;
        assert_eq!(area.bytes(second, 2048).unwrap()[2047], 7);
        for (at, len) in [(0, 2049), (2047, 2), (4096, 1), (4096, 0), (u64::MAX, 1), (4095, u32::MAX)] {
            assert!(area.bytes(at, len).is_none(), "{len} bytes from {at}");
        }
        area.give_back(second + 300);
        assert_eq!(area.take(), Some(second));
    }
}
