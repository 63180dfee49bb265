//! Memory that both ends of a ring access. It is mapped from a segment. Tests, and rings within one process,
//! use anonymous memory instead.

use crate::pages::{anonymous, page_bytes};
use memmap2::MmapRaw;
use rustix::mm::{MremapFlags, mremap_fixed};
use std::io;
use std::mem::forget;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// Zeroed memory that begins at a page.
///
/// It gives out only addresses and atomics. Safe code reaches only atomics of the control block. Unsafe code
/// that asks for an address or for another atomic has promised how it is used.
#[derive(Debug)]
pub struct Region(pub(crate) MmapRaw);

/// Size in bytes of the control block at the start of every region. All access to it is by atomics. The size
/// does not depend on the page size of a system, because it is part of the layout of shared memory.
pub const CONTROL_BYTES: usize = 4096;

impl Region {
    /// Maps at least `len` bytes that only this process accesses.
    ///
    /// # Panics
    /// Panics if the system has no space for the mapping.
    pub fn anonymous(len: usize) -> Self {
        let len = len.max(1).checked_next_multiple_of(CONTROL_BYTES).expect("a length that memory can have");
        Self(anonymous(len).expect("space for a mapping"))
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Reports whether the region is empty, which it never is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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
    /// Returns an error if the system has no memory for the copy. The region is then unchanged.
    pub(crate) fn make_private(&self, from: usize) -> io::Result<()> {
        assert!(from.is_multiple_of(page_bytes()));
        let len = self.len() - from;
        let (shared, copy) = (self.at(from, len).as_ptr(), anonymous(len)?);
        // SAFETY: both mappings have this length. References into a shared region are to atomics, which may
        // race with copies. One step moves the copy to the address of the region, so that every address in it
        // stays valid at any moment.
        unsafe {
            crate::copy::copy(shared, copy.as_mut_ptr(), len);
            mremap_fixed(copy.as_mut_ptr().cast(), len, len, MremapFlags::MAYMOVE, shared.cast())?;
        }
        // The moved memory is unmapped together with the region.
        forget(copy);
        Ok(())
    }

    /// Returns the address of byte `offset`, followed by at least `len` bytes of the region.
    ///
    /// # Panics
    /// Panics if there are fewer bytes. Offsets come from this library and never from a peer.
    pub(crate) fn at(&self, offset: usize, len: usize) -> NonNull<u8> {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.len()), "offset outside of the region");
        // SAFETY: the offset is inside the region, and the kernel maps nothing at address 0.
        unsafe { NonNull::new_unchecked(self.0.as_mut_ptr().add(offset)) }
    }
}
