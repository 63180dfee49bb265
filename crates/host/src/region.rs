//! Memory that both ends of a ring access. It is mapped from a segment. Tests, and rings within one process,
//! use the heap instead.

use crate::pages::page_bytes;
use rustix::io::Errno;
use rustix::mm::{MapFlags, MremapFlags, ProtFlags, mmap_anonymous, mremap_fixed, munmap};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// Zeroed memory that is aligned to a page, or on the heap to 4 KiB.
#[derive(Debug)]
pub struct Region {
    base: NonNull<u8>,
    len: usize,
    owner: Owner,
}

#[derive(Debug)]
enum Owner {
    Mapping,
    Heap,
}

/// Size in bytes of the control block at the start of every region. All access to it is by atomics. The size
/// does not depend on the page size of a system, because it is part of the layout of shared memory.
pub const CONTROL_BYTES: usize = 4096;

// SAFETY: memory belongs to the process, not to a thread.
unsafe impl Send for Region {}
// SAFETY: a shared region gives out only addresses and atomics. Safe code reaches only atomics of the control
// block. Unsafe code that asks for an address or for another atomic has promised how it is used.
unsafe impl Sync for Region {}

impl Region {
    /// Allocates at least `len` bytes on the heap of this process.
    ///
    /// # Panics
    /// Panics if `len` exceeds the largest possible allocation.
    pub fn on_heap(len: usize) -> Self {
        let len = len.max(1).checked_next_multiple_of(CONTROL_BYTES).expect("a length that memory can have");
        let layout = Self::layout(len);
        // SAFETY: the layout is not empty.
        let base = unsafe { alloc_zeroed(layout) };
        let Some(base) = NonNull::new(base) else { handle_alloc_error(layout) };
        Self { base, len, owner: Owner::Heap }
    }

    /// Takes ownership of a mapping.
    ///
    /// # Safety
    /// `base` starts a shared, writable mapping of `len` bytes. No other code unmaps it, and its file cannot
    /// shrink.
    pub(crate) unsafe fn from_mapping(base: NonNull<u8>, len: usize) -> Self {
        Self { base, len, owner: Owner::Mapping }
    }

    fn layout(len: usize) -> Layout {
        Layout::from_size_align(len, CONTROL_BYTES).expect("a length that memory can have")
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Reports whether the region is empty, which it never is.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the word at byte `offset` of the control block, which both sides share. Rings lie behind the
    /// control block.
    ///
    /// # Panics
    /// Panics if no aligned word of the control block lies at `offset`.
    pub fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset < CONTROL_BYTES);
        // SAFETY: once the region is shared, both sides access the control block by atomics only.
        unsafe { self.any_word(offset) }
    }

    /// Returns the word at byte `offset` of the whole region.
    ///
    /// # Safety
    /// All access to the word in this process is by atomics. The payload buffers of a ring are accessed
    /// otherwise, unless that ring belongs to another process.
    ///
    /// # Panics
    /// Panics if no aligned word of the region lies at `offset`.
    pub unsafe fn any_word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8));
        // SAFETY: eight aligned bytes inside the region, which outlives the reference.
        unsafe { self.at(offset, 8).cast::<AtomicU64>().as_ref() }
    }

    /// Replaces the shared memory from byte `from` on by a private copy at the same address. `from` must be
    /// the start of a page.
    ///
    /// # Errors
    /// Returns `Errno` if the system has no memory for the copy. The region is then unchanged.
    pub(crate) fn make_private(&self, from: usize) -> Result<(), Errno> {
        assert!(from.is_multiple_of(page_bytes()) && matches!(self.owner, Owner::Mapping));
        let (shared, len) = (self.at(from, self.len - from), self.len - from);
        // SAFETY: a new mapping at an address that the kernel chooses.
        let copy = unsafe {
            mmap_anonymous(std::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)?
        };
        // SAFETY: both mappings have this length. References into a shared region are to atomics, which may
        // race with copies. One step moves the copy to the address of the region, so that every address in it
        // stays valid at any moment. The copy is unmapped together with the region.
        unsafe {
            crate::copy::copy(shared.as_ptr(), copy.cast(), len);
            if let Err(error) = mremap_fixed(copy, len, len, MremapFlags::MAYMOVE, shared.as_ptr().cast()) {
                let _ = munmap(copy, len);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Returns the address of byte `offset`, followed by at least `len` bytes of the region.
    ///
    /// # Panics
    /// Panics if there are fewer bytes. Offsets come from this library and never from a peer.
    pub(crate) fn at(&self, offset: usize, len: usize) -> NonNull<u8> {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.len), "offset outside of the region");
        // SAFETY: the offset is inside the region.
        unsafe { self.base.add(offset) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        match self.owner {
            // SAFETY: this value owns the mapping, which ends with it.
            Owner::Mapping => unsafe {
                // Unmapping an existing mapping cannot fail.
                let _ = munmap(self.base.as_ptr().cast(), self.len);
            },
            // SAFETY: allocated by `on_heap` with this layout.
            Owner::Heap => unsafe { dealloc(self.base.as_ptr(), Self::layout(self.len)) },
        }
    }
}
