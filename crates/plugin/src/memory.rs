//! Memory that a layer may access.

use crate::PluginError;
use memmap2::{MmapOptions, MmapRaw};
use rustix::param::page_size;
use std::ptr::NonNull;

/// Initial value of all bytes.
pub(crate) const FILL: u8 = 0x5a;

/// Memory that other processes may write. This process refers to it only for the duration of a call. It
/// starts on a page, so that its alignment is the same in every process. It is unmapped on drop. Callers that
/// cannot guarantee that no other code uses it leak the value instead.
///
/// The C library's own functions map and unmap it. Registration caches of communication libraries intercept
/// these functions to detect memory that is unmapped.
pub(crate) struct Memory {
    start: NonNull<u8>,
    mapping: MmapRaw,
}

impl Memory {
    /// Maps memory and writes to all of it, so that no page fault disturbs a measurement.
    pub(crate) fn new(bytes: usize) -> Result<Self, PluginError> {
        let memory = Self::untouched(bytes)?;
        // SAFETY: all of it was just mapped, and no other code knows of it.
        unsafe { memory.start.write_bytes(FILL, memory.bytes()) };
        Ok(memory)
    }

    /// Maps memory without touching it.
    pub(crate) fn untouched(bytes: usize) -> Result<Self, PluginError> {
        let bytes = bytes.max(1);
        let mapping = MmapOptions::new().len(bytes).map_anon().map(MmapRaw::from);
        let mapping =
            mapping.map_err(|error| PluginError(format!("there is no memory of {bytes} bytes: {error}")))?;
        let start = NonNull::new(mapping.as_mut_ptr()).expect("the kernel maps nothing at address 0");
        Ok(Self { start, mapping })
    }

    /// Writes to every page.
    pub(crate) fn touch(&mut self) {
        for offset in (0..self.bytes()).step_by(page_size()) {
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
        self.mapping.len()
    }
}
