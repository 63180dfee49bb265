//! Memory of one process that other processes map read-only. A send from such memory is zero-copy for the
//! sender: the receiver copies the data once, directly from the sender's memory.
//!
//! The memory is a memfd that its owner maps and then seals. After that no process can shrink the file or map
//! it writable (`F_SEAL_FUTURE_WRITE`, Linux 5.1).

use crate::bytes::Readable;
use crate::pages::{base, page_bytes};
use crate::segment::{SEALS, SegmentError, is_segment, system};
use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

/// Memory of this process that other processes can map for reading.
#[derive(Debug)]
pub struct Loan {
    memory: MmapRaw,
    fd: OwnedFd,
}

impl Loan {
    /// Creates at least `len` zeroed bytes that start on a page.
    ///
    /// # Errors
    /// Returns `SegmentError` if the system refuses the memory.
    pub fn create(len: usize) -> Result<Self, SegmentError> {
        let len = len.max(1).checked_next_multiple_of(page_bytes()).ok_or(Errno::NOMEM);
        let len = len.map_err(system("map so much memory"))?;
        let fd = memfd_create(c"netdyno-lent", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
            .map_err(system("make a memfd"))?;
        ftruncate(&fd, len as u64).map_err(system("size a memfd"))?;
        let memory = MmapOptions::new().len(len).map_raw(&fd).map_err(system("map memory"))?;
        fcntl_add_seals(&fd, SealFlags::FUTURE_WRITE | SEALS).map_err(system("seal a memfd"))?;
        Ok(Self { memory, fd })
    }

    /// Returns the address of the first byte.
    pub fn base(&self) -> NonNull<u8> {
        base(&self.memory)
    }

    /// Returns the length in bytes, a whole number of pages.
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    /// Reports whether the memory is empty, which it never is.
    pub fn is_empty(&self) -> bool {
        self.memory.len() == 0
    }

    /// Returns the descriptor, to be passed to the process that is to read the memory.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A read-only mapping of another process's memory.
#[derive(Debug)]
pub struct Borrowed(MmapRaw);

impl Borrowed {
    /// Maps memory that another process has passed. Returns `None` if the file has another length, or if it
    /// could still shrink.
    pub fn open(fd: impl AsFd, len: u64) -> Option<Self> {
        let len = usize::try_from(len).ok().filter(|len| *len > 0 && len.is_multiple_of(page_bytes()))?;
        if !is_segment(&fd, len) {
            return None;
        }
        MmapOptions::new().len(len).map_raw_read_only(&fd.as_fd()).ok().map(Self)
    }

    /// Returns the `len` bytes from `offset` on, readable while the mapping is borrowed. Returns `None` if
    /// there are fewer bytes.
    ///
    /// ```compile_fail,E0505
    /// use netdyno_host::loan::{Borrowed, Loan};
    /// let loan = Loan::create(1).unwrap();
    /// let borrowed = Borrowed::open(loan.as_fd(), loan.len() as u64).unwrap();
    /// let bytes = borrowed.bytes(0, 1).unwrap();
    /// drop(borrowed);
    /// bytes.read(&mut [0]);
    /// ```
    pub fn bytes(&self, offset: u64, len: usize) -> Option<Readable<'_>> {
        let offset = usize::try_from(offset).ok()?;
        let end = offset.checked_add(len)?;
        if end > self.0.len() {
            return None;
        }
        // SAFETY: the offset is inside the mapping, or just behind its last byte.
        let base = unsafe { base(&self.0).add(offset) };
        // SAFETY: these bytes stay mapped while `self` is borrowed. No code of this process has a
        // reference to them or writes to them, because the mapping is read-only.
        Some(unsafe { Readable::new(base, len) })
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use crate::segment::Segment;

    fn first_bytes(borrowed: &Borrowed) -> Vec<u8> {
        let mut bytes = Vec::new();
        borrowed.bytes(0, 3).expect("a page has three bytes").append_to(&mut bytes);
        bytes
    }

    #[test]
    fn what_the_owner_writes_is_read_and_stays_when_it_is_gone() {
        let loan = Loan::create(5000).unwrap();
        assert_eq!(loan.len(), 5000_usize.next_multiple_of(page_bytes()));
        let borrowed = Borrowed::open(loan.as_fd(), loan.len() as u64).unwrap();
        // SAFETY: inside the memory, and no code has a reference to it.
        unsafe { loan.base().as_ptr().copy_from_nonoverlapping([1, 2, 3].as_ptr(), 3) };
        assert_eq!(first_bytes(&borrowed), [1, 2, 3]);
        drop(loan);
        assert_eq!(first_bytes(&borrowed), [1, 2, 3]);
    }

    #[test]
    fn nobody_else_writes_or_shortens_it() {
        let loan = Loan::create(page_bytes()).unwrap();
        assert_eq!(ftruncate(loan.as_fd(), 0), Err(Errno::PERM));
        let writing = MmapRaw::map_raw(&loan.as_fd()).unwrap_err();
        assert_eq!(Errno::from_io_error(&writing), Some(Errno::PERM));
        let _ = rustix::io::write(loan.as_fd(), &[9]).expect_err("it is sealed");
    }

    #[test]
    fn what_is_none_is_not_borrowed() {
        let page = page_bytes() as u64;
        let loan = Loan::create(page_bytes()).unwrap();
        assert!(Borrowed::open(loan.as_fd(), 2 * page).is_none());
        assert!(Borrowed::open(loan.as_fd(), 0).is_none());
        assert!(Borrowed::open(loan.as_fd(), u64::MAX).is_none());
        let unsealed = memfd_create(c"short", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&unsealed, page).unwrap();
        assert!(Borrowed::open(&unsealed, page).is_none());
        assert!(Borrowed::open(std::io::stdin(), page).is_none());
        assert!(Borrowed::open(Segment::create(page_bytes()).unwrap().as_fd(), page).is_some());
    }

    #[test]
    fn no_bytes_beyond_the_mapping_are_read() {
        let loan = Loan::create(page_bytes()).unwrap();
        let (bytes, end) = (page_bytes(), page_bytes() as u64);
        let borrowed = Borrowed::open(loan.as_fd(), end).unwrap();
        for (offset, len) in [(0, bytes), (end, 0), (end - 1, 1)] {
            assert_eq!(borrowed.bytes(offset, len).unwrap().len(), len);
        }
        for (offset, len) in [(0, bytes + 1), (end, 1), (u64::MAX, 1), (1, usize::MAX)] {
            assert!(borrowed.bytes(offset, len).is_none());
        }
    }
}
