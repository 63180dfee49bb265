//! A datagram of Active Messages over an unreliable network.
//!
//! ```text
//! 0   checksum       u32, over all bytes that follow
//! 4   kind           u8
//! 5   handler        u8
//! 6   words          u8, number of argument words, 0 to 4
//! 7   version        u8
//! 8   connection     u64, chosen at random by the receiver
//! 16  sequence       u32, of this message; in an acknowledgement, of the next message
//! 20  acknowledged   u32, the sequence number that is expected next
//! 24  selective      u64, bit i: the message acknowledged + 1 + i has arrived
//! 32  completed      u16, requests handled so far, mod 2^16
//! 34  transmission   u16, messages transmitted so far with this one, retransmissions included
//! 36  latest         u16, the transmission that arrived last
//! 38  granted        u8, bit 0: that may have arrived long before this datagram was sent;
//!                    bits 1 to 7: messages of bulk transfers that are granted, 1 to 64, or 0
//! 39  departed       u8, 0 without a stamp; 1 with a stamp; 3 with a stamp, and departed at once
//! 40  stamp          u64, if present: the departure of the message, in ticks of the host
//! ..  words          8 bytes each, little endian
//! ..  payload        the rest
//! ```
//!
//! A bulk transfer is a sequence of messages. The first message says which bytes the transfer is about: a
//! [`Range`] in front of the payload. The other messages carry the number of the transfer in their only word.
//!
//! Only messages on a dialled link carry a stamp. A stamp changes nothing else in the format.
//!
//! The parser checks all fields before it returns any of them. The connection number is the secret that an
//! outsider would have to guess. The checksum detects damage; it is not a signature.

use super::memory_key;
use super::slot::MAX_WORDS;
use super::transfer::{RANGE_LEN, Range};
use crate::dial::timing::Departed;
use alloc::vec::Vec;

/// Length of the header, in bytes, without words and payload.
pub const HEADER_LEN: usize = 40;
/// Length of the longest datagram that Ethernet does not fragment: 1500 bytes less IPv6 and UDP headers.
pub const LONGEST: usize = 1452;
/// Length of the longest payload beside a full set of words.
pub const LONGEST_PAYLOAD: usize = LONGEST - HEADER_LEN - 8 * MAX_WORDS;
/// The most messages that a datagram can grant.
pub const MOST_GRANTED: u8 = 64;
/// Length of a stamp. A stamped datagram has this much less space for its payload.
pub const STAMP_LEN: usize = 8;
/// The most bytes of a transfer in a datagram that continues it.
pub const LONGEST_PIECE: usize = LONGEST - HEADER_LEN - 8;

/// Returns the most bytes of a transfer in the first datagram of a store with `words` words.
pub const fn longest_beginning(words: usize) -> usize {
    LONGEST - HEADER_LEN - 8 * words - RANGE_LEN
}

const VERSION: u8 = 1;
/// Flag: the message carries a stamp.
const STAMPED: u8 = 1;
/// Flag: the message did not wait for earlier ones to depart.
const AT_ONCE: u8 = 2;

/// The kind of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A request.
    Request,
    /// A reply.
    Reply,
    /// Not a message: only the acknowledgement and the counts in the header.
    Acknowledgement,
    /// Not a message: asks the peer for an acknowledgement.
    Probe,
    /// The sender has closed the connection.
    Goodbye,
    /// A request with bytes for the receiver's memory: where they belong, and the first of them. The receiver
    /// handles it when the last byte has arrived.
    Store,
    /// More bytes of the current store.
    Chunk,
    /// A request for bytes of the receiver's memory.
    Get,
    /// Bytes that a get asked for. The last of them are the reply to the get.
    Fetched,
    /// A reply: the store or get was refused. It repeats the handler and the words of a refused store.
    Refused,
    /// A request that asks whether the memory of a key is registered. It is answered like a get of no bytes.
    Attach,
    /// Not a message: an acknowledgement of a sender that closes. It handles no more messages, and waits until its own
    /// have arrived.
    Closing,
}

