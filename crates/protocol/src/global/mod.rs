//! Global memory of many ranks over Active Messages: split-phase access as of Split-C (Culler et al. 1993), without
//! clock and transport.
//!
//! * [`data`]: the bytes of an operation, in words or as payload.
//! * [`message`]: the byte formats of operations and of collectives.
//! * [`target`]: checks an operation against the segments of this rank and carries it out.
//! * [`initiator`]: the outstanding operations of this rank, the counters that a sync waits for, and the errors that
//!   came back.
//! * [`tree`]: the binomial tree of a collective operation.
//! * [`collective`]: barrier, broadcast and reductions as a state machine.
//!
//! The rules rely on this of the transport: each message between two ranks is handled exactly once, and the messages
//! of one rank to another are handled in order. Only collectives need the order. A message may overtake a bulk
//! transfer, and nothing orders messages of different ranks.

pub mod collective;
pub mod data;
pub mod initiator;
pub mod message;
pub mod target;
pub mod tree;

/// A place in the memory of a job: plain values that any rank may keep, compute with and send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GlobalPointer {
    /// The rank that owns the memory.
    pub rank: u32,
    /// The number of the segment at its owner, below [`message::SEGMENTS`].
    pub segment: u32,
    /// The offset in the segment, in bytes.
    pub offset: u64,
}

impl GlobalPointer {
    /// Returns the pointer `bytes` behind this one, in the same segment. A pointer beyond the end of the address
    /// space becomes the last one, which every operation refuses.
    #[must_use]
    pub const fn add(self, bytes: u64) -> Self {
        Self { offset: self.offset.saturating_add(bytes), ..self }
    }
}

/// The segments of this rank.
pub trait Segments {
    /// Returns the length of a segment, in bytes, or `None` if this rank has no such segment.
    fn len(&self, segment: u32) -> Option<u64>;
    /// Copies bytes of a segment into `into`. The range is inside of the segment.
    fn read(&self, segment: u32, offset: u64, into: &mut [u8]);
    /// Copies `from` into a segment. The range is inside of the segment.
    fn write(&mut self, segment: u32, offset: u64, from: &[u8]);
}

/// The reason why a rank refuses an operation on its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The range is not inside of the segment, which has this many bytes.
    OutOfBounds {
        /// The length of the segment, in bytes.
        segment_len: u64,
    },
    /// The rank has no such segment, or no longer.
    NoSuchSegment,
    /// The offset of an atomic operation is no multiple of eight.
    Misaligned,
    /// The request is none of this version.
    Malformed,
}

/// Checks that the `len` bytes from `offset` on are inside of a segment.
///
/// # Errors
/// Returns `NoSuchSegment` or `OutOfBounds`.
#[inline(always)]
pub fn check(segments: &impl Segments, segment: u32, offset: u64, len: u64) -> Result<(), Refusal> {
    let segment_len = segments.len(segment).ok_or(Refusal::NoSuchSegment)?;
    let is_inside = offset.checked_add(len).is_some_and(|end| end <= segment_len);
    if is_inside { Ok(()) } else { Err(Refusal::OutOfBounds { segment_len }) }
}
