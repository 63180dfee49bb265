//! Memory of the program, which an operation reads or writes.

use smallvec::SmallVec;
use std::ptr;

/// A part of the program's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its address.
    pub address: u64,
    /// Its length in bytes.
    pub len: u64,
}

/// Memory of a process that a peer may write by RDMA.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Its parts, in order.
    pub parts: SmallVec<[WindowPart; 1]>,
}

/// A part of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowPart {
    /// The memory.
    pub segment: Segment,
    /// What the owner's network interface calls it.
    pub handle: u64,
}

impl Window {
    /// Returns its length in bytes.
    pub fn len(&self) -> u64 {
        self.parts.iter().fold(0, |sum, part| part.segment.len.saturating_add(sum))
    }

    /// Returns the contiguous memory that begins `offset` bytes behind the beginning; `None` behind the end.
    pub fn at(&self, offset: usize) -> Option<WindowPart> {
        let mut offset = offset as u64;
        for WindowPart { segment: Segment { address, len }, handle } in self.parts.iter().copied() {
            if offset < len {
                let segment = Segment { address: address.wrapping_add(offset), len: len - offset };
                return Some(WindowPart { segment, handle });
            }
            offset -= len;
        }
        None
    }
}

/// Memory of the program, in segments.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    segments: SmallVec<[Segment; 1]>,
    len: usize,
}

impl Memory {
    /// Returns memory in segments.
    ///
    /// # Safety
    /// The segments must be readable, and writable if the operation receives. They must stay so until the
    /// operation is complete, and the program must not access them in a way that the manual of the
    /// operation forbids.
    pub unsafe fn new(segments: impl IntoIterator<Item = Segment>) -> Self {
        let segments: SmallVec<[Segment; 1]> = segments.into_iter().collect();
        let len = segments.iter().map(|segment| segment.len as usize).sum();
        Self { segments, len }
    }

    /// Returns memory of one segment.
    ///
    /// # Safety
    /// As for [`Memory::new`].
    #[inline]
    pub unsafe fn one(segment: Segment) -> Self {
        Self { segments: SmallVec::from_buf([segment]), len: segment.len as usize }
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the segments.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Returns the address of the first byte.
    pub fn address(&self) -> u64 {
        self.segments.first().map_or(0, |segment| segment.address)
    }

    /// Returns `len` bytes from `offset` on, or as many as there are.
    pub fn part(&self, offset: usize, len: usize) -> Self {
        let mut part = Self::default();
        self.each_part(offset, len, |address, len| {
            part.segments.push(Segment { address, len: len as u64 });
            part.len += len;
        });
        part
    }

    /// Returns no bytes, with the address of the byte at `offset`, or behind the last one.
    pub fn nothing_at(&self, offset: usize) -> Self {
        let next = self.part(offset, 1).segments.first().map(|segment| segment.address);
        let end = || self.segments.last().map_or(0, |segment| segment.address + segment.len);
        let here = Segment { address: next.unwrap_or_else(end), len: 0 };
        Self { segments: SmallVec::from([here]), len: 0 }
    }

    /// Copies bytes from `offset` on into `out`, as many as fit and as there are. Returns their number.
    pub fn read(&self, offset: usize, out: &mut [u8]) -> usize {
        let mut done = 0;
        self.each_part(offset, out.len(), |address, len| {
            // SAFETY: `new` promises that the memory is readable. `out` has room, because the parts are `out.len()`
            // bytes long together.
            unsafe { ptr::copy(pointer(address), out.as_mut_ptr().add(done), len) };
            done += len;
        });
        done
    }

    /// Copies bytes to `offset`, as many as there is room for. Returns their number.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> usize {
        let mut done = 0;
        self.each_part(offset, bytes.len(), |address, len| {
            // SAFETY: `new` promises that the memory is writable. The parts are `bytes.len()` bytes long together.
            unsafe { ptr::copy(bytes.as_ptr().add(done), pointer(address), len) };
            done += len;
        });
        done
    }

    /// Calls `each` with the address and the length of each part of `len` bytes from `offset` on.
    #[inline]
    fn each_part(&self, offset: usize, len: usize, each: impl FnMut(u64, usize)) {
        each_part(&self.segments, offset, len, each);
    }
}

/// Returns `len` bytes of segments from `offset` on, or as many as there are.
pub fn part_of(segments: &[Segment], offset: usize, len: usize) -> SmallVec<[Segment; 1]> {
    let mut parts = SmallVec::new();
    each_part(segments, offset, len, |address, len| parts.push(Segment { address, len: len as u64 }));
    parts
}

#[inline]
fn each_part(segments: &[Segment], offset: usize, len: usize, mut each: impl FnMut(u64, usize)) {
    let (mut offset, mut left) = (offset, len);
    for segment in segments {
        let skipped = offset.min(segment.len as usize);
        let taken = left.min(segment.len as usize - skipped);
        if taken > 0 {
            each(segment.address + skipped as u64, taken);
        }
        (offset, left) = (offset - skipped, left - taken);
    }
}

fn pointer(address: u64) -> *mut u8 {
    ptr::with_exposed_provenance_mut(address as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(bytes: &mut [u8]) -> Segment {
        Segment { address: bytes.as_mut_ptr().expose_provenance() as u64, len: bytes.len() as u64 }
    }

    #[test]
    fn a_window_is_found_by_offset() {
        let part = |address, len| WindowPart { segment: Segment { address, len }, handle: address + 1 };
        let window = Window { parts: [part(100, 10), part(0, 0), part(300, 5)].into_iter().collect() };
        assert_eq!(window.len(), 15);
        let at = |offset| window.at(offset).map(|part| (part.segment.address, part.segment.len, part.handle));
        assert_eq!([at(0), at(9), at(10)], [Some((100, 10, 101)), Some((109, 1, 101)), Some((300, 5, 301))]);
        assert_eq!([at(14), at(15), at(usize::MAX)], [Some((304, 1, 301)), None, None]);
    }

    #[test]
    fn bytes_are_read_and_written_across_segments() {
        let (mut a, mut b) = ([1, 2, 3], [4, 5]);
        // SAFETY: the arrays outlive the memory.
        let memory = unsafe { Memory::new([segment(&mut a), segment(&mut []), segment(&mut b)]) };
        let mut out = [0; 4];
        assert_eq!((memory.len(), memory.read(2, &mut out)), (5, 3));
        assert_eq!(out, [3, 4, 5, 0]);
        assert_eq!(memory.write(1, &[9; 10]), 4);
        assert_eq!(memory.part(2, 2).read(0, &mut out), 2);
        assert_eq!((memory.part(4, 10).len(), memory.part(5, 1).len()), (1, 0));
        assert_eq!((a, b), ([1, 9, 9], [9, 9]));
    }
}
