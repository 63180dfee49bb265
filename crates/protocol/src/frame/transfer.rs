//! The range of a bulk transfer: the bytes of registered memory that it is about. The range leads the payload
//! of each datagram that begins a transfer or refuses one.
//!
//! ```text
//! 0   number    u32, little endian: number of the transfer at the side that requested it
//! 4   reserved  4 bytes of zero
//! 8   memory    u64, the registered memory
//! 16  offset    u64, where the transfer begins in the memory
//! 24  len       u64, bytes
//! ```

/// Length of an encoded range, in bytes.
pub const RANGE_LEN: usize = 32;

/// The bytes of registered memory that a transfer is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// The number of the transfer, counted by the side that requested it.
    pub number: u32,
    /// The id of the memory, chosen by its owner.
    pub memory: u64,
    /// The offset in the memory at which the transfer begins.
    pub offset: u64,
    /// The length, in bytes. Offset plus length does not overflow.
    pub len: u64,
}

impl Range {
    /// Encodes the range.
    pub fn encode(&self) -> [u8; RANGE_LEN] {
        let mut out = [0; RANGE_LEN];
        out[0..4].copy_from_slice(&self.number.to_le_bytes());
        out[8..16].copy_from_slice(&self.memory.to_le_bytes());
        out[16..24].copy_from_slice(&self.offset.to_le_bytes());
        out[24..32].copy_from_slice(&self.len.to_le_bytes());
        out
    }

    /// Parses the range that leads `payload`. Returns it with the bytes after it, or `None` if there is no
    /// valid range.
    pub fn parse(payload: &[u8]) -> Option<(Self, &[u8])> {
        let (head, rest) = payload.split_first_chunk::<RANGE_LEN>()?;
        let [first, memory, offset, len] = [0, 8, 16, 24].map(|at| {
            let mut word = [0; 8];
            word.copy_from_slice(&head[at..at + 8]);
            u64::from_le_bytes(word)
        });
        let number = u32::try_from(first).ok()?;
        offset.checked_add(len)?;
        Some((Self { number, memory, offset, len }, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_goes_in_comes_out(number: u32, memory: u64, offset: u64, len: u64, rest: Vec<u8>) {
            let range = Range { number, memory, offset, len };
            let mut bytes = range.encode().to_vec();
            bytes.extend_from_slice(&rest);
            let is_sound = offset.checked_add(len).is_some();
            prop_assert_eq!(Range::parse(&bytes), is_sound.then_some((range, &rest[..])));
            prop_assert_eq!(Range::parse(&bytes[..RANGE_LEN - 1]), None);
        }

        #[test]
        fn bytes_are_refused_or_come_back(bytes in proptest::collection::vec(any::<u8>(), 0..80), is_small: bool) {
            let mut bytes = bytes;
            if is_small && bytes.len() >= RANGE_LEN {
                for at in (4..8).chain(22..24).chain(30..32) {
                    bytes[at] = 0;
                }
            }
            match Range::parse(&bytes) {
                Some((range, rest)) => {
                    prop_assert_eq!(&bytes[..RANGE_LEN], &range.encode()[..]);
                    prop_assert_eq!(&bytes[RANGE_LEN..], rest);
                }
                None => prop_assert!(!is_small || bytes.len() < RANGE_LEN),
            }
        }
    }
}
