//! The rings of an AF_XDP socket, which the kernel and this process share: one side writes entries, and the other
//! side takes them.

use memmap2::{MmapOptions, MmapRaw};
use rustix::net::xdp::{XdpDesc, XdpRingFlags, XdpRingOffset};
use std::io;
use std::marker::PhantomData;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicU32, Ordering};

/// An entry of a ring: bytes that any value of the kernel fills validly.
///
/// # Safety
/// Any bytes are a valid value.
pub unsafe trait Entry: Copy {}

/// The number of a byte of the shared memory, at which a frame begins.
// SAFETY: an integer.
unsafe impl Entry for u64 {}

/// A frame with its length.
// SAFETY: integers, and flags of which any are allowed.
unsafe impl Entry for XdpDesc {}

/// The entries of a ring, and both sides' counts.
#[derive(Debug)]
struct Shared<E> {
    memory: MmapRaw,
    offsets: XdpRingOffset,
    /// The number of entries less 1. The number is a power of two.
    mask: u32,
    entries: PhantomData<E>,
}

impl<E: Entry> Shared<E> {
    /// Maps the ring of `size` entries that lies at `page` of the socket.
    fn map(socket: impl AsFd, page: u64, offsets: XdpRingOffset, size: u32) -> io::Result<Self> {
        let len = offsets.desc as usize + size as usize * size_of::<E>();
        let memory =
            MmapOptions::new().offset(page).len(len).populate().map_raw(socket.as_fd().as_raw_fd())?;
        Ok(Self { memory, offsets, mask: size - 1, entries: PhantomData })
    }

    #[inline]
    fn count(&self, offset: u64) -> &AtomicU32 {
        // SAFETY: the kernel says where in the mapping its counts are, and both sides access them by atomics.
        unsafe { &*self.memory.as_mut_ptr().add(offset as usize).cast::<AtomicU32>() }
    }

    #[inline]
    fn produced(&self) -> &AtomicU32 {
        self.count(self.offsets.producer)
    }

    #[inline]
    fn consumed(&self) -> &AtomicU32 {
        self.count(self.offsets.consumer)
    }

    #[inline]
    fn entry(&self, index: u32) -> *mut E {
        let offset = self.offsets.desc as usize + (index & self.mask) as usize * size_of::<E>();
        // SAFETY: the mapping holds all entries.
        unsafe { self.memory.as_mut_ptr().add(offset).cast() }
    }

    /// Reports whether the kernel continues with the ring only after a call.
    #[inline]
    fn needs_wakeup(&self) -> bool {
        let flags = self.offsets.flags.map_or(0, |offset| self.count(offset).load(Ordering::Relaxed));
        flags & XdpRingFlags::XDP_RING_NEED_WAKEUP.bits() != 0
    }
}

/// A ring whose entries this process writes.
#[derive(Debug)]
pub struct Producer<E> {
    shared: Shared<E>,
    written: u32,
    /// As many as the kernel had taken when this was last read.
    taken: u32,
}

impl<E: Entry> Producer<E> {
    /// Maps a ring, as [`Consumer::map`] does.
    pub fn map(socket: impl AsFd, page: u64, offsets: XdpRingOffset, size: u32) -> io::Result<Self> {
        Ok(Self { shared: Shared::map(socket, page, offsets, size)?, written: 0, taken: 0 })
    }

    /// Writes an entry. Returns `false` if the ring is full.
    #[inline]
    pub fn push(&mut self, entry: E) -> bool {
        if self.written.wrapping_sub(self.taken) > self.shared.mask {
            self.taken = self.shared.consumed().load(Ordering::Acquire);
            if self.written.wrapping_sub(self.taken) > self.shared.mask {
                return false;
            }
        }
        // SAFETY: the kernel has taken the entry that was here, and reads this one after the store below.
        unsafe { self.shared.entry(self.written).write(entry) };
        self.written = self.written.wrapping_add(1);
        self.shared.produced().store(self.written, Ordering::Release);
        true
    }

    /// Reports whether the kernel has taken all entries.
    #[inline]
    pub fn is_taken(&self) -> bool {
        self.shared.consumed().load(Ordering::Acquire) == self.written
    }

