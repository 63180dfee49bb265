//! The messages about memory that a provider lets its peer map and read, over shared memory. One message
//! passes the memory to the peer. The other tells the peer that it does not need the memory any more.
//!
//! ```text
//! 0   magic "NDLM"
//! 4   what                 u32, little endian: 1 lent, 2 taken back
//! 8   connection           u64, the sender's number
//! 16  id                   u64, the sender's id of the memory
//! 24  length               u64, bytes; 0 if taken back
//! ```

/// Length of an encoded message, in bytes.
pub const LEN: usize = 32;

const MAGIC: [u8; 4] = *b"NDLM";
const LENT: u32 = 1;
const TAKEN_BACK: u32 = 2;

/// A message about memory that the peer may map and read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lending {
    /// The sender's number of the connection.
    pub number: u64,
    /// The sender's id of the memory.
    pub id: u64,
    /// The number of bytes that the peer may read; `None` if the memory is taken back.
    pub len: Option<u64>,
}

impl Lending {
    /// Encodes the message.
    pub fn encode(&self) -> [u8; LEN] {
        let what = if self.len.is_some() { LENT } else { TAKEN_BACK };
        let mut out = [0; LEN];
        out[0..4].copy_from_slice(&MAGIC);
        out[4..8].copy_from_slice(&what.to_le_bytes());
        out[8..16].copy_from_slice(&self.number.to_le_bytes());
        out[16..24].copy_from_slice(&self.id.to_le_bytes());
        out[24..32].copy_from_slice(&self.len.unwrap_or(0).to_le_bytes());
        out
    }

    /// Decodes and checks a message. Returns `None` if `bytes` are not one.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let [first, number, id, len] = bytes.as_chunks::<8>().0.try_into().ok()?;
        let number_of = |bytes: [u8; 8]| u64::from_le_bytes(bytes);
        let what = (number_of(first) >> 32) as u32;
        let len = (what == LENT).then_some(number_of(len));
        let lending = Self { number: number_of(number), id: number_of(id), len };
        // Only the canonical encoding is valid.
        (lending.encode() == bytes).then_some(lending)
    }
}

#[cfg(test)]
mod tests {
    use super::super::vi_signal::Signal;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_goes_in_comes_out(number: u64, id: u64, len: Option<u64>) {
            let lending = Lending { number, id, len };
            prop_assert_eq!(Lending::parse(&lending.encode()), Some(lending));
            prop_assert!(Signal::parse(&lending.encode()).is_err());
        }

        #[test]
        fn whatever_parses_encodes_to_the_same_bytes(
            number: u64, id: u64, len: Option<u64>, at in 0..LEN, flip: u8, more in 0..9_usize, cut in 0..=LEN,
        ) {
            let mut bytes = Lending { number, id, len }.encode().to_vec();
            bytes[at] ^= flip;
            if let Some(lending) = Lending::parse(&bytes) {
                prop_assert_eq!(&lending.encode()[..], &bytes[..]);
            }
            bytes.resize(LEN + more, 0);
            prop_assert!(more == 0 || Lending::parse(&bytes).is_none());
            prop_assert!(cut == LEN || Lending::parse(&bytes[..cut]).is_none());
        }
    }
}
