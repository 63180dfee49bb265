//! A word in a file that other processes write. It publishes a value to all processes of a host, and each of
//! them reads it at the cost of one load.

use memmap2::{MmapOptions, MmapRaw};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
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
pub struct SharedWord(MmapRaw);

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
        let word = MmapOptions::new().offset(offset as u64).len(size_of::<u32>()).map_raw_read_only(&file);
        word.map(Self).map_err(refused)
    }

    /// Returns the current value.
    #[inline]
    pub fn get(&self) -> u32 {
        // SAFETY: four aligned bytes, which stay mapped while `self` lives. Other processes may write them at
        // any time, so they are only read as an atomic. Read-only memory allows atomic loads with relaxed
        // ordering. If the file is truncated, the access kills this process and has no other effect.
        unsafe { &*self.0.as_ptr().cast::<AtomicU32>() }.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use crate::pages::page_bytes;
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
        for offset in [0, 12, page_bytes() + 8, (64 << 10) + 8] {
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