impl Kind {
    const fn code(self) -> u8 {
        match self {
            Self::Request => 1,
            Self::Reply => 2,
            Self::Acknowledgement => 3,
            Self::Probe => 4,
            Self::Goodbye => 5,
            Self::Store => 6,
            Self::Chunk => 7,
            Self::Get => 8,
            Self::Fetched => 9,
            Self::Refused => 10,
            Self::Attach => 11,
            Self::Closing => 12,
        }
    }

    const fn of(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Request),
            2 => Some(Self::Reply),
            3 => Some(Self::Acknowledgement),
            4 => Some(Self::Probe),
            5 => Some(Self::Goodbye),
            6 => Some(Self::Store),
            7 => Some(Self::Chunk),
            8 => Some(Self::Get),
            9 => Some(Self::Fetched),
            10 => Some(Self::Refused),
            11 => Some(Self::Attach),
            12 => Some(Self::Closing),
            _ => None,
        }
    }

    /// Reports whether it takes a sequence number and is retransmitted until it is acknowledged.
    pub const fn is_message(self) -> bool {
        !matches!(self, Self::Acknowledgement | Self::Probe | Self::Goodbye | Self::Closing)
    }

    /// Reports whether it takes a credit until it is handled.
    pub const fn is_request(self) -> bool {
        matches!(self, Self::Request | Self::Store | Self::Get | Self::Attach)
    }

    /// Reports whether it belongs to a bulk transfer.
    pub const fn is_of_transfer(self) -> bool {
        !matches!(self, Self::Request | Self::Reply) && self.is_message()
    }

    /// Reports whether it can have `words` words and that payload.
    fn has_form(self, words: u8, payload: &[u8]) -> bool {
        match self {
            Self::Request | Self::Reply => true,
            Self::Acknowledgement | Self::Probe | Self::Goodbye | Self::Closing => {
                words == 0 && payload.is_empty()
            }
            Self::Store => Range::parse(payload).is_some(),
            Self::Chunk => words == 1 && !payload.is_empty(),
            Self::Fetched => words == 1,
            Self::Get => words == 0 && is_range(payload),
            Self::Refused => is_range(payload),
            Self::Attach => words == 1 && payload.len() == memory_key::LEN,
        }
    }
}

fn is_range(payload: &[u8]) -> bool {
    Range::parse(payload).is_some_and(|(_, rest)| rest.is_empty())
}

/// The header of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The kind of the datagram.
    pub kind: Kind,
    /// Index into the receiver's handler table.
    pub handler: u8,
    /// The receiver's number of the connection.
    pub connection: u64,
    /// The sequence number of the message. If the datagram is not a message, that of the sender's next
    /// message.
    pub sequence: u32,
    /// The number of this transmission among all of the connection, mod 2^16. A retransmission has a new
    /// number.
    pub transmission: u16,
    /// The sender's acknowledgement.
    pub arrived: Arrived,
    /// The number of requests that the sender has handled, mod 2^16.
    pub completed: u16,
    /// The departure of a message on a dialled link.
    pub departed: Option<Departed>,
}

/// An acknowledgement: the messages that have arrived at the sender of a datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrived {
    /// The sequence number that the sender expects next: the cumulative acknowledgement.
    pub expected: u32,
    /// The selective acknowledgement. Bit i: the message `expected + 1 + i` has arrived.
    pub selective: u64,
    /// The transmission that arrived last. It tells which transmission of a retransmitted message arrived.
    pub latest: u16,
    /// Whether that transmission may have arrived long ago, because this datagram is a retransmission or a
    /// probe.
    pub is_stale: bool,
    /// The grant: the messages of bulk transfers that the peer may have in flight, at most
    /// [`MOST_GRANTED`]. 0 says nothing.
    pub granted: u8,
}

