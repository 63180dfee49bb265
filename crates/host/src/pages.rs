//! Anonymous memory that is not yet resident, and the system's limit and cost of locking it.

use memmap2::{MmapOptions, MmapRaw};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::io;
use std::ptr::NonNull;

/// Returns the page size of this system in bytes: 4 KiB on x86-64, up to 64 KiB on aarch64.
pub fn page_bytes() -> usize {
    #[cfg(all(test, not(miri)))]
    if let Some(bytes) = pretended::BYTES.get() {
        return bytes;
    }
    rustix::param::page_size()
}

/// Simulates larger pages for tests.
#[cfg(all(test, not(miri)))]
pub(crate) mod pretended {
    use std::cell::Cell;

    thread_local! {
        pub(super) static BYTES: Cell<Option<usize>> = const { Cell::new(None) };
    }

    /// Runs a test with a page size of `bytes`, a multiple of the system's.
    pub(crate) fn with_pages_of(bytes: usize, test: impl FnOnce()) {
        BYTES.set(Some(bytes));
        test();
        BYTES.set(None);
    }
}

/// Returns the limit of locked memory of this process in bytes, or `None` if there is none. Privileged
/// processes may exceed it.
pub fn lock_limit_bytes() -> Option<u64> {
    getrlimit(Resource::Memlock).current
}

/// Maps `bytes` bytes of zeroed memory of this process. No page is resident before it is touched.
pub(crate) fn anonymous(bytes: usize) -> io::Result<MmapRaw> {
    Ok(MmapOptions::new().len(bytes).map_anon()?.into())
}

/// Returns the address of the first byte of a mapping.
pub(crate) fn base(memory: &MmapRaw) -> NonNull<u8> {
    NonNull::new(memory.as_mut_ptr()).expect("the kernel maps nothing at address 0")
}

/// Anonymous memory of this process.
#[derive(Debug)]
pub struct Pages(MmapRaw);

impl Pages {
    /// Maps at least `bytes` bytes. No page is resident before it is touched.
    ///
    /// # Errors
    /// Returns an error if the system has no space for the mapping.
    pub fn untouched(bytes: usize) -> io::Result<Self> {
        anonymous(bytes.max(1)).map(Self)
    }

    /// Returns the address of the first byte.
    pub fn base(&self) -> NonNull<u8> {
        base(&self.0)
    }

    /// Returns the requested length in bytes, at least 1.
    pub fn bytes(&self) -> usize {
        self.0.len()
    }

    /// Writes to every page, so that all become resident.
    pub fn touch(&mut self) {
        for offset in (0..self.bytes()).step_by(page_bytes()) {
            // SAFETY: inside the mapping, which this value owns.
            unsafe { self.base().add(offset).write_volatile(1) };
        }
    }

    /// Locks the pages in memory. Returns `false` if the system refuses because of the limit of locked
    /// memory.
    ///
    /// # Errors
    /// Returns an error if locking fails for another reason.
    pub fn lock(&mut self) -> io::Result<bool> {
        let locked = self.0.lock();
        match locked.as_ref().err().and_then(Errno::from_io_error) {
            Some(Errno::NOMEM | Errno::PERM | Errno::AGAIN) => Ok(false),
            _ => locked.map(|()| true),
        }
    }

    /// Unlocks the pages.
    ///
    /// # Errors
    /// Returns an error if the system refuses.
    pub fn unlock(&mut self) -> io::Result<()> {
        self.0.unlock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_can_be_touched_and_locked() {
        for bytes in [0, 1, page_bytes(), 10 * page_bytes() + 1] {
            let mut pages = Pages::untouched(bytes).unwrap();
            pages.touch();
            if pages.lock().unwrap() {
                pages.unlock().unwrap();
            }
        }
        assert!(Pages::untouched(usize::MAX / 2).is_err());
    }
}
