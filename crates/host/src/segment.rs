//! A region in a sealed memfd: made by one process, opened by another through the
//! maker's descriptor. Anonymous, so that nothing is left when both are gone; sealed,
//! so that neither can shrink it under the other.

use crate::copy::copy;
use crate::pages::page_bytes;
use crate::random;
use crate::region::Region;
use rustix::fs::{
    FallocateFlags, MemfdFlags, Mode, OFlags, SealFlags, fallocate, fcntl_add_seals, fcntl_get_seals, fstat,
    ftruncate, memfd_create, open,
};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use thiserror::Error;

/// Length of the random number that tells segments apart.
pub const NONCE_LEN: usize = 16;

/// What whoever maps memory of another process insists on: memory that went away under it would end
/// its process.
pub(crate) const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// Why a segment could not be made or opened.
#[derive(Debug, Error)]
pub enum SegmentError {
    /// The system refused.
    #[error("the system refused to {what}: {error}")]
    System {
        /// What was asked of it.
        what: &'static str,
        /// What it said.
        #[source]
        error: Errno,
    },
    /// Nothing can be opened at that address.
    #[error(
        "process {pid} has no shared memory that this process may open: is it on this host, of this user, and alive? ({error})"
    )]
    NotThere {
        /// The process.
        pid: u32,
        /// What the system said.
        #[source]
        error: Errno,
    },
    /// What was opened is not the segment that was meant.
    #[error("what process {0} has at that descriptor is not the segment that was meant")]
    Foreign(u32),
}

fn system(what: &'static str) -> impl FnOnce(Errno) -> SegmentError {
    move |error| SegmentError::System { what, error }
}

/// A segment that this process made.
#[derive(Debug)]
pub struct Segment {
    /// Its memory. The first bytes are the nonce.
    pub region: Arc<Region>,
    fd: OwnedFd,
    nonce: [u8; NONCE_LEN],
}

impl Segment {
    /// Makes a segment of at least `len` bytes.
    pub fn create(len: usize) -> Result<Self, SegmentError> {
        let len = len.max(1).next_multiple_of(page_bytes());
        let fd = memfd_create(c"netdyno", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
            .map_err(system("make a memfd"))?;
        ftruncate(&fd, len as u64).map_err(system("size a memfd"))?;
        fcntl_add_seals(&fd, SEALS).map_err(system("seal a memfd"))?;
        let region = map(&fd, len)?;
        let nonce = random::bytes::<NONCE_LEN>().map_err(system("give random bytes"))?;
        // SAFETY: the region is longer than a nonce, and nobody else knows of it yet.
        unsafe { region.at(0, NONCE_LEN).as_ptr().copy_from_nonoverlapping(nonce.as_ptr(), NONCE_LEN) };
        Ok(Self { region: Arc::new(region), fd, nonce })
    }

    /// The descriptor under which another process opens it.
    pub fn descriptor(&self) -> u32 {
        // Descriptors are not negative.
        self.fd.as_raw_fd().unsigned_abs()
    }

    /// The same, to be passed on.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Takes the memory from byte `from` on, the start of a page, out of the reach of other
    /// processes: here it stays as it is now, at the same address, and theirs is given back
    /// to the system.
    ///
    /// # Errors
    /// The system has no memory for it.
    pub fn withdraw(&self, from: usize) -> Result<(), SegmentError> {
        let len = self.region.len() - from;
        if len == 0 {
            return Ok(());
        }
        self.region.make_private(from).map_err(system("make shared memory private"))?;
        // Without it nothing is lost but memory, as long as a peer maps it.
        let _ = fallocate(
            &self.fd,
            FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
            from as u64,
            len as u64,
        );
        Ok(())
    }

    /// What tells it from any other.
    pub fn nonce(&self) -> [u8; NONCE_LEN] {
        self.nonce
    }
}

/// Opens the segment of at least `len` bytes that process `pid` has at descriptor `fd`.
/// Whatever else is found there is refused.
pub fn open_segment(pid: u32, fd: u32, nonce: [u8; NONCE_LEN], len: usize) -> Result<Region, SegmentError> {
    let len = len.max(1).next_multiple_of(page_bytes());
    let path = format!("/proc/{pid}/fd/{fd}");
    // Without NONBLOCK a pipe at that descriptor would hang the open; without NOCTTY a
    // terminal there could become ours.
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let fd = open(path, flags, Mode::empty()).map_err(|error| SegmentError::NotThere { pid, error })?;
    if !is_segment(&fd, len) {
        return Err(SegmentError::Foreign(pid));
    }
    let region = map(&fd, len)?;
    let mut found = [0; NONCE_LEN];
    // SAFETY: the region is longer than a nonce, and all that access it do so by atomics and such copies. The copy
    // is checked, not the original.
    unsafe { copy(region.at(0, NONCE_LEN).as_ptr(), found.as_mut_ptr(), NONCE_LEN) };
    if found != nonce {
        return Err(SegmentError::Foreign(pid));
    }
    Ok(region)
}

/// Maps the segment of at least `len` bytes that process `pid` has passed on. Whatever else it has
/// passed is refused.
///
/// # Errors
/// It is no such segment, or the system does not map it.
pub fn map_segment(pid: u32, fd: impl AsFd, len: usize) -> Result<Region, SegmentError> {
    let len = len.max(1).next_multiple_of(page_bytes());
    if is_segment(&fd, len) { map(fd, len) } else { Err(SegmentError::Foreign(pid)) }
}

/// Whether a descriptor is a segment of that length, which nobody can shrink.
pub(crate) fn is_segment(fd: impl AsFd, len: usize) -> bool {
    fcntl_get_seals(&fd).is_ok_and(|seals| seals.contains(SEALS))
        && fstat(&fd).is_ok_and(|stat| stat.st_size == len as i64)
}

fn map(fd: impl AsFd, len: usize) -> Result<Region, SegmentError> {
    // SAFETY: a new mapping at an address that the kernel chooses.
    let base = unsafe {
        mmap(std::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, fd, 0)
    }
    .map_err(system("map shared memory"))?;
    let base = NonNull::new(base.cast())
        .ok_or(SegmentError::System { what: "map shared memory", error: Errno::FAULT })?;
    // SAFETY: just mapped, `len` bytes long, owned by nobody else; the file is sealed
    // against shrinking.
    Ok(unsafe { Region::from_mapping(base, len) })
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn both_mappings_see_the_same_bytes() {
        let made = Segment::create(10_000).unwrap();
        let opened = open_segment(std::process::id(), made.descriptor(), made.nonce(), 10_000).unwrap();
        // SAFETY: inside of both regions, no other access.
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
        assert_eq!(ftruncate(&made.fd, 0), Err(Errno::PERM));
    }
}
