//! The memory that arguments of libfabric's functions name.

use super::guard::Errno;
use crate::abi::{self, IoVec};
use crate::frame::MOST_SEGMENTS;
use crate::memory::{Memory, Segment};
use core::ffi::c_void;
use std::slice;

/// Returns the segments of an array of `iovec`.
///
/// # Safety
/// The array must have `count` members.
pub unsafe fn segments<'a>(iov: *const IoVec, count: usize) -> impl Iterator<Item = Segment> + 'a {
    // SAFETY: as the caller has promised. An array without members may be null.
    let all = if count == 0 { &[][..] } else { unsafe { slice::from_raw_parts(iov, count) } };
    all.iter()
        .map(|part| Segment { address: part.iov_base.expose_provenance() as u64, len: part.iov_len as u64 })
}

/// Returns memory of one segment.
///
/// # Safety
/// As for [`Memory::new`].
pub unsafe fn one(buf: *const c_void, len: usize) -> Memory {
    // SAFETY: as the caller has promised.
    unsafe { Memory::one(Segment { address: buf.expose_provenance() as u64, len: len as u64 }) }
}

/// Returns memory of several segments.
///
/// # Safety
/// As for [`Memory::new`] and [`segments`].
pub unsafe fn several(iov: *const IoVec, count: usize) -> Result<Memory, Errno> {
    if count > MOST_SEGMENTS {
        return Err(Errno(abi::EINVAL));
    }
    // SAFETY: as the caller has promised.
    Ok(unsafe { Memory::new(segments(iov, count)) })
}
