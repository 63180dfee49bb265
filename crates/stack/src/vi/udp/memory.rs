//! The memory of programs, as messages reach it: places that the rules have just checked.

use crate::vi::local;
use netdyno_protocol::vi::Segment;

/// Puts the bytes of segments behind `out`.
///
/// # Safety
/// As [`local::stretch`] says of each.
pub unsafe fn gather(segments: &[Segment], out: &mut Vec<u8>) {
    for segment in segments {
        // SAFETY: each segment is in registered memory of this process, as the caller has promised.
        unsafe { local::stretch(segment) }.readable().append_to(out);
    }
}

/// Copies bytes to segments, which are as long together.
///
/// # Safety
/// As [`local::stretch`] says of each.
pub unsafe fn place(segments: &[Segment], mut bytes: &[u8]) {
    for segment in segments {
        let (now, rest) = bytes.split_at(bytes.len().min(segment.len as usize));
        // SAFETY: each segment is in registered memory of this process, as the caller has promised.
        unsafe { local::stretch(segment) }.write(now);
        bytes = rest;
    }
}
