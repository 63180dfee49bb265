//! Copies between messages and memory of programs. The rules have checked each place just before.

use crate::vi::local;
use netdyno_protocol::vi::Segment;

/// Appends the bytes of segments to `out`.
///
/// # Safety
/// As [`local::stretch`] says of each.
pub unsafe fn gather(segments: &[Segment], out: &mut Vec<u8>) {
    for segment in segments {
        // SAFETY: each segment is in registered memory of this process, as the caller has promised.
        unsafe { local::stretch(segment) }.readable().append_to(out);
    }
}

/// Copies bytes into segments of the same total length.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_placed_in_segments_and_gathered_from_them() {
        let mut memory = [0; 20];
        let base = memory.as_mut_ptr();
        let address = base.expose_provenance() as u64;
        let segment = |offset, len| Segment { address: address + offset, handle: 0, len };
        let segments = [segment(10, 3), segment(0, 0), segment(2, 5)];
        let mut gathered = vec![9];
        // SAFETY: all segments are inside of the memory, which is accessed through its address alone.
        unsafe {
            place(&segments, &[1, 2, 3, 4, 5, 6, 7, 8]);
            gather(&segments, &mut gathered);
        }
        assert_eq!(gathered, [9, 1, 2, 3, 4, 5, 6, 7, 8]);
        // SAFETY: nobody writes to the memory any more.
        assert_eq!(unsafe { base.cast::<[u8; 20]>().read() }[..8], [0, 0, 4, 5, 6, 7, 8, 0]);
    }
}
