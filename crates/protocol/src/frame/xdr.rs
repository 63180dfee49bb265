//! External Data Representation (XDR, RFC 4506), as far as remote procedure calls need it: unsigned integers
//! (section 4.2) and variable-length opaque data (section 4.10).
//!
//! All items are multiples of [`UNIT`] bytes long. Integers are big endian. Opaque data is its length, its
//! bytes, and zero bytes up to the next multiple.

use alloc::vec::Vec;

/// The length of a unit, in bytes (RFC 4506, section 3).
pub const UNIT: usize = 4;

/// The reason why bytes are not the item that was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The bytes end inside the item.
    Cut,
    /// Opaque data of this many bytes is longer than its declaration permits.
    TooLong(u32),
    /// The bytes behind opaque data are not zero.
    Padding,
}

/// Reads items one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Returns a reader at the beginning of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Reads an unsigned integer.
    ///
    /// # Errors
    /// Returns [`Malformed::Cut`] if fewer than [`UNIT`] bytes are left.
    pub fn word(&mut self) -> Result<u32, Malformed> {
        let (word, rest) = self.rest.split_first_chunk().ok_or(Malformed::Cut)?;
        self.rest = rest;
        Ok(u32::from_be_bytes(*word))
    }

    /// Reads opaque data of at most `most` bytes.
    ///
    /// # Errors
    /// Returns the reason why the item is not such data. The reader is then inside the item.
    pub fn opaque(&mut self, most: usize) -> Result<&'a [u8], Malformed> {
        let announced = self.word()?;
        let len = announced as usize;
        if len > most {
            return Err(Malformed::TooLong(announced));
        }
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or(Malformed::Cut)?;
        let (padding, rest) = rest.split_at_checked(padding(len)).ok_or(Malformed::Cut)?;
        if padding.iter().any(|&byte| byte != 0) {
            return Err(Malformed::Padding);
        }
        self.rest = rest;
        Ok(bytes)
    }

    /// Returns the bytes that were not read.
    pub fn rest(self) -> &'a [u8] {
        self.rest
    }
}

/// Returns the number of zero bytes behind opaque data of `len` bytes.
fn padding(len: usize) -> usize {
    len.wrapping_neg() % UNIT
}

/// Appends an unsigned integer.
pub fn put_word(out: &mut Vec<u8>, word: u32) {
    out.extend_from_slice(&word.to_be_bytes());
}

/// Appends opaque data. The data must be shorter than 2^32 bytes, because its length is an integer of 32 bits.
pub fn put_opaque(out: &mut Vec<u8>, bytes: &[u8]) {
    put_word(out, bytes.len() as u32);
    out.extend_from_slice(bytes);
    out.extend_from_slice(&[0; UNIT][..padding(bytes.len())]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    /// RFC 4506, section 4.10: the length, the bytes, the residual zero bytes.
    #[test]
    fn opaque_data_is_padded_to_a_unit() {
        let mut out = Vec::new();
        put_opaque(&mut out, b"sillyprog");
        assert_eq!(out, *b"\0\0\0\x09sillyprog\0\0\0");
        let mut reader = Reader::new(&out);
        assert_eq!(reader.opaque(8), Err(Malformed::TooLong(9)));
        let mut reader = Reader::new(&out[..15]);
        assert_eq!(reader.opaque(9), Err(Malformed::Cut));
        out[15] = 1;
        assert_eq!(Reader::new(&out).opaque(9), Err(Malformed::Padding));
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out(word: u32, bytes in proptest::collection::vec(any::<u8>(), 0..20)) {
            let mut out = vec![];
            put_word(&mut out, word);
            put_opaque(&mut out, &bytes);
            prop_assert_eq!(out.len() % UNIT, 0);
            let mut reader = Reader::new(&out);
            prop_assert_eq!(reader.word(), Ok(word));
            prop_assert_eq!(reader.opaque(bytes.len()), Ok(&bytes[..]));
            prop_assert!(reader.rest().is_empty());
        }
    }
}
