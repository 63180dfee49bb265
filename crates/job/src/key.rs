//! The pre-shared key of two hosts.

use hmac::digest::KeyInit;
use hmac::{Hmac, Mac};
use netdyno_host::random;
use sha2::Sha256;
use std::fmt;
use std::io;
use thiserror::Error;

/// Length of a proof in bytes.
pub const PROOF_LEN: usize = 32;

/// Minimum length of a key in bytes. An observer of one handshake can try keys offline, so short keys are
/// unsafe.
const SHORTEST: usize = 16;
/// Maximum length of a key in bytes.
const LONGEST: usize = 4096;
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

/// A pre-shared key. It is never displayed and never sent.
#[derive(Clone)]
pub struct Key(Vec<u8>);

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
            key => Ok(Self(key.to_vec())),
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

    /// Returns the HMAC-SHA256 of `parts`, which proves knowledge of the key.
    pub fn prove(&self, parts: &[&[u8]]) -> [u8; PROOF_LEN] {
        self.mac(parts).finalize().into_bytes().into()
    }

    /// Reports whether `proof` is valid for `parts`. The comparison takes constant time.
    pub fn verify(&self, parts: &[&[u8]], proof: &[u8; PROOF_LEN]) -> bool {
        self.mac(parts).verify_slice(proof).is_ok()
    }

    fn mac(&self, parts: &[&[u8]]) -> Hmac<Sha256> {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else {
            unreachable!("HMAC takes keys of every length")
        };
        parts.iter().for_each(|part| mac.update(part));
        mac
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
        assert_eq!(a.prove(&[b"x"]), b.prove(&[b"x"]));
    }

    #[test]
    fn random_keys_differ_and_are_keys() {
        let [a, b] = [(); 2].map(|()| Key::random_text().unwrap());
        assert_ne!(a, b);
        assert_eq!(a.len(), GROUPS * (GROUP_LEN + 1) - 1);
        Key::new(&a).unwrap();
    }

    /// Compares with RFC 4231, test case 3.
    #[test]
    fn the_proof_is_hmac_sha256() {
        let key = Key(vec![0xaa; 20]);
        let proof = key.prove(&[&[0xdd; 25], &[0xdd; 25]]);
        let hex: String = proof.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
        assert!(key.verify(&[&[0xdd; 50]], &proof));
        assert!(!key.verify(&[&[0xdd; 49]], &proof));
    }
}
