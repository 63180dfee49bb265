//! The key of registered memory, which its owner hands to peers. A peer that has the key may store into the
//! memory and get from it.
//!
//! ```text
//! 0   magic "NDM1"
//! 4   place                u32, little endian: 0 elsewhere, 1 a segment
//! 8   id                   u64, random
//! 16  length               u64, bytes, at most 2^62
//! 24  process id           u32, of the segment; 0 elsewhere
//! 28  file descriptor      u32
//! 32  nonce                16 bytes, also at the start of the segment
//! ```

/// Length of an encoded key, in bytes.
pub const LEN: usize = 48;
/// The most bytes of one memory. Below it no sum of an offset and a length overflows.
pub const LONGEST: u64 = 1 << 62;

const MAGIC: [u8; 4] = *b"NDM1";
const ELSEWHERE: u32 = 0;
const SEGMENT: u32 = 1;

/// The key of registered memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryKey {
    /// The id of the memory at the endpoint that registered it.
    pub id: u64,
    /// The length, in bytes.
    pub len: u64,
    /// The location of the memory.
    pub place: Place,
}

/// The location of registered memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Anywhere in the process that registered it. Only that process can access the memory.
    Elsewhere,
    /// In a shared-memory segment, after its first page. Any process on the same host can map it.
    Segment {
        /// The process that created the segment.
        pid: u32,
        /// The descriptor of the segment in that process.
        fd: u32,
        /// Distinguishes the segment from any other file at that descriptor.
        nonce: [u8; 16],
    },
}

/// The reason why bytes are not a memory key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The length is not [`LEN`] bytes.
    Length(usize),
    /// Another format, or another version of this one.
    Magic,
    /// The memory is longer than [`LONGEST`].
    TooLong(u64),
    /// The place is unknown, or memory elsewhere has the fields of a segment.
    Place(u32),
}

impl MemoryKey {
    /// Encodes the key for peers.
    pub fn encode(&self) -> [u8; LEN] {
        let (place, pid, fd, nonce) = match self.place {
            Place::Elsewhere => (ELSEWHERE, 0, 0, [0; 16]),
            Place::Segment { pid, fd, nonce } => (SEGMENT, pid, fd, nonce),
        };
        let mut out = [0; LEN];
        out[0..4].copy_from_slice(&MAGIC);
        out[4..8].copy_from_slice(&place.to_le_bytes());
        out[8..16].copy_from_slice(&self.id.to_le_bytes());
        out[16..24].copy_from_slice(&self.len.to_le_bytes());
        out[24..28].copy_from_slice(&pid.to_le_bytes());
        out[28..32].copy_from_slice(&fd.to_le_bytes());
        out[32..48].copy_from_slice(&nonce);
        out
    }

    /// Decodes and checks a key.
    ///
    /// # Errors
    /// Returns the [`Malformed`] of the first field that is not valid.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let bytes: &[u8; LEN] = bytes.try_into().map_err(|_| Malformed::Length(bytes.len()))?;
        let half = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let word = |at: usize| u64::from(half(at)) | u64::from(half(at + 4)) << 32;
        if bytes[0..4] != MAGIC {
            return Err(Malformed::Magic);
        }
        let (id, len) = (word(8), word(16));
        if len > LONGEST {
            return Err(Malformed::TooLong(len));
        }
        let place = match half(4) {
            ELSEWHERE if bytes[24..] == [0; LEN - 24] => Place::Elsewhere,
            SEGMENT => {
                let mut nonce = [0; 16];
                nonce.copy_from_slice(&bytes[32..48]);
                Place::Segment { pid: half(24), fd: half(28), nonce }
            }
            other => return Err(Malformed::Place(other)),
        };
        Ok(Self { id, len, place })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whatever_parses_encodes_to_the_same_bytes(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..64),
            plausible: bool,
            place in 0u32..3,
            log in 0u32..64,
            is_clean: bool,
        ) {
            if plausible {
                bytes.resize(LEN, 7);
                bytes[0..4].copy_from_slice(b"NDM1");
                bytes[4..8].copy_from_slice(&place.to_le_bytes());
                bytes[16..24].copy_from_slice(&(1u64 << log).to_le_bytes());
                if is_clean {
                    bytes[24..].fill(0);
                }
            }
            match MemoryKey::parse(&bytes) {
                Ok(key) => prop_assert_eq!(&key.encode()[..], &bytes[..]),
                Err(_) => prop_assert!(!plausible || log > 62 || place == 2 || (place == 0 && !is_clean)),
            }
        }

        #[test]
        fn what_is_encoded_parses_to_the_same_key(
            id: u64, len in 0..=LONGEST, pid: u32, fd: u32, nonce: [u8; 16], is_segment: bool,
        ) {
            let place = if is_segment { Place::Segment { pid, fd, nonce } } else { Place::Elsewhere };
            let key = MemoryKey { id, len, place };
            prop_assert_eq!(MemoryKey::parse(&key.encode()), Ok(key));
        }
    }
}