/// A datagram that has been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// The header.
    pub header: Header,
    /// The words; 0 beyond those that were sent.
    pub words: [u64; MAX_WORDS],
    /// The number of words that were sent.
    pub word_count: u8,
    /// The payload.
    pub payload: &'a [u8],
    /// All bytes of the datagram, for a receiver that keeps a copy.
    pub bytes: &'a [u8],
}

/// The reason why bytes are not a datagram of Active Messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The bytes end within the header, the stamp or the words.
    Short,
    /// There are more than [`LONGEST`] bytes.
    Long,
    /// The checksum does not match: the datagram was damaged, or comes from a foreign program.
    Checksum,
    /// Another version, an unknown kind, a form that the kind cannot have, or unknown flags.
    Meaning,
}

/// Appends a message to `out`, which must be empty. [`stamp`] completes the message at each transmission.
pub fn write(header: &Header, words: &[u64], payload: &[u8], out: &mut Vec<u8>) {
    let words = &words[..words.len().min(MAX_WORDS)];
    let words_at = HEADER_LEN + if header.departed.is_some() { STAMP_LEN } else { 0 };
    let payload_at = words_at + 8 * words.len();
    let payload = &payload[..payload.len().min(LONGEST - payload_at)];
    let mut front = [0; HEADER_LEN + STAMP_LEN + 8 * MAX_WORDS];
    write_header(header, words.len() as u8, &mut front);
    if let Some(Departed { at, at_once }) = header.departed {
        front[39] = STAMPED | if at_once { AT_ONCE } else { 0 };
        front[HEADER_LEN..words_at].copy_from_slice(&at.to_le_bytes());
    }
    for (chunk, word) in front[words_at..].as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *chunk = word.to_le_bytes();
    }
    out.reserve(payload_at + payload.len());
    out.extend_from_slice(&front[..payload_at]);
    out.extend_from_slice(payload);
}

/// Returns a complete datagram that is not a message. It consists of its header alone.
pub fn alone(header: &Header) -> [u8; HEADER_LEN] {
    let mut datagram = [0; HEADER_LEN];
    write_header(header, 0, &mut datagram);
    stamp(&mut datagram, header.sequence, header.transmission, header.arrived);
    datagram
}

/// Writes the header except for the fields that [`stamp`] writes. `out` must hold zeros.
fn write_header(header: &Header, words: u8, out: &mut [u8]) {
    out[4] = header.kind.code();
    out[5] = header.handler;
    out[6] = words;
    out[7] = VERSION;
    out[8..16].copy_from_slice(&header.connection.to_le_bytes());
    out[32..34].copy_from_slice(&header.completed.to_le_bytes());
}

/// Writes the fields that change from one transmission of a message to the next, which include the
/// acknowledgement, and the checksum over the whole datagram.
pub fn stamp(datagram: &mut [u8], sequence: u32, transmission: u16, arrived: Arrived) {
    let sequences = u64::from(sequence) | u64::from(arrived.expected) << 32;
    datagram[16..24].copy_from_slice(&sequences.to_le_bytes());
    datagram[24..32].copy_from_slice(&arrived.selective.to_le_bytes());
    let completed = u64::from(quarter_at(datagram, 32));
    // One store writes the whole word, because the checksum reads it as a whole.
    let counts = completed
        | u64::from(transmission) << 16
        | u64::from(arrived.latest) << 32
        | u64::from(u8::from(arrived.is_stale) | arrived.granted << 1) << 48
        | u64::from(datagram[39]) << 56;
    datagram[32..40].copy_from_slice(&counts.to_le_bytes());
    let sum = checksum(datagram);
    datagram[0..4].copy_from_slice(&sum.to_le_bytes());
}

/// Overwrites the number of completed requests. Used where a message was written before it was queued for
/// transmission.
pub fn set_completed(datagram: &mut [u8], completed: u16) {
    datagram[32..34].copy_from_slice(&completed.to_le_bytes());
}

/// Returns the connection number that `bytes` claim, unchecked, to find the connection that parses them.
/// Returns `None` if they are too short.
pub fn connection_of(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(8..16)?.try_into().ok()?))
}