    /// Reports whether the kernel takes further entries only after a call.
    #[inline]
    pub fn needs_wakeup(&self) -> bool {
        self.shared.needs_wakeup()
    }
}

/// A ring whose entries the kernel writes.
#[derive(Debug)]
pub struct Consumer<E> {
    shared: Shared<E>,
    taken: u32,
    /// As many as the kernel had written when this was last read.
    written: u32,
}

impl<E: Entry> Consumer<E> {
    /// Maps the ring of `size` entries, a power of two, that lies at `page` of the socket.
    ///
    /// # Errors
    /// Returns an error if the system has no space for the mapping.
    pub fn map(socket: impl AsFd, page: u64, offsets: XdpRingOffset, size: u32) -> io::Result<Self> {
        Ok(Self { shared: Shared::map(socket, page, offsets, size)?, taken: 0, written: 0 })
    }

    /// Takes the next entry, if there is one.
    #[inline]
    pub fn pop(&mut self) -> Option<E> {
        if self.taken == self.written {
            self.written = self.shared.produced().load(Ordering::Acquire);
            if self.taken == self.written {
                return None;
            }
        }
        // SAFETY: the kernel has written the entry, and writes over it after the store below. Any bytes are valid.
        let entry = unsafe { self.shared.entry(self.taken).read() };
        self.taken = self.taken.wrapping_add(1);
        self.shared.consumed().store(self.taken, Ordering::Release);
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::anonymous;

    const SIZE: u32 = 4;

    /// Returns a ring in memory of this process, in which both sides have passed `count` entries.
    fn shared(count: u32) -> Shared<u64> {
        let offsets = XdpRingOffset { producer: 0, consumer: 64, desc: 192, flags: Some(128) };
        let memory = anonymous(4096).unwrap();
        let shared = Shared { memory, offsets, mask: SIZE - 1, entries: PhantomData };
        shared.produced().store(count, Ordering::Relaxed);
        shared.consumed().store(count, Ordering::Relaxed);
        shared
    }

    #[test]
    fn a_ring_takes_as_many_entries_as_it_has() {
        for count in [0, 7, u32::MAX - 1] {
            let mut ring = Producer { shared: shared(count), written: count, taken: count };
            for n in 0..u64::from(SIZE) {
                assert!(ring.push(n));
            }
            assert!(!ring.push(9));
            assert_eq!(ring.shared.produced().load(Ordering::Relaxed), count.wrapping_add(SIZE));
            // The kernel takes two.
            ring.shared.consumed().store(count.wrapping_add(2), Ordering::Relaxed);
            assert_eq!([4, 5, 6].map(|n| ring.push(n)), [true, true, false]);
            // SAFETY: nobody else has the memory.
            let entries = (0..SIZE).map(|n| unsafe { ring.shared.entry(count.wrapping_add(n)).read() });
            assert_eq!(entries.collect::<Vec<_>>(), [4, 5, 2, 3]);
        }
    }

    #[test]
    fn entries_come_in_their_order() {
        for count in [0, 7, u32::MAX - 1] {
            let mut ring = Consumer { shared: shared(count), taken: count, written: count };
            assert_eq!(ring.pop(), None);
            for n in 0..3 {
                // SAFETY: nobody else has the memory.
                unsafe { ring.shared.entry(count.wrapping_add(n)).write(u64::from(n) + 10) };
            }
            ring.shared.produced().store(count.wrapping_add(3), Ordering::Relaxed);
            assert_eq!([(); 4].map(|()| ring.pop()), [Some(10), Some(11), Some(12), None]);
            assert_eq!(ring.shared.consumed().load(Ordering::Relaxed), count.wrapping_add(3));
        }
    }

    #[test]
    fn the_kernel_says_when_it_needs_a_call() {
        let ring = Producer { shared: shared(0), written: 0, taken: 0 };
        assert!(!ring.needs_wakeup());
        ring.shared.count(128).store(XdpRingFlags::XDP_RING_NEED_WAKEUP.bits(), Ordering::Relaxed);
        assert!(ring.needs_wakeup());
    }
}
