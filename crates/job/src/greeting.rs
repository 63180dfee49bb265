//! The hello message of each side of a connection between hosts.
//!
//! ```text
//!  0   magic "netdyno\n"
//!  8   version             24 bytes of text, zeros behind it
//! 32   nonce               32 random bytes
//! 64   part                u8, 0 for the client, 1 for the server
//! 65   has a key           u8, 0 or 1
//! 66   zero                6 bytes
//! ```
//!
//! The first 32 bytes have the same meaning in all versions.

use std::fmt;

/// Length of a greeting in bytes.
pub const LEN: usize = 72;
/// Length in bytes of the part that has the same meaning in all versions.
pub const PREAMBLE_LEN: usize = MAGIC.len() + VERSION_LEN;
/// Length of a nonce in bytes.
pub const NONCE_LEN: usize = 32;
/// Identifies the protocol as netdyno's.
pub const MAGIC: [u8; 8] = *b"netdyno\n";

const VERSION_LEN: usize = 24;

/// A version of netdyno.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Version([u8; VERSION_LEN]);

impl Version {
    /// The version of this build. The suffix names the encryption, because a build of the same number without
    /// it exists.
    pub const OURS: Self = match Self::new(concat!(env!("CARGO_PKG_VERSION"), "+noise").as_bytes()) {
        Some(version) => version,
        None => panic!("the version does not fit into a greeting"),
    };

    /// Returns the version with this name. Returns `None` if it is too long, or has characters other than
    /// letters, digits, dots, plus and minus.
    pub const fn new(name: &[u8]) -> Option<Self> {
        if name.is_empty() || name.len() > VERSION_LEN {
            return None;
        }
        let mut bytes = [0; VERSION_LEN];
        let mut at = 0;
        while at < name.len() {
            if !(name[at].is_ascii_alphanumeric() || matches!(name[at], b'.' | b'-' | b'+')) {
                return None;
            }
            bytes[at] = name[at];
            at += 1;
        }
        Some(Self(bytes))
    }

    /// Parses the version in a preamble. Returns `None` if the magic or the version is invalid.
    pub fn parse(preamble: &[u8; PREAMBLE_LEN]) -> Option<Self> {
        let name = preamble.strip_prefix(&MAGIC)?;
        let len = name.iter().rposition(|&byte| byte != 0).map_or(0, |at| at + 1);
        Self::new(&name[..len])
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().take_while(|&&byte| byte != 0).try_for_each(|&byte| write!(f, "{}", char::from(byte)))
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The role of a side of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The side that connected.
    Client,
    /// The side that accepted the connection.
    Server,
}

/// The hello message of a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// The sender's version.
    pub version: Version,
    /// Random bytes, new for each connection.
    pub nonce: [u8; NONCE_LEN],
    /// The sender's role.
    pub part: Part,
    /// Reports that the sender has a key.
    pub has_key: bool,
}

impl Greeting {
    /// Encodes the greeting.
    pub fn encode(&self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..32].copy_from_slice(&self.version.0);
        bytes[32..64].copy_from_slice(&self.nonce);
        bytes[64] = u8::from(self.part == Part::Server);
        bytes[65] = u8::from(self.has_key);
        bytes
    }

    /// Parses a greeting. Returns `None` if any field is invalid.
    pub fn parse(bytes: &[u8; LEN]) -> Option<Self> {
        let (preamble, rest) = bytes.split_first_chunk()?;
        let version = Version::parse(preamble)?;
        let (nonce, rest) = rest.split_first_chunk()?;
        let &[part @ (0 | 1), has_key @ (0 | 1), 0, 0, 0, 0, 0, 0] = rest else { return None };
        let part = if part == 0 { Part::Client } else { Part::Server };
        Some(Self { version, nonce: *nonce, part, has_key: has_key == 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn greetings() -> impl Strategy<Value = Greeting> {
        ("[0-9a-z.+-]{1,24}", any::<[u8; NONCE_LEN]>(), any::<bool>(), any::<bool>()).prop_map(
            |(version, nonce, is_client, has_key)| Greeting {
                version: Version::new(version.as_bytes()).unwrap(),
                nonce,
                part: if is_client { Part::Client } else { Part::Server },
                has_key,
            },
        )
    }

    proptest! {
        #[test]
        fn a_greeting_comes_as_it_went(greeting in greetings()) {
            prop_assert_eq!(Greeting::parse(&greeting.encode()), Some(greeting));
        }

        #[test]
        fn any_bytes_are_refused_or_mean_themselves(bytes in any::<[u8; LEN]>()) {
            prop_assert!(Greeting::parse(&bytes).is_none_or(|greeting| greeting.encode() == bytes));
        }

        /// Errors of a parser show most with nearly valid input.
        #[test]
        fn one_changed_byte_is_refused_or_means_something_else(
            greeting in greetings(), at in 0..LEN, change in 1u8..,
        ) {
            let mut bytes = greeting.encode();
            bytes[at] ^= change;
            if let Some(other) = Greeting::parse(&bytes) {
                prop_assert_eq!(other.encode(), bytes);
                prop_assert_ne!(other, greeting);
            }
        }
    }

    #[test]
    fn what_is_shown_of_a_version_is_harmless() {
        for bad in [&b""[..], b"1.0\x1b[2J", b"1 0", b"1\n", b"1234567890123456789012345"] {
            assert_eq!(Version::new(bad), None, "{bad:?}");
        }
        assert_eq!(Version::new(b"0.2.0-rc.1+a").unwrap().to_string(), "0.2.0-rc.1+a");
        assert_eq!(Version::OURS.to_string(), concat!(env!("CARGO_PKG_VERSION"), "+noise"));
    }
}
