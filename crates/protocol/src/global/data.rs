//! The bytes of an operation. Few of them travel in the words of a message, because a payload costs a cache line of its
//! own over shared memory. More of them are the payload.

/// The most bytes that travel in words: those of three.
pub const FEW: usize = 24;

/// The bytes of an operation.
#[derive(Clone, Copy, Debug)]
pub enum Data<'a> {
    /// Bytes that arrived in words.
    Few(Few),
    /// Bytes elsewhere.
    Slice(&'a [u8]),
}

impl Data<'_> {
    /// Returns the bytes.
    #[inline(always)]
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Self::Few(few) => &few.bytes[..few.len],
            Self::Slice(bytes) => bytes,
        }
    }
}

impl<'a> From<&'a [u8]> for Data<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Slice(bytes)
    }
}

/// Data are equal if their bytes are, wherever they lie.
impl PartialEq for Data<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Data<'_> {}

/// At most [`FEW`] bytes.
#[derive(Clone, Copy, Debug)]
pub struct Few {
    bytes: [u8; FEW],
    len: usize,
}

impl Few {
    /// Returns `len` bytes that `fill` writes, or `None` if they are too many.
    #[inline(always)]
    pub fn filled(len: u64, fill: impl FnOnce(&mut [u8])) -> Option<Self> {
        let len = usize::try_from(len).ok().filter(|len| *len <= FEW)?;
        let mut bytes = [0; FEW];
        fill(&mut bytes[..len]);
        Some(Self { bytes, len })
    }

    /// Returns the first `len` bytes of words, or `None` if they are too many or a byte behind them is not zero.
    #[inline(always)]
    pub fn of_words(words: [u64; 3], len: u64) -> Option<Self> {
        let len = usize::try_from(len).ok().filter(|len| *len <= FEW)?;
        let mut bytes = [0; FEW];
        for (nth, word) in words.into_iter().enumerate() {
            let used = len.saturating_sub(8 * nth).min(8) as u32;
            if word.checked_shr(8 * used).unwrap_or(0) != 0 {
                return None;
            }
            bytes[8 * nth..][..8].copy_from_slice(&word.to_le_bytes());
        }
        Some(Self { bytes, len })
    }
}

/// Returns the words of bytes, little endian, with zeros behind them; `None` if there are more than [`FEW`].
#[inline(always)]
pub fn words_of(bytes: &[u8]) -> Option<[u64; 3]> {
    // The most frequent length needs no copy of a length that the compiler does not know.
    if let Ok(word) = bytes.try_into() {
        return Some([u64::from_le_bytes(word), 0, 0]);
    }
    let mut padded = [[0; 8]; 3];
    padded.as_flattened_mut().get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(padded.map(u64::from_le_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_hold_every_length_up_to_the_limit() {
        let bytes: alloc::vec::Vec<u8> = (1..=FEW as u8 + 1).collect();
        for len in 0..=FEW {
            let words = words_of(&bytes[..len]).unwrap();
            let few = Few::of_words(words, len as u64).unwrap();
            assert_eq!(Data::Few(few).as_slice(), &bytes[..len]);
            // The last byte of words is not zero, so that it is none behind a shorter length.
            assert!(len == 0 || Few::of_words(words, len as u64 - 1).is_none());
        }
        assert!(words_of(&bytes).is_none());
        assert!(Few::of_words([0; 3], FEW as u64 + 1).is_none());
        assert!(Few::filled(FEW as u64 + 1, |_| {}).is_none());
    }
}
