//! A descriptor: a work request as a program lays it out in its own memory (VIA 1.0, "descriptors";
//! little endian).
//!
//! ```text
//! 0   next             u64, for the provider
//! 8   next handle      u32, for the provider
//! 12  segment count    u16, the segments that follow
//! 14  control          u16: bits 0..2 operation (0 send or receive, 1 RDMA write, 2 RDMA read),
//!                      4 immediate data, 8 queue fence; the others 0
//! 16  reserved         u32
//! 20  immediate data   u32
//! 24  length           u32, written on completion: the bytes that were moved
//! 28  status           u32, written last of all
//! 32  segments         16 bytes each
//!
//! data segment                          address segment: the first of an RDMA, the peer's memory
//! 0   address          u64              0   address          u64
//! 8   handle           u32              8   handle           u32
//! 12  length           u32              12  reserved         u32
//! ```
//!
//! A program can change a descriptor after posting it, from another thread or by mistake. So the
//! provider copies it once, checks the copy, and makes a [`Work`] of it that the program can not reach.
//!
//! The length field of a posted descriptor is ignored, because the segments have the lengths. The
//! immediate data and the fence of a receive are ignored as well, and so are reserved words, because
//! programs leave old values there.

use super::codes::Status;
use super::work::{Operation, Remote, Segment, Segments, Short, Side, Work};

/// Alignment of descriptors, bytes.
pub const ALIGNMENT: u64 = 64;
/// Length of the control segment, which comes before the other segments, bytes.
pub const CONTROL_LEN: usize = 32;
/// Length of a data or address segment, bytes.
pub const SEGMENT_LEN: usize = 16;
/// Length of a descriptor with two segments, bytes. Most descriptors are not longer.
pub const SHORT_LEN: usize = CONTROL_LEN + 2 * SEGMENT_LEN;
/// Most segments of a descriptor, the address segment included.
pub const MOST_SEGMENTS: usize = 252;

const SEGMENT_COUNT_AT: usize = 12;
const CONTROL_AT: usize = 14;
const IMMEDIATE_AT: usize = 20;
const LENGTH_AT: usize = 24;
/// Offset of the status, which a program polls.
pub const STATUS_AT: usize = 28;

const OPERATION: u16 = 3;
const IMMEDIATE: u16 = 4;
const FENCE: u16 = 8;
const KNOWN: u16 = OPERATION | IMMEDIATE | FENCE;
const SEND: u16 = 0;
const WRITE: u16 = 1;
const READ: u16 = 2;

/// The place of a posted descriptor. It identifies the descriptor to the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DescriptorAt {
    /// Its address.
    pub address: u64,
    /// The handle of the registered memory that contains it.
    pub handle: u32,
}

/// The reasons why a descriptor is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// It is shorter than its segment count requires.
    Short,
    /// The operation is unknown or belongs to the other queue, or a reserved bit is set.
    Control,
    /// There are too many segments, or an RDMA has no address segment.
    SegmentCount,
    /// An RDMA read has immediate data, which it can not deliver.
    Immediate,
    /// The total length does not fit 32 bits.
    Length,
}

/// The values written into a descriptor when it completes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// The status.
    pub status: Status,
    /// The bytes that were moved.
    pub len: u32,
    /// The immediate data of the peer's message.
    pub immediate: Option<u32>,
}

/// A view of the bytes of a descriptor as fields.
#[derive(Clone, Copy, Debug)]
pub struct View<B>(B);

impl<B: AsRef<[u8]>> View<B> {
    /// Creates a view of `bytes`.
    ///
    /// # Errors
    /// Returns `Short` if they are shorter than the control segment.
    #[inline]
    pub fn new(bytes: B) -> Result<Self, Malformed> {
        if bytes.as_ref().len() < CONTROL_LEN { Err(Malformed::Short) } else { Ok(Self(bytes)) }
    }

    /// Returns the segment count.
    #[inline]
    pub fn segment_count(&self) -> u16 {
        quarter_at(self.0.as_ref(), SEGMENT_COUNT_AT)
    }

    /// Returns the length of the whole descriptor, bytes. The caller then knows how much to copy after
    /// the control segment.
    ///
    /// # Errors
    /// Returns `SegmentCount` if there are too many segments.
    #[inline]
    pub fn whole_len(&self) -> Result<usize, Malformed> {
        let count = usize::from(self.segment_count());
        if count > MOST_SEGMENTS {
            Err(Malformed::SegmentCount)
        } else {
            Ok(CONTROL_LEN + SEGMENT_LEN * count)
        }
    }

    /// Returns the control bits.
    #[inline]
    pub fn control(&self) -> u16 {
        quarter_at(self.0.as_ref(), CONTROL_AT)
    }

