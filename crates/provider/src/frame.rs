//! The messages between two processes: a header of fixed length, and a payload.

/// Length of a header in bytes.
pub const HEADER_LEN: usize = 48;
/// Most segments in an offer.
pub const MOST_SEGMENTS: usize = 8;
/// Length of an encoded segment.
const SEGMENT_LEN: usize = 16;

use crate::memory::Segment;
use smallvec::SmallVec;

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A message of the program, with its bytes (eager).
    Message = 1,
    /// A message of the program, whose bytes stay with the sender until a receive takes it (rendezvous). The
    /// payload names the sender's memory.
    Offer,
    /// Asks the sender of an offer for its bytes, in pieces.
    Accept,
    /// Bytes of a transfer.
    Piece,
    /// The other side's transfer is complete.
    Done,
    /// Receives were posted, and there is nothing else to send.
    Credits,
    /// An RDMA write, with its bytes.
    Write,
    /// An RDMA write whose bytes stay with the origin until the target takes them.
    WriteOffer,
    /// An RDMA read. The payload names the origin's memory.
    Read,
}

impl Kind {
    fn of(byte: u8) -> Option<Self> {
        let all = [
            Self::Message,
            Self::Offer,
            Self::Accept,
            Self::Piece,
            Self::Done,
            Self::Credits,
            Self::Write,
            Self::WriteOffer,
            Self::Read,
        ];
        all.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// The message has a tag.
pub const TAGGED: u8 = 1;
/// The message has remote completion data.
pub const HAS_DATA: u8 = 2;
/// The sender waits for [`Kind::Done`].
pub const IS_AWAITED: u8 = 4;
/// The sender waits until a receive takes the message.
pub const UNTIL_MATCHED: u8 = 8;

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What the message is.
    pub kind: Kind,
    /// [`TAGGED`], [`HAS_DATA`], [`IS_AWAITED`].
    pub flags: u8,
    /// The endpoint that the message goes to.
    pub to: u16,
    /// The endpoint that sends it.
    pub from: u16,
    /// Receives that the sender of this header has posted since its last message.
    pub credits: u16,
    /// A transfer: of the sender in a request, of the receiver in an answer.
    pub transfer: u32,
    /// The other side's transfer, or the error of an answer.
    pub other: u32,
    /// Length in bytes of the program's message or access.
    pub len: u64,
    /// The tag, or the key of a memory region.
    pub tag: u64,
    /// Remote completion data.
    pub data: u64,
    /// An offset.
    pub offset: u64,
}

impl Header {
    /// Returns a header that is empty but for its kind.
    pub const fn new(kind: Kind) -> Self {
        Self {
            kind,
            flags: 0,
            to: 0,
            from: 0,
            credits: 0,
            transfer: 0,
            other: 0,
            len: 0,
            tag: 0,
            data: 0,
            offset: 0,
        }
    }

    /// Returns the header with remote completion data, if there is any.
    pub fn with_data(self, data: Option<u64>) -> Self {
        match data {
            None => self,
            Some(data) => Self { flags: self.flags | HAS_DATA, data, ..self },
        }
    }

    /// Returns whether a flag is set.
    pub const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Returns the remote completion data, if there is any.
    pub fn data(&self) -> Option<u64> {
        self.has(HAS_DATA).then_some(self.data)
    }

    /// Returns the bytes of the header.
    #[inline]
    pub fn encode(&self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[0] = self.kind as u8;
        bytes[1] = self.flags;
        bytes[2..4].copy_from_slice(&self.to.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.from.to_le_bytes());
        bytes[6..8].copy_from_slice(&self.credits.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.transfer.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.other.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.len.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.tag.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.data.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.offset.to_le_bytes());
        bytes
    }

    /// Parses a message. Returns its header and its payload; `None` if it is malformed.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (header, payload) = bytes.split_first_chunk::<HEADER_LEN>()?;
        let two = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        let four = |at: usize| u32::from(two(at)) | u32::from(two(at + 2)) << 16;
        let eight = |at: usize| u64::from(four(at)) | u64::from(four(at + 4)) << 32;
        let header = Self {
            kind: Kind::of(header[0])?,
            flags: header[1],
            to: two(2),
            from: two(4),
            credits: two(6),
            transfer: four(8),
            other: four(12),
            len: eight(16),
            tag: eight(24),
            data: eight(32),
            offset: eight(40),
        };
        Some((header, payload))
    }
}

/// Returns the bytes of a list of segments.
pub fn encode_segments(segments: &[Segment]) -> SmallVec<[u8; MOST_SEGMENTS * SEGMENT_LEN]> {
    segments
        .iter()
        .flat_map(|segment| [segment.address.to_le_bytes(), segment.len.to_le_bytes()])
        .flatten()
        .collect()
}

/// Parses a list of segments. Returns `None` if it is malformed.
pub fn parse_segments(bytes: &[u8]) -> Option<SmallVec<[Segment; 1]>> {
    let (pairs, rest) = bytes.as_chunks::<SEGMENT_LEN>();
    if !rest.is_empty() || pairs.len() > MOST_SEGMENTS {
        return None;
    }
    let word = |pair: &[u8; SEGMENT_LEN], at: usize| {
        pair[at..at + 8].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
    };
    Some(pairs.iter().map(|pair| Segment { address: word(pair, 0), len: word(pair, 8) }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_encoded_is_parsed(bytes in proptest::collection::vec(any::<u8>(), 0..100), kind in 1..10_u8) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = kind;
            }
            match Header::parse(&bytes) {
                None => prop_assert!(bytes.len() < HEADER_LEN),
                Some((header, payload)) => {
                    prop_assert_eq!([&header.encode()[..], payload].concat(), bytes);
                }
            }
        }

        #[test]
        fn segments_are_parsed(words in proptest::collection::vec(any::<(u64, u64)>(), 0..10)) {
            let segments: Vec<Segment> = words.iter().map(|&(address, len)| Segment { address, len }).collect();
            let bytes = encode_segments(&segments);
            let parsed = parse_segments(&bytes);
            prop_assert_eq!(parsed.map(|parsed| parsed.to_vec()), (segments.len() <= MOST_SEGMENTS).then_some(segments));
            prop_assert_eq!(parse_segments(&[&bytes[..], &[0]].concat()), None);
        }
    }

    #[test]
    fn unknown_kinds_are_malformed() {
        for kind in [0, 10, 255] {
            let mut bytes = Header::new(Kind::Done).encode();
            bytes[0] = kind;
            assert_eq!(Header::parse(&bytes), None);
        }
    }
}
