//! A word in a file that other processes write. It publishes a value to all processes of a host, and each of
//! them reads it at the cost of one load.

use crate::pages::page_bytes;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use thiserror::Error;

/// Reports why the word could not be mapped.
#[derive(Debug, Error)]
pub enum SharedWordError {
    /// The offset is not a multiple of 4.
    #[error("there is no word at byte {0} of a file: use a multiple of 4")]
    Offset(usize),
    /// The file does not exist, is not readable, or cannot be mapped.
    #[error("{path} cannot be mapped: {error}", path = .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        error: io::Error,
    },
    /// The file ends before the end of the word.
    #[error("{path} ends before the word at byte {offset}", path = .path.display())]
    Short {
        /// The file.
        path: PathBuf,
        /// Offset of the word in bytes.
        offset: usize,
    },
}

/// A 32-bit word of a file, in host byte order. This process only reads it.
#[derive(Debug)]
pub struct SharedWord {
    /// The page that holds the word.
    page: NonNull<u8>,
    page_bytes: usize,
    /// Offset of the word in the page, in bytes.
    at: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread.
unsafe impl Send for SharedWord {}
// SAFETY: concurrent threads only read, by atomics.
unsafe impl Sync for SharedWord {}

impl SharedWord {
    /// Maps the word at byte `offset` of a file. The file must not be truncated while it is mapped.
    ///
    /// # Errors
    /// Returns `SharedWordError` if the file cannot be mapped, or if it has no word at `offset`.
    pub fn map(path: &Path, offset: usize) -> Result<Self, SharedWordError> {
        let end = offset.checked_add(size_of::<u32>()).filter(|_| offset.is_multiple_of(size_of::<u32>()));
        let end = end.ok_or(SharedWordError::Offset(offset))?;
        let refused = |error| SharedWordError::File { path: path.into(), error };
        let file = File::open(path).map_err(refused)?;
        if file.metadata().map_err(refused)?.len() < end as u64 {
            return Err(SharedWordError::Short { path: path.into(), offset });
        }
        // A mapping must begin at a page boundary.
        let page_bytes = page_bytes();
        let at = offset % page_bytes;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let page = unsafe {
            let start = (offset - at) as u64;
            mmap(std::ptr::null_mut(), page_bytes, ProtFlags::READ, MapFlags::SHARED, &file, start)
        };
        let page = page.map_err(|error| refused(error.into()))?;
        let page = NonNull::new(page.cast()).ok_or_else(|| refused(Errno::FAULT.into()))?;
        Ok(Self { page, page_bytes, at })
    }

    /// Returns the current value.
    #[inline]
    pub fn get(&self) -> u32 {
        // SAFETY: four aligned bytes of the page, which stays mapped while `self` lives. Other processes may
        // write them at any time, so they are only read as an atomic. Read-only memory allows atomic loads
        // with relaxed ordering. If the file is truncated, the access kills this process and has no other
        // effect.
        unsafe { self.page.add(self.at).cast::<AtomicU32>().as_ref() }.load(Ordering::Relaxed)
    }
}

impl Drop for SharedWord {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping, which ends with it.
        unsafe {
            // Unmapping an existing mapping cannot fail.
            let _ = munmap(self.page.as_ptr().cast(), self.page_bytes);
        }
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use crate::pages::pretended::with_pages_of;
    use std::fs::OpenOptions;
    use std::os::unix::fs::FileExt;

    /// A temporary file, removed on drop.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str, bytes: &[u8]) -> Self {
            let path = std::env::temp_dir().join(format!("netdyno-{name}-{}", std::process::id()));
            std::fs::write(&path, bytes).expect("a folder for what is temporary");
            Self(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    #[test]
    fn what_is_written_is_seen() {
        for offset in [0, 12, page_bytes() + 8] {
            let scratch = Scratch::new(&format!("word-{offset}"), &vec![0; offset + 4]);
            let word = SharedWord::map(&scratch.0, offset).unwrap();
            let file = OpenOptions::new().write(true).open(&scratch.0).unwrap();
            for value in [0, 7, u32::MAX] {
                file.write_all_at(&u32::to_ne_bytes(value), offset as u64).unwrap();
                assert_eq!(word.get(), value);
            }
        }
    }

    #[test]
    fn a_word_is_found_in_its_page_whatever_the_size_of_pages() {
        for page in [page_bytes(), 64 << 10] {
            with_pages_of(page, || {
                let mut bytes = vec![0; page + 12];
                bytes[page + 8] = 9;
                let scratch = Scratch::new(&format!("word-{page}"), &bytes);
                let word = SharedWord::map(&scratch.0, page + 8).unwrap();
                assert_eq!((word.page_bytes, word.at, word.get().to_le()), (page, 8, 9));
            });
        }
    }

    #[test]
    fn what_is_no_word_is_refused() {
        let scratch = Scratch::new("no-word", &[0; 15]);
        let refused = |offset| SharedWord::map(&scratch.0, offset).unwrap_err();
        assert!(matches!(refused(12), SharedWordError::Short { offset: 12, .. }));
        assert!(matches!(refused(6), SharedWordError::Offset(6)));
        assert!(matches!(
            refused(usize::MAX & !3),
            SharedWordError::Offset(_) | SharedWordError::Short { .. }
        ));
        let nowhere = SharedWord::map(Path::new("/nonexistent/page"), 0).unwrap_err();
        assert!(nowhere.to_string().contains("/nonexistent/page cannot be mapped"), "{nowhere}");
    }
}
