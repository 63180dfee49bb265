//! A region in a sealed memfd. One process creates it, and another opens it through the creator's descriptor.
//! It is anonymous, so that no file is left behind when both processes have ended. It is sealed, so that
//! neither process can shrink it while the other uses it.

use crate::copy::copy;
use crate::pages::page_bytes;
use crate::random;
use crate::region::Region;
use memmap2::MmapOptions;
use rustix::fs::{
    FallocateFlags, MemfdFlags, Mode, OFlags, SealFlags, fallocate, fcntl_add_seals, fcntl_get_seals, fstat,
    ftruncate, memfd_create, open,
};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use thiserror::Error;

/// Length in bytes of the random nonce that identifies a segment.
pub const NONCE_LEN: usize = 16;

/// The seals that a process requires before it maps memory of another process. If the file could shrink, an
/// access behind its end would kill the process.
pub(crate) const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// Reports why a segment could not be created or opened.
#[derive(Debug, Error)]
pub enum SegmentError {
    /// The system refused an operation.
    #[error("the system refused to {what}: {error}")]
    System {
        /// The operation.
        what: &'static str,
        /// The system's error.
        #[source]
        error: io::Error,
    },
    /// This process can open no memory at that descriptor.
    #[error(
        "process {pid} has no shared memory that this process may open: is it on this host, of this user, and alive? ({error})"
    )]
    NotThere {
        /// The process identifier.
        pid: u32,
        /// The system's error.
        #[source]
        error: io::Error,
    },
    /// The opened file is not the expected segment. The value is the process identifier.
    #[error("what process {0} has at that descriptor is not the segment that was meant")]
    Foreign(u32),
}

pub(crate) fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> SegmentError {
    move |error| SegmentError::System { what, error: error.into() }
}

/// A segment that this process created.
#[derive(Debug)]
pub struct Segment {
    /// Its memory. The first bytes hold the nonce.
    pub region: Arc<Region>,
    fd: OwnedFd,
    nonce: [u8; NONCE_LEN],
}