/// Parses and checks the datagram in `bytes`.
///
/// # Errors
/// Returns the [`Malformed`] of the first check that fails.
pub fn parse(bytes: &[u8]) -> Result<Datagram<'_>, Malformed> {
    if bytes.len() < HEADER_LEN {
        return Err(Malformed::Short);
    }
    if bytes.len() > LONGEST {
        return Err(Malformed::Long);
    }
    let connection = word_at(bytes, 8);
    if half_at(bytes, 0) != checksum(bytes) {
        return Err(Malformed::Checksum);
    }
    let word_count = bytes[6];
    if bytes[7] != VERSION || bytes[38] >> 1 > MOST_GRANTED || usize::from(word_count) > MAX_WORDS {
        return Err(Malformed::Meaning);
    }
    let kind = Kind::of(bytes[4]).ok_or(Malformed::Meaning)?;
    let (departed, rest) = match bytes[39] {
        0 => (None, &bytes[HEADER_LEN..]),
        flags => parse_departed(kind, flags, &bytes[HEADER_LEN..])?,
    };
    let (word_bytes, payload) = rest.split_at_checked(8 * usize::from(word_count)).ok_or(Malformed::Short)?;
    if !kind.has_form(word_count, payload) {
        return Err(Malformed::Meaning);
    }
    let mut words = [0; MAX_WORDS];
    for (word, chunk) in words.iter_mut().zip(word_bytes.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*chunk);
    }
    Ok(Datagram {
        header: Header {
            kind,
            handler: bytes[5],
            connection,
            sequence: half_at(bytes, 16),
            transmission: quarter_at(bytes, 34),
            arrived: Arrived {
                expected: half_at(bytes, 20),
                selective: word_at(bytes, 24),
                latest: quarter_at(bytes, 36),
                is_stale: bytes[38] & 1 != 0,
                granted: bytes[38] >> 1,
            },
            completed: quarter_at(bytes, 32),
            departed,
        },
        words,
        word_count,
        payload,
        bytes,
    })
}

/// Parses the stamp of a message. Returns it with the bytes after it.
#[cold]
fn parse_departed(kind: Kind, flags: u8, rest: &[u8]) -> Result<(Option<Departed>, &[u8]), Malformed> {
    if !kind.is_message() || flags & STAMPED == 0 || flags & !(STAMPED | AT_ONCE) != 0 {
        return Err(Malformed::Meaning);
    }
    let (stamp, rest) = rest.split_first_chunk::<STAMP_LEN>().ok_or(Malformed::Short)?;
    let departed = Departed { at: u64::from_le_bytes(*stamp), at_once: flags & AT_ONCE != 0 };
    Ok((Some(departed), rest))
}

fn word_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(half_at(bytes, at)) | u64::from(half_at(bytes, at + 4)) << 32
}

