//! A piece of a message between two VIs that promise nothing: what does not come is not asked for
//! again, so that all that is needed travels with each piece.
//!
//! ```text
//! 0   checksum       u32, over all that follows
//! 4   kind           u8, 0x41: no datagram of Active Messages
//! 5   reserved       2 bytes of zero
//! 7   version        u8
//! 8   connection     u64, chosen at random by the side that receives
//! 16  head           4 words of the message, little endian; its number is one more than that of
//!                    the message before
//! 48  at             u32, where in the message the piece belongs
//! 52  reserved       4 bytes of zero
//! 56  payload        the rest: as much as there is room for, or all that is left
//! ```

use super::datagram::{LONGEST, checksum};
use super::vi_message::{Head, Kind, WORDS};
use alloc::vec::Vec;

/// Length without the payload.
pub const HEADER_LEN: usize = 56;
/// Most bytes of a message in one piece.
pub const LONGEST_PIECE: usize = LONGEST - HEADER_LEN;

/// What tells it from other datagrams, at the same place in all of them.
pub const CODE: u8 = 0x41;
const VERSION: u8 = 1;

/// A piece of a message, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment<'a> {
    /// The receiver's number for the connection.
    pub connection: u64,
    /// The message.
    pub head: Head,
    /// Where in it the payload belongs.
    pub at: u32,
    /// The bytes.
    pub payload: &'a [u8],
}

/// Why bytes are not a piece of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Shorter than a header.
    Short,
    /// Longer than any piece.
    Long,
    /// The checksum does not fit.
    Checksum,
    /// Another kind or version, something where zeros belong, or a piece that is none.
    Meaning,
}

/// The bytes of a message that belong into the piece which begins at `at`.
pub fn piece_len(head: &Head, at: u32) -> usize {
    (head.len.saturating_sub(at) as usize).min(LONGEST_PIECE)
}

/// Writes a header at the end of `out`, which is empty. The payload comes behind it, and then
/// [`seal`].
pub fn write(connection: u64, head: &Head, at: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&[0, 0, 0, 0, CODE, 0, 0, VERSION]);
    out.extend_from_slice(&connection.to_le_bytes());
    head.pack().iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
    out.extend_from_slice(&u64::from(at).to_le_bytes());
}

/// Writes the checksum over a whole piece.
pub fn seal(piece: &mut [u8]) {
    let sum = checksum(piece);
    piece[0..4].copy_from_slice(&sum.to_le_bytes());
}

/// The piece in `bytes`, checked.
///
/// # Errors
/// There is none.
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
    // A piece is as long as it can be, and there is none behind the end. Nobody promises reads.
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

        /// With a checksum that fits, what is no piece is refused all the same.
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
