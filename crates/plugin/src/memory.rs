//! Memory that a layer has a hold on.

use crate::PluginError;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Where memory begins: at a page, so that its place is the same in every process.
const PAGE: usize = 4096;
/// What is there before anything else is.
pub(crate) const FILL: u8 = 0x5a;

/// Memory that others write to: nothing here refers to it for longer than a call.
pub(crate) struct Memory {
    start: NonNull<u8>,
    layout: Layout,
}

impl Memory {
    pub(crate) fn new(bytes: usize) -> Result<Self, PluginError> {
        let layout = Layout::from_size_align(bytes.max(1), PAGE).map_err(PluginError::new)?;
        // SAFETY: the layout has at least one byte.
        let start = unsafe { alloc(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        // Written to, so that no page is missing when time runs.
        // SAFETY: all of it was just allocated.
        unsafe { start.write_bytes(FILL, layout.size()) };
        Ok(Self { start, layout })
    }

    #[inline(always)]
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    #[inline(always)]
    pub(crate) fn bytes(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and by contract nobody has a hold on it: whoever
        // cannot say so forgets it instead.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}
