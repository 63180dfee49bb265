//! The head of a message between two VIs, and the verdict on the message.
//!
//! A head says what the message does and which memory it is about. It has four words. They travel in front of
//! the payload in a fragment, or are the words of a message on a connection. The peer answers with a verdict.
//!
//! ```text
//! word 0   bit  0..8    kind: 1 send, 2 RDMA write, 3 RDMA read, 4 verdict
//!          bit  8..16   1 with immediate data; in a verdict, the refusal or 0
//!          bit 16..32   0
//!          bit 32..64   the sender's number of the message
//! word 1   bit  0..32   length, bytes
//!          bit 32..64   immediate data
//! word 2                address in the receiver's memory
//! word 3   bit  0..32   handle of that memory
//!          bit 32..64   0
//! ```
//!
//! A field that a kind does not have is 0.

use crate::vi::Remote;

/// The number of words of a head.
pub const WORDS: usize = 4;

const SEND: u64 = 1;
const WRITE: u64 = 2;
const READ: u64 = 3;
const VERDICT: u64 = 4;

/// A message from a VI to its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The number of the message among those of its sender, mod 2^32.
    pub number: u32,
    /// The length of the data, in bytes.
    pub len: u32,
    /// The operation.
    pub kind: Kind,
}

/// The operation of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Puts the data into the receive that was posted first.
    Send {
        /// The immediate data for that receive, if any.
        immediate: Option<u32>,
    },
    /// Writes the data into the receiver's memory (RDMA write).
    Write {
        /// The memory.
        remote: Remote,
        /// The immediate data, if any. They consume a posted receive.
        immediate: Option<u32>,
    },
    /// Returns the data from the receiver's memory (RDMA read).
    Read {
        /// The memory.
        remote: Remote,
    },
}

/// The peer's answer to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The number of the message, mod 2^32.
    pub number: u32,
    /// The reason of a refusal; `None` if the bytes are in place.
    pub refusal: Option<Refusal>,
}

/// The reason why a message was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No receive was posted.
    NoReceive,
    /// The message is longer than the receive.
    TooLong,
    /// The descriptor of the receive cannot be processed.
    BadReceive,
    /// The memory may not be written.
    WriteDenied,
    /// The memory may not be read.
    ReadDenied,
    /// The VI is not connected, or not with this peer.
    NotConnected,
}

impl Refusal {
    const ALL: [Self; 6] = [
        Self::NoReceive,
        Self::TooLong,
        Self::BadReceive,
        Self::WriteDenied,
        Self::ReadDenied,
        Self::NotConnected,
    ];

    const fn code(self) -> u64 {
        match self {
            Self::NoReceive => 1,
            Self::TooLong => 2,
            Self::BadReceive => 3,
            Self::WriteDenied => 4,
            Self::ReadDenied => 5,
            Self::NotConnected => 6,
        }
    }
}

/// Returns the whole number of a message from its last 32 bits. `last` is the number of the message that was
/// sent last. Returns `None` if no message with these bits was sent.
pub fn number_of(last: u64, number: u32) -> Option<u64> {
    last.checked_sub((last as u32).wrapping_sub(number).into())
}

/// The words are not ones that a VI writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl Head {
    /// Encodes the head.
    #[inline]
    pub fn pack(&self) -> [u64; WORDS] {
        let (kind, immediate, remote) = match self.kind {
            Kind::Send { immediate } => (SEND, immediate, Remote::default()),
            Kind::Write { remote, immediate } => (WRITE, immediate, remote),
            Kind::Read { remote } => (READ, None, remote),
        };
        [
            kind | u64::from(immediate.is_some()) << 8 | u64::from(self.number) << 32,
            u64::from(self.len) | u64::from(immediate.unwrap_or(0)) << 32,
            remote.address,
            remote.handle.into(),
        ]
    }

    /// Decodes and checks a head.
    ///
    /// # Errors
    /// Returns [`Malformed`] if the words are not a head; a verdict is not a head either.
    #[inline]
    pub fn parse(words: [u64; WORDS]) -> Result<Self, Malformed> {
        let [first, second, address, handle] = words;
        let immediate = match (first as u32 >> 8, (second >> 32) as u32) {
            (0, 0) => None,
            (1, immediate) => Some(immediate),
            _ => return Err(Malformed),
        };
        let remote = Remote { address, handle: handle as u32 };
        let kind = match first & 0xff {
            SEND if address | handle == 0 => Kind::Send { immediate },
            WRITE if handle >> 32 == 0 => Kind::Write { remote, immediate },
            READ if handle >> 32 == 0 && immediate.is_none() => Kind::Read { remote },
            _ => return Err(Malformed),
        };
        Ok(Self { number: (first >> 32) as u32, len: second as u32, kind })
    }
}

impl Verdict {
    /// Encodes the verdict.
    pub fn pack(&self) -> u64 {
        let refusal = self.refusal.map_or(0, Refusal::code);
        VERDICT | refusal << 8 | u64::from(self.number) << 32
    }

    /// Decodes and checks a verdict.
    ///
    /// # Errors
    /// Returns [`Malformed`] if the word is not a verdict; the first word of a head is not a verdict either.
    pub fn parse(word: u64) -> Result<Self, Malformed> {
        let code = word >> 8 & 0xff;
        let refusal = Refusal::ALL.into_iter().find(|refusal| refusal.code() == code);
        let verdict = Self { number: (word >> 32) as u32, refusal };
        if verdict.pack() == word { Ok(verdict) } else { Err(Malformed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    prop_compose! {
        fn heads()(
            number: u32, len: u32, kind in 0..3_u8, immediate: Option<u32>, address: u64, handle: u32,
        ) -> Head {
            let remote = Remote { address, handle };
            let kind = match kind {
                0 => Kind::Send { immediate },
                1 => Kind::Write { remote, immediate },
                _ => Kind::Read { remote },
            };
            Head { number, len, kind }
        }
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out(head in heads()) {
            prop_assert_eq!(Head::parse(head.pack()), Ok(head));
            prop_assert_eq!(Verdict::parse(head.pack()[0]), Err(Malformed));
        }

        #[test]
        fn whatever_parses_packs_back_to_the_same_bits(head in heads(), word in 0..4_usize, bit in 0..64) {
            let mut words = head.pack();
            words[word] ^= 1_u64 << bit;
            if let Ok(other) = Head::parse(words) {
                prop_assert_eq!(other.pack(), words);
                prop_assert_ne!(other, head);
            }
        }

        #[test]
        fn verdicts_come_back(number: u32, which in 0..7_usize) {
            let verdict = Verdict { number, refusal: Refusal::ALL.get(which).copied() };
            prop_assert_eq!(Verdict::parse(verdict.pack()), Ok(verdict));
        }

        #[test]
        fn a_number_comes_back_from_its_last_bits(last: u64, before: u32) {
            let number = last.checked_sub(before.into());
            prop_assert_eq!(number_of(last, (last as u32).wrapping_sub(before)), number);
        }

        #[test]
        fn no_words_panic(words: [u64; WORDS]) {
            prop_assert!(Head::parse(words).is_err());
            prop_assert!(Verdict::parse(words[0] & !0xff_ffff | 0x704).is_err());
        }
    }
}
