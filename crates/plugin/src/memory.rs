//! Memory that a layer has a hold on.

use crate::PluginError;
use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use nix::unistd::{SysconfVar, sysconf};
use std::num::NonZeroUsize;
use std::ptr::NonNull;

/// What is there before anything else is.
pub(crate) const FILL: u8 = 0x5a;

/// Memory that others write to: nothing here refers to it for longer than a call. It begins at a page,
/// so that its place is the same in every process.
///
/// It is mapped and unmapped by the C library's own functions: there libraries that remember what is
/// registered look for memory that goes away.
pub(crate) struct Memory {
    start: NonNull<u8>,
    bytes: usize,
}

impl Memory {
    /// All of it written to, so that no page is missing when time runs.
    pub(crate) fn new(bytes: usize) -> Result<Self, PluginError> {
        let memory = Self::untouched(bytes)?;
        // SAFETY: all of it was just mapped, and nobody else knows it.
        unsafe { memory.start.write_bytes(FILL, memory.bytes) };
        Ok(memory)
    }

    /// Nothing of it written to.
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
            // SAFETY: within the mapping. Others may write to it at the same time: nothing refers to
            // it, and what they make of it is a byte.
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

/// Where the system does not say, the least that there is.
fn page_bytes() -> usize {
    let said = sysconf(SysconfVar::PAGE_SIZE).ok().flatten();
    said.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(4096).max(1)
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: mapped with this length, and by contract nobody has a hold on it: whoever cannot say
        // so forgets it instead.
        unsafe {
            // Unmapping what is mapped cannot fail.
            let _ = munmap(self.start.cast(), self.bytes);
        }
    }
}