    /// Returns the immediate data, valid only if the control bits say so.
    #[inline]
    pub fn immediate(&self) -> u32 {
        half_at(self.0.as_ref(), IMMEDIATE_AT)
    }

    /// Returns the number of bytes that were moved.
    pub fn length(&self) -> u32 {
        half_at(self.0.as_ref(), LENGTH_AT)
    }

    /// Returns the status.
    pub fn status(&self) -> Status {
        Status(half_at(self.0.as_ref(), STATUS_AT))
    }

    /// Parses the descriptor, posted to the queue `side`.
    ///
    /// # Errors
    /// Returns the reason if it is malformed.
    #[inline]
    pub fn work(&self, side: Side) -> Result<Work, Malformed> {
        let control = self.control();
        if control & !KNOWN != 0 {
            return Err(Malformed::Control);
        }
        let segments = self.0.as_ref().get(CONTROL_LEN..self.whole_len()?).ok_or(Malformed::Short)?;
        let segments = segments.as_chunks::<SEGMENT_LEN>().0;
        let (operation, data) = match (side, control & OPERATION) {
            (Side::Receive, SEND) => (Operation::Receive, segments),
            (Side::Send, SEND) => (Operation::Send, segments),
            (Side::Send, operation @ (WRITE | READ)) => {
                let (first, data) = segments.split_first().ok_or(Malformed::SegmentCount)?;
                let remote = remote(first);
                let is_write = operation == WRITE;
                (if is_write { Operation::Write(remote) } else { Operation::Read(remote) }, data)
            }
            _ => return Err(Malformed::Control),
        };
        let has_immediate = side == Side::Send && control & IMMEDIATE != 0;
        if has_immediate && matches!(operation, Operation::Read(_)) {
            return Err(Malformed::Immediate);
        }
        let segments = match data {
            // Most descriptors have one segment, and a loop takes longer than this.
            [] => Segments::Few(0, [Segment::default(); 2]),
            [only] => Segments::Few(1, [segment(only), Segment::default()]),
            several => several.iter().map(segment).collect(),
        };
        let len = match &segments {
            Segments::Few(0 | 1, [only, _]) => Some(only.len),
            several => several.as_slice().iter().try_fold(0_u32, |len, segment| len.checked_add(segment.len)),
        };
        Ok(Work {
            operation,
            immediate: has_immediate.then(|| self.immediate()),
            is_fenced: side == Side::Send && control & FENCE != 0,
            segments,
            len: len.ok_or(Malformed::Length)?,
        })
    }
}

impl View<&[u8; SHORT_LEN]> {
    /// Parses the descriptor, posted to a send queue, if it is short.
    #[inline]
    pub fn short(&self) -> Option<Short> {
        let (control, count) = (self.control(), self.segment_count());
        let ([first, second], _) = self.0[CONTROL_LEN..].as_chunks() else { return None };
        let (operation, data, begin) = match control & OPERATION {
            SEND => (Operation::Send, first, 0),
            WRITE => (Operation::Write(remote(first)), second, 1),
            _ => return None,
        };
        if control & !KNOWN != 0 || !(begin..=begin + 1).contains(&count) {
            return None;
        }
        let segment = if count > begin { segment(data) } else { Segment::default() };
        let immediate = (control & IMMEDIATE != 0).then(|| self.immediate());
        Some(Short { operation, immediate, segment })
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> View<B> {
    /// Writes a descriptor for `work` over zeros.
    ///
    /// # Errors
    /// Returns `SegmentCount` if there is no room for its segments.
    pub fn set_work(&mut self, work: &Work) -> Result<(), Malformed> {
        let (operation, remote) = match work.operation {
            Operation::Send | Operation::Receive => (SEND, None),
            Operation::Write(remote) => (WRITE, Some(remote)),
            Operation::Read(remote) => (READ, Some(remote)),
        };
        let remote = remote.map(|Remote { address, handle }| Segment { address, handle, len: 0 });
        let data = work.segments.as_slice();
        let count = data.len() + usize::from(remote.is_some());
        let bytes = self.0.as_mut();
        let room = bytes.get_mut(CONTROL_LEN..).ok_or(Malformed::Short)?.as_chunks_mut::<SEGMENT_LEN>().0;
        if room.len() < count || count > MOST_SEGMENTS {
            return Err(Malformed::SegmentCount);
        }
        for (room, segment) in room.iter_mut().zip(remote.iter().chain(data)) {
            *room = segment_bytes(segment);
        }
        let immediate = if work.immediate.is_some() { IMMEDIATE } else { 0 };
        let fence = if work.is_fenced { FENCE } else { 0 };
        put(bytes, SEGMENT_COUNT_AT, &(count as u16).to_le_bytes());
        put(bytes, CONTROL_AT, &(operation | immediate | fence).to_le_bytes());
        put(bytes, IMMEDIATE_AT, &work.immediate.unwrap_or(0).to_le_bytes());
        put(bytes, LENGTH_AT, &work.len.to_le_bytes());
        Ok(())
    }

    /// Writes the completion, the status last.
    pub fn set_completion(&mut self, completion: &Completion) {
        let bytes = self.0.as_mut();
        if let Some(immediate) = completion.immediate {
            put(bytes, IMMEDIATE_AT, &immediate.to_le_bytes());
        }
        put(bytes, LENGTH_AT, &completion.len.to_le_bytes());
        put(bytes, STATUS_AT, &completion.status.0.to_le_bytes());
    }
}

#[inline]
fn remote(bytes: &[u8; SEGMENT_LEN]) -> Remote {
    Remote { address: word_at(bytes, 0), handle: half_at(bytes, 8) }
}

#[inline]
fn segment(bytes: &[u8; SEGMENT_LEN]) -> Segment {
    Segment { address: word_at(bytes, 0), handle: half_at(bytes, 8), len: half_at(bytes, 12) }
}

fn segment_bytes(segment: &Segment) -> [u8; SEGMENT_LEN] {
    let mut bytes = [0; SEGMENT_LEN];
    put(&mut bytes, 0, &segment.address.to_le_bytes());
    put(&mut bytes, 8, &segment.handle.to_le_bytes());
    put(&mut bytes, 12, &segment.len.to_le_bytes());
    bytes
}

fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    bytes[at..at + field.len()].copy_from_slice(field);
}

#[inline]
fn word_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(half_at(bytes, at)) | u64::from(half_at(bytes, at + 4)) << 32
}

