//! A fragment of a message between two VIs of an unreliable level. Lost fragments are not retransmitted, so
//! each fragment carries all that the receiver needs.
//!
//! ```text
//! 0   checksum       u32, over all bytes that follow
//! 4   kind           u8, 0x41: not a datagram of Active Messages
//! 5   reserved       2 bytes of zero
//! 7   version        u8
//! 8   connection     u64, chosen at random by the receiver
//! 16  head           4 words of the message, little endian; its number is one more than that of
//!                    the message before
//! 48  at             u32, offset of the payload in the message
//! 52  reserved       4 bytes of zero
//! 56  payload        the rest: as much as fits, or all that is left of the message
//! ```

use super::datagram::{LONGEST, checksum};
use super::vi_message::{Head, Kind, WORDS};
use alloc::vec::Vec;

/// Length of a fragment without its payload, in bytes.
pub const HEADER_LEN: usize = 56;
/// The most bytes of a message in one fragment.
pub const LONGEST_PIECE: usize = LONGEST - HEADER_LEN;

/// The kind of a fragment. All datagrams have their kind at the same offset.
pub const CODE: u8 = 0x41;
const VERSION: u8 = 1;

/// A fragment of a message that has been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment<'a> {
    /// The receiver's number of the connection.
    pub connection: u64,
    /// The head of the message.
    pub head: Head,
    /// The offset of the payload in the message, in bytes.
    pub at: u32,
    /// The payload.
    pub payload: &'a [u8],
}

/// The reason why bytes are not a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Shorter than a header.
    Short,
    /// Longer than any fragment.
    Long,
    /// The checksum does not match.
    Checksum,
    /// Another kind or version, reserved bytes that are not zero, or a fragment that no message has.
    Meaning,
}

/// Returns the payload length of the fragment that begins at `at`.
pub fn piece_len(head: &Head, at: u32) -> usize {
    (head.len.saturating_sub(at) as usize).min(LONGEST_PIECE)
}

/// Appends the header of a fragment to `out`, which must be empty. The caller appends the payload and then
/// calls [`seal`].
pub fn write(connection: u64, head: &Head, at: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&[0, 0, 0, 0, CODE, 0, 0, VERSION]);
    out.extend_from_slice(&connection.to_le_bytes());
    head.pack().iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
    out.extend_from_slice(&u64::from(at).to_le_bytes());
}

/// Writes the checksum over a whole fragment.
pub fn seal(piece: &mut [u8]) {
    let sum = checksum(piece);
    piece[0..4].copy_from_slice(&sum.to_le_bytes());
}

/// Parses and checks the fragment in `bytes`.
///
/// # Errors
/// Returns the [`Malformed`] of the first check that fails.
pub fn parse(bytes: &[u8]) -> Result<Fragment<'_>, Malformed> {
    let (header, payload) = bytes.split_first_chunk::<HEADER_LEN>().ok_or(Malformed::Short)?;
    if bytes.len() > LONGEST {
        return Err(Malformed::Long);
    }
    let [first, connection, words @ .., at] = words_of(header);
    if first as u32 != checksum(bytes) {
        return Err(Malformed::Checksum);
    }
    let head: [u64; WORDS] = words;
    let head = Head::parse(head).map_err(|_| Malformed::Meaning)?;
    let at = u32::try_from(at).map_err(|_| Malformed::Meaning)?;
    // A fragment is as long as it can be, and no fragment begins at the end of a message or beyond. RDMA
    // reads need a reliable level, so no fragment belongs to one.
    let is_piece = payload.len() == piece_len(&head, at)
        && (at < head.len || at == 0)
        && (at as usize).is_multiple_of(LONGEST_PIECE)
        && !matches!(head.kind, Kind::Read { .. });
    if header[4..8] != [CODE, 0, 0, VERSION] || !is_piece {
        return Err(Malformed::Meaning);
    }
    Ok(Fragment { connection, head, at, payload })
}

fn words_of(header: &[u8; HEADER_LEN]) -> [u64; HEADER_LEN / 8] {
    let mut words = [0; HEADER_LEN / 8];
    for (word, chunk) in words.iter_mut().zip(header.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*chunk);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::super::datagram;
    use super::*;
    use crate::vi::Remote;
    use alloc::vec;
    use proptest::prelude::*;

    fn encoded(connection: u64, head: &Head, at: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(connection, head, at, &mut bytes);
        bytes.resize(HEADER_LEN + piece_len(head, at), 7);
        seal(&mut bytes);
        bytes
    }

    fn head(number: u32, len: u32, immediate: Option<u32>, write: Option<u64>) -> Head {
        let kind = match write {
            None => Kind::Send { immediate },
            Some(address) => Kind::Write { remote: Remote { address, handle: 3 }, immediate },
        };
        Head { number, len, kind }
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out(
            connection: u64, number: u32, len in 0..100_000_u32, immediate: Option<u32>, write: Option<u64>,
        ) {
            let head = head(number, len, immediate, write);
            let pieces = (0..=len).step_by(LONGEST_PIECE).filter(|&at| at < len || at == 0);
            let mut come = 0;
            for at in pieces {
                let bytes = encoded(connection, &head, at);
                let piece = parse(&bytes).unwrap();
                prop_assert_eq!((piece.connection, piece.head, piece.at), (connection, head, at));
                prop_assert_eq!(datagram::connection_of(&bytes), Some(connection));
                prop_assert!(datagram::parse(&bytes).is_err());
                come += piece.payload.len();
            }
            prop_assert_eq!(come, len as usize);
        }

        #[test]
        fn damage_is_found(
            len in 0..3000_u32, at: prop::sample::Index, bit in 0..8_u8, cut: prop::sample::Index,
        ) {
            let bytes = encoded(1, &head(2, len, Some(3), Some(4)), 0);
            let mut damaged = bytes.clone();
            damaged[at.index(bytes.len())] ^= 1 << bit;
            prop_assert!(parse(&damaged).is_err());
            prop_assert!(parse(&bytes[..cut.index(bytes.len())]).is_err());
        }

        /// Bytes that are not a fragment are refused even if their checksum matches.
        #[test]
        fn what_is_no_piece_is_refused(
            len in 0..5000_u32, at in 0..5000_u64, byte in 4..HEADER_LEN, flip: u8, more in 0..3_usize,
        ) {
            let mut bytes = encoded(1, &head(2, len, None, None), 0);
            bytes[48..56].copy_from_slice(&at.to_le_bytes());
            bytes[byte] ^= flip;
            bytes.resize((bytes.len() + more).min(LONGEST), 0);
            seal(&mut bytes);
            if let Ok(piece) = parse(&bytes) {
                let mut again = Vec::new();
                write(piece.connection, &piece.head, piece.at, &mut again);
                again.extend_from_slice(piece.payload);
                seal(&mut again);
                prop_assert_eq!(&again, &bytes);
                prop_assert!(piece.at + piece.payload.len() as u32 <= piece.head.len);
            }
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..1600)) {
            prop_assert!(parse(&bytes).is_err());
        }
    }

    #[test]
    fn the_longest_piece_fills_a_datagram() {
        let head = head(0, 1 << 20, None, None);
        assert_eq!(encoded(1, &head, 0).len(), LONGEST);
        assert_eq!(parse(&vec![0; LONGEST + 1]), Err(Malformed::Long));
    }
}
