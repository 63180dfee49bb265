//! The messages between two processes: a header, and a payload.
//!
//! ```text
//! every message    kind 1, flags 1, credits 2, to 2, from 2
//! Message          tag 8 if TAGGED, transfer 4 if IS_AWAITED, data 4 or 8 if HAS_DATA
//! the others       transfer 4, other 4, len 8, tag 8, data 8, offset 8
//! ```
//!
//! The header of a [`Kind::Message`] is short, so that a short message fits into one cache line of a ring.

/// Longest header in bytes.
pub const LONGEST_HEADER: usize = BASE_LEN + 40;
/// Length in bytes of the part that every header has.
const BASE_LEN: usize = 8;
/// Most segments in an offer.
pub const MOST_SEGMENTS: usize = 8;
/// Length of an encoded segment.
const SEGMENT_LEN: usize = 16;

use crate::memory::{Segment, Window, WindowPart};
use smallvec::SmallVec;
use std::ops::Deref;

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
    /// An atomic access. The payload has its operands and comparands.
    Atomic,
    /// Says who the sender is.
    Name,
    /// The receiver of this must offer its short messages: too many bytes of unexpected ones are kept.
    Hold,
    /// Short messages may travel with their bytes again.
    Release,
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
            Self::Atomic,
            Self::Name,
            Self::Hold,
            Self::Release,
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
/// The remote completion data of a [`Kind::Message`] has 4 bytes. Only the encoding sets it.
const SHORT_DATA: u8 = 16;

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
    pub fn encode(&self) -> Encoded {
        let mut encoded = Encoded { bytes: [0; LONGEST_HEADER], len: 0 };
        let is_short = self.kind == Kind::Message;
        let has_short_data = is_short && self.has(HAS_DATA) && self.data <= u64::from(u32::MAX);
        let flags = (self.flags & !SHORT_DATA) | if has_short_data { SHORT_DATA } else { 0 };
        encoded.put([self.kind as u8, flags]);
        encoded.put(self.credits.to_le_bytes());
        encoded.put(self.to.to_le_bytes());
        encoded.put(self.from.to_le_bytes());
        if !is_short {
            encoded.put(self.transfer.to_le_bytes());
            encoded.put(self.other.to_le_bytes());
            encoded.put(self.len.to_le_bytes());
            encoded.put(self.tag.to_le_bytes());
            encoded.put(self.data.to_le_bytes());
            encoded.put(self.offset.to_le_bytes());
            return encoded;
        }
        if self.has(TAGGED) {
            encoded.put(self.tag.to_le_bytes());
        }
        if self.has(IS_AWAITED) {
            encoded.put(self.transfer.to_le_bytes());
        }
        if has_short_data {
            encoded.put((self.data as u32).to_le_bytes());
        } else if self.has(HAS_DATA) {
            encoded.put(self.data.to_le_bytes());
        }
        encoded
    }

    /// Parses a message. Returns its header and its payload; `None` if it is malformed. The header of a
    /// [`Kind::Message`] has the length of the payload.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let mut rest = bytes;
        let [kind, flags] = take(&mut rest)?;
        let mut header = Self {
            flags: flags & !SHORT_DATA,
            credits: u16::from_le_bytes(take(&mut rest)?),
            to: u16::from_le_bytes(take(&mut rest)?),
            from: u16::from_le_bytes(take(&mut rest)?),
            ..Self::new(Kind::of(kind)?)
        };
        if header.kind != Kind::Message {
            header.transfer = u32::from_le_bytes(take(&mut rest)?);
            header.other = u32::from_le_bytes(take(&mut rest)?);
            header.len = u64::from_le_bytes(take(&mut rest)?);
            header.tag = u64::from_le_bytes(take(&mut rest)?);
            header.data = u64::from_le_bytes(take(&mut rest)?);
            header.offset = u64::from_le_bytes(take(&mut rest)?);
            return Some((header, rest));
        }
        if header.has(TAGGED) {
            header.tag = u64::from_le_bytes(take(&mut rest)?);
        }
        if header.has(IS_AWAITED) {
            header.transfer = u32::from_le_bytes(take(&mut rest)?);
        }
        if flags & (HAS_DATA | SHORT_DATA) == HAS_DATA | SHORT_DATA {
            header.data = u32::from_le_bytes(take(&mut rest)?).into();
        } else if header.has(HAS_DATA) {
            header.data = u64::from_le_bytes(take(&mut rest)?);
        }
        header.len = rest.len() as u64;
        Some((header, rest))
    }
}

