//! Memory of one process that it lets others read, and write never: what is sent from there is copied
//! once, by whoever it is sent to.
//!
//! It is a memfd that its owner has mapped and then sealed: nobody can make it shorter, or get it
//! mapped for writing any more (`F_SEAL_FUTURE_WRITE`, Linux 5.1).

use crate::bytes::Readable;
use crate::pages::page_bytes;
use crate::segment::{SEALS, SegmentError, is_segment};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

/// A mapping, until it is dropped.
#[derive(Debug)]
struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread.
unsafe impl Send for Mapping {}
// SAFETY: here the memory is only read, by copies of atomic bytes, which may race with whatever its owner writes.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps all `len` bytes, whole pages, of a file, for reading or for writing as well.
    fn new(fd: impl AsFd, len: usize, access: ProtFlags) -> Result<Self, Errno> {
        // SAFETY: a new mapping at an address that the kernel chooses.
        let base = unsafe { mmap(std::ptr::null_mut(), len, access, MapFlags::SHARED, fd, 0)? };
        Ok(Self { base: NonNull::new(base.cast()).ok_or(Errno::FAULT)?, len })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and ends with us. Unmapping what is mapped cannot fail.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
    }
}

/// Memory of this process that others can be let read.
#[derive(Debug)]
pub struct Loan {
    memory: Mapping,
    fd: OwnedFd,
}

impl Loan {
    /// At least `len` bytes of zeros, which start on a page.
    ///
    /// # Errors
    /// The system gives no such memory.
    pub fn create(len: usize) -> Result<Self, SegmentError> {
        let system = |what| move |error| SegmentError::System { what, error };
        let len = len.max(1).checked_next_multiple_of(page_bytes()).ok_or(Errno::NOMEM);
        let len = len.map_err(system("map so much memory"))?;
        let fd = memfd_create(c"netdyno-lent", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
            .map_err(system("make a memfd"))?;
        ftruncate(&fd, len as u64).map_err(system("size a memfd"))?;
        let memory =
            Mapping::new(&fd, len, ProtFlags::READ | ProtFlags::WRITE).map_err(system("map memory"))?;
        fcntl_add_seals(&fd, SealFlags::FUTURE_WRITE | SEALS).map_err(system("seal a memfd"))?;
        Ok(Self { memory, fd })
    }

    /// The first byte.
    pub fn base(&self) -> NonNull<u8> {
        self.memory.base
    }

    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.memory.len
    }

    /// Whether there are none. There always are.
    pub fn is_empty(&self) -> bool {
        self.memory.len == 0
    }

    /// What is passed to whoever is to read.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Memory of another process, which this one can read.
#[derive(Debug)]
pub struct Borrowed(Mapping);

impl Borrowed {
    /// Maps what another process has passed. `None` where it is no memory of that length, or can
    /// become shorter.
    pub fn open(fd: impl AsFd, len: u64) -> Option<Self> {
        let len = usize::try_from(len).ok().filter(|len| *len > 0 && len.is_multiple_of(page_bytes()))?;
        if !is_segment(&fd, len) {
            return None;
        }
        Mapping::new(fd, len, ProtFlags::READ).ok().map(Self)
    }

    /// The `len` bytes from `offset` on, which can be read as long as the mapping is borrowed. `None` where
    /// there are fewer.
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
        if end > self.0.len {
            return None;
        }
        // SAFETY: the offset is inside, or just behind the last byte.
        let base = unsafe { self.0.base.add(offset) };
        // SAFETY: so many bytes are mapped there for as long as `self` is borrowed. Nobody in this process has a
        // reference to them or writes to them: the mapping is for reading only.
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
        // SAFETY: inside, and nobody has a reference.
        unsafe { loan.base().as_ptr().copy_from_nonoverlapping([1, 2, 3].as_ptr(), 3) };
        assert_eq!(first_bytes(&borrowed), [1, 2, 3]);
        drop(loan);
        assert_eq!(first_bytes(&borrowed), [1, 2, 3]);
    }

    #[test]
    fn nobody_else_writes_or_shortens_it() {
        let loan = Loan::create(page_bytes()).unwrap();
        assert_eq!(ftruncate(loan.as_fd(), 0), Err(Errno::PERM));
        let writing = Mapping::new(loan.as_fd(), page_bytes(), ProtFlags::READ | ProtFlags::WRITE);
        assert_eq!(writing.err(), Some(Errno::PERM));
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
