//! The 8-byte header that makes a ring slot ready.
//!
//! ```text
//! bit  0..32   sequence number: position in the ring + 1, mod 2^32
//! bit 32..48   completed: requests handled so far, mod 2^16 (replies and credits only)
//! bit 48..56   handler
//! bit 56..60   kind
//! bit 60..64   number of argument words, 0 to 4
//! ```
//!
//! The ready flag is the sequence number that the reader expects. So a slot needs neither a head nor a tail
//! index, and it is never zeroed.

/// The most argument words of one message.
pub const MAX_WORDS: usize = 4;

/// The content of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Argument words alone.
    Short,
    /// Argument words, and a payload in the slot's payload buffer.
    Medium,
    /// No message: only the count of completed requests.
    Credit,
    /// A store. Its data are already in the receiver's memory.
    Store,
    /// A store. Its last chunk is in a bounce buffer.
    StagedStore,
    /// A chunk of a store whose request follows, in a bounce buffer.
    Chunk,
    /// Asks for data, which will return in a bounce buffer.
    Fetch,
    /// Asks whether a memory is registered.
    Ask,
    /// In the place of a reply: the store was refused.
    Refused,
    /// In the place of a reply: the data are in a bounce buffer.
    Fetched,
    /// In the place of a reply: the data do not lie within registered memory.
    NotFetched,
    /// In the place of a reply: the memory is registered.
    Granted,
    /// In the place of a reply: the memory is not registered.
    Denied,
}

/// The fields of a slot's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The position in the ring + 1, mod 2^32.
    pub sequence: u32,
    /// The number of requests handled so far, mod 2^16.
    pub completed: u16,
    /// Index into the receiver's handler table.
    pub handler: u8,
    /// The content of the slot.
    pub kind: Kind,
    /// The number of argument words.
    pub words: u8,
}

/// The header is not one that a correct peer writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Returns the sequence number of the message at `position`, counted from 0.
#[inline]
pub const fn sequence_at(position: u64) -> u32 {
    (position as u32).wrapping_add(1)
}

/// Returns the sequence number of a raw header, without a check of the other fields.
#[inline]
pub const fn sequence_of(raw: u64) -> u32 {
    raw as u32
}

impl Header {
    /// Encodes the header.
    #[inline]
    pub const fn pack(self) -> u64 {
        let kind = match self.kind {
            Kind::Short => 0,
            Kind::Medium => 1,
            Kind::Credit => 2,
            Kind::Store => 3,
            Kind::StagedStore => 4,
            Kind::Chunk => 5,
            Kind::Fetch => 6,
            Kind::Ask => 7,
            Kind::Refused => 8,
            Kind::Fetched => 9,
            Kind::NotFetched => 10,
            Kind::Granted => 11,
            Kind::Denied => 12,
        };
        self.sequence as u64
            | (self.completed as u64) << 32
            | (self.handler as u64) << 48
            | kind << 56
            | (self.words as u64) << 60
    }

    /// Decodes and checks a raw header.
    ///
    /// # Errors
    /// Returns [`Malformed`] if the kind is unknown or there are more than [`MAX_WORDS`] words.
    #[inline]
    pub const fn parse(raw: u64) -> Result<Self, Malformed> {
        let kind = match (raw >> 56) & 0xf {
            0 => Kind::Short,
            1 => Kind::Medium,
            2 => Kind::Credit,
            3 => Kind::Store,
            4 => Kind::StagedStore,
            5 => Kind::Chunk,
            6 => Kind::Fetch,
            7 => Kind::Ask,
            8 => Kind::Refused,
            9 => Kind::Fetched,
            10 => Kind::NotFetched,
            11 => Kind::Granted,
            12 => Kind::Denied,
            _ => return Err(Malformed),
        };
        let words = (raw >> 60) as u8;
        if words as usize > MAX_WORDS {
            return Err(Malformed);
        }
        Ok(Self {
            sequence: raw as u32,
            completed: (raw >> 32) as u16,
            handler: (raw >> 48) as u8,
            kind,
            words,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whatever_parses_packs_back_to_the_same_bits(raw: u64) {
            if let Ok(header) = Header::parse(raw) {
                prop_assert_eq!(header.pack(), raw);
            }
        }

        #[test]
        fn sequence_is_never_that_of_the_lap_before(position: u64, log in 1u32..15) {
            let lap = 1u64 << log;
            prop_assume!(position >= lap);
            prop_assert_ne!(sequence_at(position), sequence_at(position - lap));
        }
    }

    #[test]
    fn zeroed_memory_is_not_the_first_message() {
        assert_ne!(sequence_of(0), sequence_at(0));
    }

    #[test]
    fn unknown_kinds_and_too_many_words_are_refused() {
        assert_eq!(Header::parse(0xd << 56), Err(Malformed));
        assert_eq!(Header::parse(0x5 << 60), Err(Malformed));
    }
}
