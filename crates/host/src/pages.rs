//! Anonymous memory that is not yet resident, and the system's limit and cost of locking it.

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mlock, mmap_anonymous, munlock, munmap};
use rustix::process::{Resource, getrlimit};
use std::ptr::{NonNull, null_mut};

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

/// Anonymous memory of this process.
#[derive(Debug)]
pub struct Pages {
    base: NonNull<u8>,
    bytes: usize,
}

impl Pages {
    /// Maps at least `bytes` bytes. No page is resident before it is touched.
    ///
    /// # Errors
    /// Returns `Errno` if the system has no space for the mapping.
    pub fn untouched(bytes: usize) -> Result<Self, Errno> {
        let bytes = bytes.max(1);
        // SAFETY: a new mapping at an address that the kernel chooses.
        let base = unsafe {
            mmap_anonymous(null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)?
        };
        NonNull::new(base.cast()).map(|base| Self { base, bytes }).ok_or(Errno::NOMEM)
    }

    /// Returns the address of the first byte.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Returns the requested length in bytes, at least 1.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Writes to every page, so that all become resident.
    pub fn touch(&mut self) {
        for offset in (0..self.bytes).step_by(page_bytes()) {
            // SAFETY: inside the mapping, which this value owns.
            unsafe { self.base.add(offset).write_volatile(1) };
        }
    }

    /// Locks the pages in memory. Returns `false` if the system refuses because of the limit of locked
    /// memory.
    ///
    /// # Errors
    /// Returns `Errno` if locking fails for another reason.
    pub fn lock(&mut self) -> Result<bool, Errno> {
        // SAFETY: a mapping of this length exists. Locking does not change its contents.
        match unsafe { mlock(self.base.as_ptr().cast(), self.bytes) } {
            Ok(()) => Ok(true),
            Err(Errno::NOMEM | Errno::PERM | Errno::AGAIN) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Unlocks the pages.
    ///
    /// # Errors
    /// Returns `Errno` if the system refuses.
    pub fn unlock(&mut self) -> Result<(), Errno> {
        // SAFETY: a mapping of this length exists. Unlocking does not change its contents.
        unsafe { munlock(self.base.as_ptr().cast(), self.bytes) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping, which ends with it.
        unsafe {
            // Unmapping an existing mapping cannot fail.
            let _ = munmap(self.base.as_ptr().cast(), self.bytes);
        }
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