#[inline]
fn half_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[inline]
fn quarter_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    prop_compose! {
        fn works()(
            kind in 0..4_u8, remote in any::<(u64, u32)>(), immediate: Option<u32>, is_fenced: bool,
            segments in proptest::collection::vec((any::<u64>(), any::<u32>(), 0..1_u32 << 24), 0..20),
        ) -> Work {
            let (address, handle) = remote;
            let remote = Remote { address, handle };
            let operation = match kind {
                0 => Operation::Send,
                1 => Operation::Receive,
                2 => Operation::Write(remote),
                _ => Operation::Read(remote),
            };
            let segments: Segments =
                segments.into_iter().map(|(address, handle, len)| Segment { address, handle, len }).collect();
            Work {
                operation,
                immediate: immediate.filter(|_| matches!(kind, 0 | 2)),
                is_fenced: is_fenced && kind != 1,
                len: segments.as_slice().iter().map(|segment| segment.len).sum(),
                segments,
            }
        }
    }

    fn is_long(work: &Work) -> bool {
        work.segments.as_slice().len() > 1 || matches!(work.operation, Operation::Read(_))
    }

    fn side_of(work: &Work) -> Side {
        if work.operation == Operation::Receive { Side::Receive } else { Side::Send }
    }

    fn encoded(work: &Work) -> Vec<u8> {
        let mut bytes = vec![0; CONTROL_LEN + SEGMENT_LEN * (work.segments.as_slice().len() + 1)];
        View::new(&mut bytes[..]).unwrap().set_work(work).unwrap();
        let len = View::new(&bytes).unwrap().whole_len().unwrap();
        bytes.truncate(len);
        bytes
    }

    fn control(count: u16, control: u16) -> Vec<u8> {
        let mut bytes = vec![0; CONTROL_LEN + SEGMENT_LEN * usize::from(count)];
        put(&mut bytes, SEGMENT_COUNT_AT, &count.to_le_bytes());
        put(&mut bytes, CONTROL_AT, &control.to_le_bytes());
        bytes
    }

    fn malformed(bytes: &[u8], side: Side) -> Malformed {
        View::new(bytes).and_then(|view| view.work(side)).unwrap_err()
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out(work in works()) {
            let bytes = encoded(&work);
            prop_assert_eq!(View::new(&bytes).unwrap().work(side_of(&work)), Ok(work));
            prop_assert!(View::new(&bytes[..bytes.len() - 1]).and_then(|view| view.work(Side::Send)).is_err());
        }

        #[test]
        fn a_short_one_means_the_same(work in works(), bit in 0..600_usize) {
            let mut bytes = encoded(&work);
            bytes.resize(bytes.len().max(SHORT_LEN), 0);
            if bit < 8 * CONTROL_LEN {
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            let short: &[u8; SHORT_LEN] = bytes.first_chunk().unwrap();
            let whole = View::new(&bytes).unwrap().work(Side::Send);
            match View::new(short).unwrap().short() {
                Some(Short { operation, immediate, segment }) => {
                    let work = whole.unwrap();
                    prop_assert_eq!((work.operation, work.immediate), (operation, immediate));
                    prop_assert!(work.segments.as_slice().len() <= 1);
                    prop_assert_eq!(work.segments.as_slice().first().copied().unwrap_or_default(), segment);
                }
                None => prop_assert!(whole.is_err() || is_long(&whole.unwrap())),
            }
        }

        #[test]
        fn no_bytes_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..200), count in 0..300_u16, bits in 0..20_u16,
        ) {
            let mut bytes = bytes;
            if bytes.len() >= CONTROL_LEN && bytes[0] % 2 == 0 {
                put(&mut bytes, SEGMENT_COUNT_AT, &count.to_le_bytes());
                put(&mut bytes, CONTROL_AT, &bits.to_le_bytes());
            }
            for side in [Side::Send, Side::Receive] {
                let Ok(work) = View::new(&bytes).and_then(|view| view.work(side)) else { continue };
                let sum: u64 = work.segments.as_slice().iter().map(|segment| u64::from(segment.len)).sum();
                prop_assert_eq!(sum, u64::from(work.len));
                prop_assert!(encoded(&work).len() <= bytes.len());
            }
        }
    }

    #[test]
    fn fields_are_where_programs_put_them() {
        let mut bytes = [0; 64];
        bytes[12] = 2;
        bytes[14] = 1 | 4 | 8;
        bytes[20..24].copy_from_slice(&7_u32.to_le_bytes());
        bytes[32..40].copy_from_slice(&0x1122_3344_5566_7788_u64.to_le_bytes());
        bytes[40..44].copy_from_slice(&9_u32.to_le_bytes());
        bytes[48..56].copy_from_slice(&0x1000_u64.to_le_bytes());
        bytes[56..60].copy_from_slice(&3_u32.to_le_bytes());
        bytes[60..64].copy_from_slice(&100_u32.to_le_bytes());
        let remote = Remote { address: 0x1122_3344_5566_7788, handle: 9 };
        let work = Work {
            operation: Operation::Write(remote),
            immediate: Some(7),
            is_fenced: true,
            segments: [Segment { address: 0x1000, handle: 3, len: 100 }].into_iter().collect(),
            len: 100,
        };
        let mut view = View::new(&mut bytes[..]).unwrap();
        assert_eq!(view.work(Side::Send), Ok(work));
        let status = Status::DONE.with(Status::OP_REMOTE_WRITE).with(Status::IMMEDIATE);
        view.set_completion(&Completion { status, len: 100, immediate: Some(8) });
        assert_eq!((view.length(), view.immediate(), view.status()), (100, 8, status));
        assert_eq!(bytes[20..32], [8, 0, 0, 0, 100, 0, 0, 0, 1, 0, 0xb, 0]);
    }

    #[test]
    fn each_format_error_is_named() {
        assert_eq!(malformed(&[0; 31], Side::Send), Malformed::Short);
        assert_eq!(malformed(&control(2, 0)[..63], Side::Send), Malformed::Short);
        // The unassigned operation, and an RDMA in the receive queue.
        assert_eq!(malformed(&control(1, 3), Side::Send), Malformed::Control);
        for operation in [WRITE, READ] {
            assert_eq!(malformed(&control(1, operation), Side::Receive), Malformed::Control);
            assert_eq!(malformed(&control(0, operation), Side::Send), Malformed::SegmentCount);
        }
        for bit in 4..16 {
            assert_eq!(malformed(&control(1, 1 << bit), Side::Send), Malformed::Control);
        }
        assert_eq!(malformed(&control(253, 0), Side::Send), Malformed::SegmentCount);
        assert_eq!(malformed(&control(1, READ | IMMEDIATE), Side::Send), Malformed::Immediate);
        let mut long = control(2, 0);
        [44, 60].iter().for_each(|&at| put(&mut long, at, &0x8000_0000_u32.to_le_bytes()));
        assert_eq!(malformed(&long, Side::Receive), Malformed::Length);
    }

    #[test]
    fn what_a_receive_needs_not_is_not_looked_at() {
        let work = View::new(control(0, IMMEDIATE | FENCE)).unwrap().work(Side::Receive).unwrap();
        assert_eq!((work.immediate, work.is_fenced, work.len), (None, false, 0));
    }

    #[test]
    fn as_many_segments_as_there_can_be() {
        let work = View::new(control(MOST_SEGMENTS as u16, 0)).unwrap().work(Side::Send).unwrap();
        assert_eq!(work.segments.as_slice().len(), MOST_SEGMENTS);
    }
}
