//! Memory that a layer may access.

use crate::PluginError;
use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use nix::unistd::{SysconfVar, sysconf};
use std::num::NonZeroUsize;
use std::ptr::NonNull;

/// Initial value of all bytes.
pub(crate) const FILL: u8 = 0x5a;

/// Memory that other processes may write. This process refers to it only for the duration of a call. It
/// starts on a page, so that its alignment is the same in every process.
///
/// The C library's own functions map and unmap it. Registration caches of communication libraries intercept
/// these functions to detect memory that is unmapped.
pub(crate) struct Memory {
    start: NonNull<u8>,
    bytes: usize,
}

impl Memory {
    /// Maps memory and writes to all of it, so that no page fault disturbs a measurement.
    pub(crate) fn new(bytes: usize) -> Result<Self, PluginError> {
        let memory = Self::untouched(bytes)?;
        // SAFETY: all of it was just mapped, and no other code knows of it.
        unsafe { memory.start.write_bytes(FILL, memory.bytes) };
        Ok(memory)
    }

    /// Maps memory without touching it.
    pub(crate) fn untouched(bytes: usize) -> Result<Self, PluginError> {
        let length = NonZeroUsize::new(bytes).unwrap_or(NonZeroUsize::MIN);
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping at an address that the system chooses.
        let start = unsafe { mmap_anonymous(None, length, access, MapFlags::MAP_PRIVATE) };
        let start =
            start.map_err(|error| PluginError(format!("there is no memory of {length} bytes: {error}")))?;
        Ok(Self { start: start.cast(), bytes: length.get() })
    }

    /// Writes to every page.
    pub(crate) fn touch(&mut self) {
        for offset in (0..self.bytes).step_by(page_bytes()) {
            // SAFETY: inside the mapping. Other processes may write to it at the same time. No reference to
            // it exists, and any value of its bytes is valid.
            unsafe { self.start.add(offset).write_volatile(FILL) };
        }
    }

    #[inline(always)]
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    #[inline(always)]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Returns the page size in bytes, or 4096 if the system does not report it.
fn page_bytes() -> usize {
    let said = sysconf(SysconfVar::PAGE_SIZE).ok().flatten();
    said.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(4096).max(1)
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: mapped with this length. By contract no other code uses it any more. Callers that cannot
        // guarantee this leak the value instead.
        unsafe {
            // Unmapping an existing mapping cannot fail.
            let _ = munmap(self.start.cast(), self.bytes);
        }
    }
}