fn half_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn quarter_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// Returns a 32-bit checksum over all of `datagram` but its first 4 bytes. Pairs of words are mixed in by a
/// multiplication whose halves are folded, so that every bit changes about half of the sum. Random damage
/// goes unnoticed once in 2^32 times.
pub(super) fn checksum(datagram: &[u8]) -> u32 {
    const A: u64 = 0x9e37_79b9_7f4a_7c15;
    const B: u64 = 0xd1b5_4a32_d192_ed03;
    let fold = |x: u64, y: u64| {
        let product = u128::from(x) * u128::from(y);
        product as u64 ^ (product >> 64) as u64
    };
    // Two sums, so that no multiplication waits for the one before it.
    let (mut even, mut odd) = (A, B);
    let mut mix = |chunk: &[u8; 32]| {
        even = fold(even ^ word_at(chunk, 0), B ^ word_at(chunk, 8));
        odd = fold(odd ^ word_at(chunk, 16), A ^ word_at(chunk, 24));
    };
    // The words are read as they were just written. A load across two stores would stall until both have
    // reached the cache.
    let words = &datagram[8..];
    let (whole, rest) = words.as_chunks();
    whole.iter().for_each(&mut mix);
    if !rest.is_empty() {
        // The last 32 bytes, which may overlap the chunk before. The header is long enough for them.
        words.last_chunk().into_iter().for_each(&mut mix);
    }
    // The sum includes the length, because otherwise trailing zeros would not change it.
    let first = u64::from(half_at(datagram, 4)) << 32 | datagram.len() as u64;
    let sum = fold(even ^ first, odd ^ B);
    (sum ^ (sum >> 32)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    prop_compose! {
        fn datagrams()(
            kind in (1_u8..=12).prop_map(|code| Kind::of(code).unwrap()),
            handler: u8, connection: u64, sequence: u32, transmission: u16,
            (expected, selective, latest, is_stale) in any::<(u32, u64, u16, bool)>(), granted in 0..=MOST_GRANTED,
            completed: u16,
            words in proptest::collection::vec(any::<u64>(), 0..=4),
            payload in proptest::collection::vec(any::<u8>(), 1..200),
            range in any::<(u32, u64, u32, u32)>(),
            departed in proptest::option::of(any::<(u64, bool)>()),
        ) -> (Header, Vec<u64>, Vec<u8>) {
            let arrived = Arrived { expected, selective, latest, is_stale, granted };
            let departed = departed.filter(|_| kind.is_message()).map(|(at, at_once)| Departed { at, at_once });
            let header = Header { kind, handler, connection, sequence, transmission, arrived, completed, departed };
            let range = Range { number: range.0, memory: range.1, offset: range.2.into(), len: range.3.into() }.encode();
            match kind {
                Kind::Request | Kind::Reply => (header, words, payload),
                Kind::Acknowledgement | Kind::Probe | Kind::Goodbye | Kind::Closing => (header, Vec::new(), Vec::new()),
                Kind::Store => (header, words, [&range[..], &payload].concat()),
                Kind::Chunk | Kind::Fetched => (header, alloc::vec![connection], payload),
                Kind::Get => (header, Vec::new(), range.to_vec()),
                Kind::Refused => (header, words, range.to_vec()),
                Kind::Attach => (header, alloc::vec![connection], [payload[0]; memory_key::LEN].to_vec()),
            }
        }
    }

    fn encoded(header: &Header, words: &[u64], payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        if header.kind.is_message() {
            write(header, words, payload, &mut out);
            stamp(&mut out, header.sequence, header.transmission, header.arrived);
        } else {
            out.extend_from_slice(&alone(header));
        }
        out
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out((header, words, payload) in datagrams()) {
            let bytes = encoded(&header, &words, &payload);
            let parsed = parse(&bytes).unwrap();
            prop_assert_eq!(parsed.header, header);
            prop_assert_eq!(&parsed.words[..words.len()], &words[..]);
            prop_assert_eq!(usize::from(parsed.word_count), words.len());
            prop_assert_eq!(parsed.payload, &payload[..]);
            prop_assert_eq!(parsed.bytes, &bytes[..]);
            prop_assert_eq!(connection_of(&bytes), Some(header.connection));
        }

        /// A datagram that does not have the form of its kind is refused even if its checksum matches.
        #[test]
        fn what_has_not_the_form_of_its_kind_is_refused(
            (header, words, payload) in datagrams(), words_more in 0_usize..3, cut in 0_usize..40,
        ) {
            let words: Vec<u64> = words.into_iter().chain([7; 2]).take(words_more).collect();
            let payload = &payload[..payload.len().saturating_sub(cut)];
            let mut bytes = Vec::new();
            write(&header, &words, payload, &mut bytes);
            stamp(&mut bytes, 0, 0, Arrived::default());
            let can_be = header.kind.has_form(words.len() as u8, payload);
            prop_assert_eq!(parse(&bytes).is_ok(), can_be);
            match header.kind {
                Kind::Request | Kind::Reply => prop_assert!(can_be),
                Kind::Store => prop_assert_eq!(can_be, payload.len() >= RANGE_LEN),
                Kind::Chunk => prop_assert_eq!(can_be, words.len() == 1 && !payload.is_empty()),
                Kind::Fetched => prop_assert_eq!(can_be, words.len() == 1),
                Kind::Get => prop_assert_eq!(can_be, words.is_empty() && cut == 0),
                Kind::Refused => prop_assert_eq!(can_be, cut == 0),
                Kind::Attach => prop_assert_eq!(can_be, words.len() == 1 && cut == 0),
                _ => prop_assert_eq!(can_be, words.is_empty() && payload.is_empty()),
            }
        }

        /// A stamp adds 8 bytes and its flags and changes nothing else.
        #[test]
        fn a_stamp_stands_between_header_and_words((header, words, payload) in datagrams(), at: u64) {
            prop_assume!(header.kind.is_message());
            let bare = encoded(&Header { departed: None, ..header }, &words, &payload);
            prop_assert_eq!((bare[39], bare.len()), (0, HEADER_LEN + 8 * words.len() + payload.len()));
            for at_once in [false, true] {
                let departed = Some(Departed { at, at_once });
                let stamped = encoded(&Header { departed, ..header }, &words, &payload);
                prop_assert_eq!(stamped.len(), bare.len() + STAMP_LEN);
                prop_assert_eq!(&stamped[4..39], &bare[4..39]);
                prop_assert_eq!(&stamped[HEADER_LEN..HEADER_LEN + STAMP_LEN], at.to_le_bytes());
                prop_assert_eq!(&stamped[HEADER_LEN + STAMP_LEN..], &bare[HEADER_LEN..]);
            }
        }

        /// Unknown flags are refused even if the checksum matches.
        #[test]
        fn flags_without_meaning_are_refused((header, words, payload) in datagrams(), flags: u8) {
            let mut bytes = encoded(&header, &words, &payload);
            bytes[39] = flags;
            stamp(&mut bytes, header.sequence, header.transmission, header.arrived);
            prop_assert_eq!(bytes[39], flags);
            if flags > 3 || flags == AT_ONCE || flags != 0 && !header.kind.is_message() {
                prop_assert_eq!(parse(&bytes), Err(Malformed::Meaning));
            }
            // A datagram that ends within its stamp is refused.
            bytes.truncate(HEADER_LEN + STAMP_LEN - 1);
            stamp(&mut bytes, header.sequence, header.transmission, header.arrived);
            prop_assert!(flags == 0 || parse(&bytes).is_err());
        }

        /// A grant of more messages than a window has is refused, even if the checksum matches.
        #[test]
        fn grants_beyond_a_window_are_refused((header, words, payload) in datagrams(), granted in 0_u8..128) {
            let header = Header { arrived: Arrived { granted, ..header.arrived }, ..header };
            let parsed = encoded(&header, &words, &payload);
            match parse(&parsed) {
                Ok(parsed) => prop_assert_eq!((parsed.header, granted <= MOST_GRANTED), (header, true)),
                Err(malformed) => prop_assert_eq!((malformed, granted > MOST_GRANTED), (Malformed::Meaning, true)),
            }
        }

        #[test]
        fn damage_is_found(
            (header, words, payload) in datagrams(),
            damage in proptest::collection::vec((any::<prop::sample::Index>(), 0u8..8), 1..20),
            cut in any::<prop::sample::Index>(),
        ) {
            let whole = encoded(&header, &words, &payload);
            let mut bytes = whole.clone();
            for (at, bit) in damage {
                bytes[at.index(whole.len())] ^= 1 << bit;
            }
            if bytes != whole {
                prop_assert!(parse(&bytes).is_err());
            }
            prop_assert!(parse(&whole[..cut.index(whole.len())]).is_err());
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..1600)) {
            prop_assert!(parse(&bytes).is_err());
        }
    }
}
