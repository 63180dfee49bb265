//! Memory that both sides of a ring see: mapped from a segment, or, for tests and
//! within one process, from the heap.

use crate::pages::page_bytes;
use rustix::io::Errno;
use rustix::mm::{MapFlags, MremapFlags, ProtFlags, mmap_anonymous, mremap_fixed, munmap};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// Zeroed memory that starts on a page, or as a page of 4 KiB would.
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

/// Bytes of the control block at the start of every region, which is accessed by atomics alone. The same on all
/// systems, whatever their pages: it is part of how memory that processes share is laid out.
pub const CONTROL_BYTES: usize = 4096;

// SAFETY: memory belongs to the process, not to a thread.
unsafe impl Send for Region {}
// SAFETY: a shared region gives out addresses and atomics alone. Safe code reaches atomics of the control block;
// unsafe code that asks for an address, or for another atomic, has promised how it is used.
unsafe impl Sync for Region {}

impl Region {
    /// Memory of this process alone, of at least `len` bytes.
    ///
    /// # Panics
    /// Where no memory could be that long.
    pub fn on_heap(len: usize) -> Self {
        let len = len.max(1).checked_next_multiple_of(CONTROL_BYTES).expect("a length that memory can have");
        let layout = Self::layout(len);
        // SAFETY: the layout is not empty.
        let base = unsafe { alloc_zeroed(layout) };
        let Some(base) = NonNull::new(base) else { handle_alloc_error(layout) };
        Self { base, len, owner: Owner::Heap }
    }

    /// Takes over a mapping.
    ///
    /// # Safety
    /// `base` starts a shared, writable mapping of `len` bytes that nothing else unmaps
    /// and whose file cannot shrink.
    pub(crate) unsafe fn from_mapping(base: NonNull<u8>, len: usize) -> Self {
        Self { base, len, owner: Owner::Mapping }
    }

    fn layout(len: usize) -> Layout {
        Layout::from_size_align(len, CONTROL_BYTES).expect("a length that memory can have")
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no byte. There always is.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The word at byte `offset` of the control block, shared with the other side. Rings lie
    /// behind that block.
    ///
    /// # Panics
    /// Where there is none at that offset.
    pub fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset < CONTROL_BYTES);
        // SAFETY: both sides access the control block by atomics alone, once the region is shared.
        unsafe { self.any_word(offset) }
    }

    /// The word at byte `offset`, wherever that is.
    ///
    /// # Safety
    /// Nothing in this process touches it but by atomics. A payload cell is filled and read
    /// otherwise, unless its ring belongs to another process.
    ///
    /// # Panics
    /// Where there is none at that offset.
    pub unsafe fn any_word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8));
        // SAFETY: eight aligned bytes inside of the region, which lives as long as the
        // reference.
        unsafe { self.at(offset, 8).cast::<AtomicU64>().as_ref() }
    }

    /// Replaces what is shared from byte `from` on, the start of a page, by a copy of it at the
    /// same address.
    ///
    /// # Errors
    /// The system has no memory for it. Nothing has changed then.
    pub(crate) fn make_private(&self, from: usize) -> Result<(), Errno> {
        assert!(from.is_multiple_of(page_bytes()) && matches!(self.owner, Owner::Mapping));
        let (shared, len) = (self.at(from, self.len - from), self.len - from);
        // SAFETY: a new mapping at an address that the kernel chooses.
        let copy = unsafe {
            mmap_anonymous(std::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)?
        };
        // SAFETY: both are as long, and mapped. References into a shared region are to atomics, which may race
        // with copies. The copy moves to where the region was in one step, so that every address in it stays
        // valid at any moment, and is unmapped with it.
        unsafe {
            crate::copy::copy(shared.as_ptr(), copy.cast(), len);
            if let Err(error) = mremap_fixed(copy, len, len, MremapFlags::MAYMOVE, shared.as_ptr().cast()) {
                let _ = munmap(copy, len);
                return Err(error);
            }
        }
        Ok(())
    }

    /// The address of byte `offset`, from which `len` bytes are inside.
    ///
    /// # Panics
    /// Where they are not: offsets come from this library, never from a peer.
    pub(crate) fn at(&self, offset: usize, len: usize) -> NonNull<u8> {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.len), "offset outside of the region");
        // SAFETY: the offset is inside of the region.
        unsafe { self.base.add(offset) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        match self.owner {
            // SAFETY: the mapping is ours and ends with us.
            Owner::Mapping => unsafe {
                // Unmapping what is mapped cannot fail.
                let _ = munmap(self.base.as_ptr().cast(), self.len);
            },
            // SAFETY: allocated by `on_heap` with this layout.
            Owner::Heap => unsafe { dealloc(self.base.as_ptr(), Self::layout(self.len)) },
        }
    }
}
