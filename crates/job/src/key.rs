//! The pre-shared key of two hosts.

use netdyno_host::random;
use sha2::{Digest, Sha256};
use std::fmt;
use std::io;
use thiserror::Error;

/// Minimum length of a key in bytes. An observer of one handshake can try keys offline, so short keys are
/// unsafe.
const SHORTEST: usize = 16;
/// Maximum length of a key in bytes.
const LONGEST: usize = 4096;
/// Distinguishes the hash from other uses of the same text.
const LABEL: &[u8] = b"netdyno key of control connections\n";
/// Characters of generated keys. Each carries five random bits, and no two look alike.
const ALPHABET: &[u8; 32] = b"23456789abcdefghijkmnpqrstuvwxyz";
const GROUPS: usize = 6;
const GROUP_LEN: usize = 4;

/// Reports why text is not a valid key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum KeyError {
    /// The key is short enough to be guessed. The value is its length in bytes.
    #[error("a key has {SHORTEST} characters at least, this one has {0}")]
    Short(usize),
    /// The text is too long for a key.
    #[error("a key has {LONGEST} characters at most")]
    Long,
}

/// A pre-shared key, in the form in which Noise takes it. It is never displayed and never sent.
#[derive(Clone)]
pub struct Key([u8; 32]);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

impl Key {
    /// Creates a key from `text`, without the white space around it.
    ///
    /// # Errors
    /// Returns `KeyError` if the text is too short or too long.
    pub fn new(text: &str) -> Result<Self, KeyError> {
        match text.trim().as_bytes() {
            key if key.len() < SHORTEST => Err(KeyError::Short(key.len())),
            key if key.len() > LONGEST => Err(KeyError::Long),
            key => Ok(Self(Sha256::new().chain_update(LABEL).chain_update(key).finalize().into())),
        }
    }

    /// Generates a key of 120 random bits, as text that the user copies.
    ///
    /// # Errors
    /// Returns an I/O error if the system provides no random bytes.
    pub fn random_text() -> io::Result<String> {
        let bytes = random::bytes::<{ GROUPS * GROUP_LEN }>()?;
        let characters = bytes.map(|byte| char::from(ALPHABET[usize::from(byte) % ALPHABET.len()]));
        let groups: Vec<String> = characters.chunks(GROUP_LEN).map(|group| group.iter().collect()).collect();
        Ok(groups.join("-"))
    }

    /// Returns the key's 32 bytes, the SHA-256 of a label and the text.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_long_enough_and_not_shown() {
        assert_eq!(Key::new(" 0123456789abcde\n").unwrap_err(), KeyError::Short(15));
        assert_eq!(Key::new(&"x".repeat(4097)).unwrap_err(), KeyError::Long);
        assert!(!format!("{:?}", Key::new("0123456789abcdef").unwrap()).contains("0123"));
    }

    #[test]
    fn white_space_around_it_does_not_count() {
        let [a, b] = ["0123456789abcdef", "  0123456789abcdef\n"].map(|text| Key::new(text).unwrap());
        assert_eq!(a.bytes(), b.bytes());
    }

    #[test]
    fn random_keys_differ_and_are_keys() {
        let [a, b] = [(); 2].map(|()| Key::random_text().unwrap());
        assert_ne!(a, b);
        assert_eq!(a.len(), GROUPS * (GROUP_LEN + 1) - 1);
        Key::new(&a).unwrap();
    }
}
