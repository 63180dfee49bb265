//! Pages that nothing has touched, and what the system takes to lock them.

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mlock, mmap_anonymous, munlock, munmap};
use rustix::process::{Resource, getrlimit};
use std::ptr::{NonNull, null_mut};

/// Bytes of a page of this system: 4 KiB on x86-64, up to 64 KiB on aarch64.
pub fn page_bytes() -> usize {
    #[cfg(all(test, not(miri)))]
    if let Some(bytes) = pretended::BYTES.get() {
        return bytes;
    }
    rustix::param::page_size()
}

/// Larger pages than those of the system, for tests.
#[cfg(all(test, not(miri)))]
pub(crate) mod pretended {
    use std::cell::Cell;

    thread_local! {
        pub(super) static BYTES: Cell<Option<usize>> = const { Cell::new(None) };
    }

    /// Runs a test with pages of so many bytes, a multiple of those of the system.
    pub(crate) fn with_pages_of(bytes: usize, test: impl FnOnce()) {
        BYTES.set(Some(bytes));
        test();
        BYTES.set(None);
    }
}

/// The most bytes that a process may lock, where there is a limit. Privileged ones may lock more.
pub fn lock_limit_bytes() -> Option<u64> {
    getrlimit(Resource::Memlock).current
}

/// Memory of this process that it has not read from or written to yet.
#[derive(Debug)]
pub struct Pages {
    base: NonNull<u8>,
    bytes: usize,
}

impl Pages {
    /// At least `bytes` bytes, in whole pages. None of them is there before it is touched.
    ///
    /// # Errors
    /// The system has no room for them.
    pub fn untouched(bytes: usize) -> Result<Self, Errno> {
        let bytes = bytes.max(1);
        // SAFETY: a new mapping at an address that the kernel chooses.
        let base = unsafe {
            mmap_anonymous(null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)?
        };
        NonNull::new(base.cast()).map(|base| Self { base, bytes }).ok_or(Errno::NOMEM)
    }

    /// Where they begin.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Bytes that were asked for, one at least.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Writes to every page.
    pub fn touch(&mut self) {
        for offset in (0..self.bytes).step_by(page_bytes()) {
            // SAFETY: inside of the mapping, which is this value's alone.
            unsafe { self.base.add(offset).write_volatile(1) };
        }
    }

    /// Has the system keep them in memory. False where it refuses: a process may lock so much and no
    /// more.
    ///
    /// # Errors
    /// The system fails otherwise.
    pub fn lock(&mut self) -> Result<bool, Errno> {
        // SAFETY: a mapping of this length is there; locking changes nothing of what is in it.
        match unsafe { mlock(self.base.as_ptr().cast(), self.bytes) } {
            Ok(()) => Ok(true),
            Err(Errno::NOMEM | Errno::PERM | Errno::AGAIN) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Takes that back.
    ///
    /// # Errors
    /// The system fails.
    pub fn unlock(&mut self) -> Result<(), Errno> {
        // SAFETY: a mapping of this length is there; unlocking changes nothing of what is in it.
        unsafe { munlock(self.base.as_ptr().cast(), self.bytes) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's alone, and ends with it.
        unsafe {
            // Unmapping what is mapped cannot fail.
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
