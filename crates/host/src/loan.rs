//! Memory of one process that it lets others read, and write never: what is sent from there is copied
//! once, by whoever it is sent to.
//!
//! It is a memfd that its owner has mapped and then sealed: nobody can make it shorter, or get it
//! mapped for writing any more (`F_SEAL_FUTURE_WRITE`, Linux 5.1).

use crate::bytes::Stretch;
use crate::region::PAGE;
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

// SAFETY: plain memory, of which only copies are made here.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps all `len` bytes, whole pages, of a file.
    fn new(fd: impl AsFd, len: usize, leave: ProtFlags) -> Result<Self, Errno> {
        // SAFETY: a new mapping at an address that the kernel chooses.
        let base = unsafe { mmap(std::ptr::null_mut(), len, leave, MapFlags::SHARED, fd, 0)? };
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
        let len = len.max(1).checked_next_multiple_of(PAGE).ok_or(Errno::NOMEM);
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
        let len = usize::try_from(len).ok().filter(|len| *len > 0 && len.is_multiple_of(PAGE))?;
        if !is_segment(&fd, len) {
            return None;
        }
        Mapping::new(fd, len, ProtFlags::READ).ok().map(Self)
    }

    /// The `len` bytes from `offset` on, to be copied from: at most until this is gone. `None` where
    /// there are fewer.
    pub fn stretch(&self, offset: u64, len: usize) -> Option<Stretch> {
        let offset = usize::try_from(offset).ok()?;
        let end = offset.checked_add(len)?;
        if end > self.0.len {
            return None;
        }
        // SAFETY: the offset is inside, or just behind the last byte.
        let base = unsafe { self.0.base.add(offset) };
        // SAFETY: so many bytes can be read there, and nobody has a reference to them. That they
        // cannot be written is for the caller, who copies from them.
        Some(unsafe { Stretch::new(base, len) })
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use crate::segment::Segment;

    fn first_bytes(borrowed: &Borrowed) -> Vec<u8> {
        let mut bytes = Vec::new();
        borrowed.stretch(0, 3).into_iter().for_each(|stretch| stretch.append_to(&mut bytes));
        bytes
    }

    #[test]
    fn what_the_owner_writes_is_read_and_stays_when_it_is_gone() {
        let loan = Loan::create(5000).unwrap();
        assert_eq!(loan.len(), 8192);
        let borrowed = Borrowed::open(loan.as_fd(), 8192).unwrap();
        // SAFETY: inside, and nobody has a reference.
        unsafe { loan.base().as_ptr().copy_from_nonoverlapping([1, 2, 3].as_ptr(), 3) };
        assert_eq!(first_bytes(&borrowed), [1, 2, 3]);
        drop(loan);
        assert_eq!(first_bytes(&borrowed), [1, 2, 3]);
    }

    #[test]
    fn nobody_else_writes_or_shortens_it() {
        let loan = Loan::create(4096).unwrap();
        assert_eq!(ftruncate(loan.as_fd(), 0), Err(Errno::PERM));
        let writing = Mapping::new(loan.as_fd(), 4096, ProtFlags::READ | ProtFlags::WRITE);
        assert_eq!(writing.err(), Some(Errno::PERM));
        let _ = rustix::io::write(loan.as_fd(), &[9]).expect_err("it is sealed");
    }

    #[test]
    fn what_is_none_is_not_borrowed() {
        let loan = Loan::create(4096).unwrap();
        assert!(Borrowed::open(loan.as_fd(), 8192).is_none());
        assert!(Borrowed::open(loan.as_fd(), 0).is_none());
        assert!(Borrowed::open(loan.as_fd(), u64::MAX).is_none());
        let unsealed = memfd_create(c"short", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&unsealed, 4096).unwrap();
        assert!(Borrowed::open(&unsealed, 4096).is_none());
        assert!(Borrowed::open(std::io::stdin(), 4096).is_none());
        assert!(Borrowed::open(Segment::create(4096).unwrap().as_fd(), 4096).is_some());
    }

    #[test]
    fn no_stretch_leaves_it() {
        let loan = Loan::create(4096).unwrap();
        let borrowed = Borrowed::open(loan.as_fd(), 4096).unwrap();
        for (offset, len) in [(0, 4096), (4096, 0), (4095, 1)] {
            assert_eq!(borrowed.stretch(offset, len).unwrap().len(), len);
        }
        for (offset, len) in [(0, 4097), (4096, 1), (u64::MAX, 1), (1, usize::MAX)] {
            assert!(borrowed.stretch(offset, len).is_none());
        }
    }
}
