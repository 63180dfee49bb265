//! Which bytes a bulk transfer is about, as they lead the payload of the datagrams that begin
//! one or refuse it.
//!
//! ```text
//! 0   number    u32, little endian: which transfer of the side that asked for it
//! 4   reserved  4 bytes of zero
//! 8   memory    u64, the registered memory
//! 16  offset    u64, where in it the transfer begins
//! 24  len       u64, its bytes
//! ```

/// Length of an encoded range.
pub const RANGE_LEN: usize = 32;

/// The bytes of a transfer in registered memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// Which transfer it is, by the count of the side that asked for it.
    pub number: u32,
    /// The memory, by the number that its owner gave it.
    pub memory: u64,
    /// Where in it the transfer begins.
    pub offset: u64,
    /// How many bytes it has; the end is no more than the largest offset.
    pub len: u64,
}

impl Range {
    /// The bytes to send.
    pub fn encode(&self) -> [u8; RANGE_LEN] {
        let mut out = [0; RANGE_LEN];
        out[0..4].copy_from_slice(&self.number.to_le_bytes());
        out[8..16].copy_from_slice(&self.memory.to_le_bytes());
        out[16..24].copy_from_slice(&self.offset.to_le_bytes());
        out[24..32].copy_from_slice(&self.len.to_le_bytes());
        out
    }

    /// The range that leads `payload`, and what comes behind it. `None` where there is none
    /// that can be.
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