/// The bytes of a header.
#[derive(Clone, Copy, Debug)]
pub struct Encoded {
    bytes: [u8; LONGEST_HEADER],
    len: usize,
}

impl Encoded {
    /// Appends bytes. All parts of a header have room together.
    #[inline(always)]
    fn put<const LEN: usize>(&mut self, part: [u8; LEN]) {
        self.bytes[self.len..self.len + LEN].copy_from_slice(&part);
        self.len += LEN;
    }
}

impl Deref for Encoded {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Takes bytes from the beginning of a slice.
#[inline(always)]
fn take<const LEN: usize>(bytes: &mut &[u8]) -> Option<[u8; LEN]> {
    let (first, rest) = bytes.split_first_chunk::<LEN>()?;
    *bytes = rest;
    Some(*first)
}

/// Returns the bytes of a list of segments.
pub fn encode_segments(segments: &[Segment]) -> SmallVec<[u8; MOST_SEGMENTS * SEGMENT_LEN]> {
    segments
        .iter()
        .flat_map(|segment| [segment.address.to_le_bytes(), segment.len.to_le_bytes()])
        .flatten()
        .collect()
}

/// Length of an encoded part of a window.
const PART_LEN: usize = 24;

/// Returns the bytes of a window.
pub fn encode_window(window: &Window) -> Vec<u8> {
    let words = |part: &WindowPart| [part.segment.address, part.segment.len, part.handle];
    window.parts.iter().flat_map(words).flat_map(u64::to_le_bytes).collect()
}

/// Parses a window. Returns `None` if it is malformed.
pub fn parse_window(bytes: &[u8]) -> Option<Window> {
    let (parts, rest) = bytes.as_chunks::<PART_LEN>();
    let part = |part: &[u8; PART_LEN]| {
        let word = |nth: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&part[8 * nth..8 * nth + 8]);
            u64::from_le_bytes(word)
        };
        WindowPart { segment: Segment { address: word(0), len: word(1) }, handle: word(2) }
    };
    let is_sound = rest.is_empty() && parts.len() <= MOST_SEGMENTS;
    is_sound.then(|| Window { parts: parts.iter().map(part).collect() })
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
        fn what_is_encoded_is_parsed(
            kind in 1..12_u8,
            flags in 0..16_u8,
            [credits, to, from] in any::<[u16; 3]>(),
            [transfer, other] in any::<[u32; 2]>(),
            [tag, offset] in any::<[u64; 2]>(),
            data in prop_oneof![any::<u32>().prop_map(u64::from), any::<u64>()],
            payload in proptest::collection::vec(any::<u8>(), 0..100),
        ) {
            let kind = Kind::of(kind).unwrap();
            let len = payload.len() as u64;
            let mut header =
                Header { kind, flags, credits, to, from, transfer, other, len, tag, data, offset };
            if kind == Kind::Message {
                let is_there = |flag| flags & flag != 0;
                (header.other, header.offset) = (0, 0);
                header.tag *= u64::from(is_there(TAGGED));
                header.transfer *= u32::from(is_there(IS_AWAITED));
                header.data *= u64::from(is_there(HAS_DATA));
            }
            let bytes = [&header.encode()[..], &payload].concat();
            prop_assert_eq!(Header::parse(&bytes), Some((header, &payload[..])));
            for cut in 0..header.encode().len() {
                prop_assert_eq!(Header::parse(&bytes[..cut]), None);
            }
        }

        #[test]
        fn a_window_is_what_it_was(parts in proptest::collection::vec(any::<[u64; 3]>(), 0..MOST_SEGMENTS + 2), cut in 1..8_usize) {
            let part = |[address, len, handle]: &[u64; 3]| WindowPart {
                segment: Segment { address: *address, len: *len },
                handle: *handle,
            };
            let window = Window { parts: parts.iter().map(part).collect() };
            let bytes = encode_window(&window);
            let is_sound = parts.len() <= MOST_SEGMENTS;
            prop_assert_eq!(parse_window(&bytes), is_sound.then_some(window));
            prop_assert!(parts.is_empty() || parse_window(&bytes[..bytes.len() - cut]).is_none());
        }

        #[test]
        fn any_bytes_are_parsed_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..100), kind in 1..12_u8) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = kind;
            }
            if let Some((header, payload)) = Header::parse(&bytes) {
                let again = [&header.encode()[..], payload].concat();
                prop_assert_eq!(Header::parse(&again), Some((header, payload)));
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
        for kind in [0, 14, 255] {
            let mut bytes = Header::new(Kind::Done).encode().to_vec();
            bytes[0] = kind;
            assert_eq!(Header::parse(&bytes), None);
        }
    }
}
