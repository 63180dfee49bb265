//! The work that a descriptor asks for: an operation, and the memory that it concerns.

use super::codes::Status;
use alloc::vec::Vec;

/// A segment: a range of bytes within a region of registered memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Its first address.
    pub address: u64,
    /// The handle of the region.
    pub handle: u32,
    /// Its length, bytes.
    pub len: u32,
}

/// The peer's memory that an RDMA accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remote {
    /// Its first address.
    pub address: u64,
    /// The peer's handle for it.
    pub handle: u32,
}

/// One of the two work queues of a VI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The send queue: sends and RDMAs.
    Send,
    /// The receive queue.
    Receive,
}

/// The operation of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Sends a message to the next receive of the peer.
    Send,
    /// Receives a message of the peer.
    Receive,
    /// Writes into the peer's memory.
    Write(Remote),
    /// Reads from the peer's memory.
    Read(Remote),
}

impl Operation {
    /// Returns the status bits of the operation.
    pub const fn status(self) -> Status {
        match self {
            Self::Send => Status::OP_SEND,
            Self::Receive => Status::OP_RECEIVE,
            Self::Write(_) => Status::OP_WRITE,
            Self::Read(_) => Status::OP_READ,
        }
    }
}

/// A parsed and checked copy of a descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// The operation.
    pub operation: Operation,
    /// The immediate data for the peer's receive.
    pub immediate: Option<u32>,
    /// Whether all descriptors before it must be complete first.
    pub is_fenced: bool,
    /// This side's memory, in order.
    pub segments: Segments,
    /// The total length of the segments, bytes.
    pub len: u32,
}

/// A send or an RDMA write with at most one segment, as most have. It needs no allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short {
    /// The operation.
    pub operation: Operation,
    /// The immediate data for the peer's receive.
    pub immediate: Option<u32>,
    /// This side's memory; its length is 0 if the descriptor has no segment.
    pub segment: Segment,
}

/// Data segments. Up to two, as many as a descriptor of 64 bytes has, need no allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segments {
    /// Up to two segments: their count, then the segments.
    Few(u8, [Segment; 2]),
    /// More segments.
    Many(Vec<Segment>),
}

impl Segments {
    /// Returns the segments as a slice.
    #[inline]
    pub fn as_slice(&self) -> &[Segment] {
        match self {
            Self::Few(count, segments) => &segments[..usize::from(*count).min(2)],
            Self::Many(segments) => segments,
        }
    }
}

impl FromIterator<Segment> for Segments {
    fn from_iter<I: IntoIterator<Item = Segment>>(segments: I) -> Self {
        let mut segments = segments.into_iter();
        let few = [segments.next(), segments.next()];
        let count = few.iter().flatten().count() as u8;
        let few = few.map(Option::unwrap_or_default);
        match segments.next() {
            None => Self::Few(count, few),
            Some(third) => Self::Many(few.into_iter().chain([third]).chain(segments).collect()),
        }
    }
}

/// Returns the parts of `segments` that hold the `len` bytes from byte `at` on, in order.
pub(super) fn cut(segments: &[Segment], at: u32, len: u32) -> impl Iterator<Item = Segment> {
    let (mut skip, mut left) = (at, len);
    segments.iter().filter_map(move |segment| {
        let skipped = skip.min(segment.len);
        skip -= skipped;
        let taken = left.min(segment.len - skipped);
        left -= taken;
        let address = segment.address.wrapping_add(skipped.into());
        (taken > 0).then_some(Segment { address, handle: segment.handle, len: taken })
    })
}

/// Returns the only segment of a descriptor, or an empty one if it has none. Returns `None` if it has
/// more.
#[inline]
pub(super) fn only_segment(work: &Work) -> Option<&Segment> {
    if let Segments::Few(0 | 1, [segment, _]) = &work.segments { Some(segment) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_cut_has_the_bytes_that_were_asked_for(
            lens in proptest::collection::vec(0..50_u32, 0..6), at in 0..300_u32, len in 0..300_u32,
        ) {
            let segments: Vec<Segment> = (0..).zip(&lens)
                .map(|(nth, &len)| Segment { address: 1000 * nth, handle: nth as u32, len }).collect();
            let bytes = |segments: &[Segment]| -> Vec<u64> {
                segments.iter().flat_map(|s| s.address..s.address + u64::from(s.len)).collect()
            };
            let all = bytes(&segments);
            let wanted: Vec<u64> = all.into_iter().skip(at as usize).take(len as usize).collect();
            let cut: Vec<Segment> = cut(&segments, at, len).collect();
            prop_assert_eq!(bytes(&cut), wanted);
            prop_assert!(cut.iter().all(|s| s.address / 1000 == u64::from(s.handle)));
        }
    }
}