impl Segment {
    /// Creates a segment of at least `len` bytes.
    pub fn create(len: usize) -> Result<Self, SegmentError> {
        let len = len.max(1).next_multiple_of(page_bytes());
        let fd = memfd_create(c"netdyno", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
            .map_err(system("make a memfd"))?;
        ftruncate(&fd, len as u64).map_err(system("size a memfd"))?;
        fcntl_add_seals(&fd, SEALS).map_err(system("seal a memfd"))?;
        let region = map(&fd, len)?;
        let nonce = random::bytes::<NONCE_LEN>().map_err(system("give random bytes"))?;
        // SAFETY: the region is longer than a nonce, and no other code knows of it yet.
        unsafe { region.at(0, NONCE_LEN).as_ptr().copy_from_nonoverlapping(nonce.as_ptr(), NONCE_LEN) };
        Ok(Self { region: Arc::new(region), fd, nonce })
    }

    /// Returns the descriptor number through which another process opens the segment.
    pub fn descriptor(&self) -> u32 {
        // Descriptors are not negative.
        self.fd.as_raw_fd().unsigned_abs()
    }

    /// Returns the descriptor, to be passed to another process.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Removes the memory from byte `from` on from the reach of other processes. `from` must be the start of
    /// a page. This process keeps the present contents at the same address. The shared pages are returned to
    /// the system.
    ///
    /// # Errors
    /// Returns `SegmentError` if the system has no memory for the private copy.
    pub fn withdraw(&self, from: usize) -> Result<(), SegmentError> {
        let len = self.region.len() - from;
        if len == 0 {
            return Ok(());
        }
        self.region.make_private(from).map_err(system("make shared memory private"))?;
        self.give_back(from);
        Ok(())
    }

    /// Returns the pages from byte `from` on, the start of a page, to the system, although other processes may map them.
    /// They are zero then.
    pub fn give_back(&self, from: usize) {
        let len = self.region.len() - from;
        if len == 0 {
            return;
        }
        // A failure only wastes memory while a peer still maps the segment.
        let _ = fallocate(
            &self.fd,
            FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
            from as u64,
            len as u64,
        );
    }

    /// Returns the nonce that identifies the segment.
    pub fn nonce(&self) -> [u8; NONCE_LEN] {
        self.nonce
    }
}

/// Opens the segment of at least `len` bytes that process `pid` has at descriptor `fd`. It refuses any other
/// file at that descriptor.
pub fn open_segment(pid: u32, fd: u32, nonce: [u8; NONCE_LEN], len: usize) -> Result<Region, SegmentError> {
    let len = len.max(1).next_multiple_of(page_bytes());
    let path = format!("/proc/{pid}/fd/{fd}");
    // NONBLOCK keeps the open from hanging on a pipe. NOCTTY keeps a terminal from becoming the controlling
    // terminal of this process.
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let fd = open(path, flags, Mode::empty())
        .map_err(|error| SegmentError::NotThere { pid, error: error.into() })?;
    if !is_segment(&fd, len) {
        return Err(SegmentError::Foreign(pid));
    }
    let region = map(&fd, len)?;
    let mut found = [0; NONCE_LEN];
    // SAFETY: the region is longer than a nonce, and all access to it is by atomics and atomic copies. The
    // check uses the copy, because the original may change.
    unsafe { copy(region.at(0, NONCE_LEN).as_ptr(), found.as_mut_ptr(), NONCE_LEN) };
    if found != nonce {
        return Err(SegmentError::Foreign(pid));
    }
    Ok(region)
}

/// Maps the segment of at least `len` bytes that process `pid` has passed. It refuses any other file.
///
/// # Errors
/// Returns `SegmentError` if the file is no such segment, or if the system does not map it.
pub fn map_segment(pid: u32, fd: impl AsFd, len: usize) -> Result<Region, SegmentError> {
    let len = len.max(1).next_multiple_of(page_bytes());
    if is_segment(&fd, len) { map(fd, len) } else { Err(SegmentError::Foreign(pid)) }
}

/// Reports whether a descriptor is a segment of exactly `len` bytes that no process can shrink.
pub(crate) fn is_segment(fd: impl AsFd, len: usize) -> bool {
    fcntl_get_seals(&fd).is_ok_and(|seals| seals.contains(SEALS))
        && fstat(&fd).is_ok_and(|stat| stat.st_size == len as i64)
}

fn map(fd: impl AsFd, len: usize) -> Result<Region, SegmentError> {
    MmapOptions::new().len(len).map_raw(&fd.as_fd()).map(Region).map_err(system("map shared memory"))
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn both_mappings_see_the_same_bytes() {
        let made = Segment::create(10_000).unwrap();
        let opened = open_segment(std::process::id(), made.descriptor(), made.nonce(), 10_000).unwrap();
        // SAFETY: inside both regions, and there is no other access.
        unsafe {
            made.region.at(9_000, 1).write(42);
            assert_eq!(opened.at(9_000, 1).read(), 42);
        }
    }

    #[test]
    fn what_is_not_the_segment_is_refused() {
        let page = page_bytes();
        let made = Segment::create(page).unwrap();
        let pid = std::process::id();
        let open = |fd, nonce, len| open_segment(pid, fd, nonce, len).unwrap_err();
        assert!(matches!(open(made.descriptor(), [0; 16], page), SegmentError::Foreign(_)));
        assert!(matches!(open(made.descriptor(), made.nonce(), 2 * page), SegmentError::Foreign(_)));
        assert!(matches!(
            open(0, made.nonce(), page),
            SegmentError::Foreign(_) | SegmentError::NotThere { .. }
        ));
        assert!(matches!(open(9999, made.nonce(), page), SegmentError::NotThere { .. }));
        assert!(matches!(open_segment(u32::MAX, 0, made.nonce(), page), Err(SegmentError::NotThere { .. })));
    }

    #[test]
    fn a_segment_cannot_be_shrunk() {
        let made = Segment::create(1).unwrap();
        assert_eq!(ftruncate(&made.fd, 0), Err(rustix::io::Errno::PERM));
    }
}
