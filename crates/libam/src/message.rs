//! The form of a message: four words and a payload of the stack's messages.
//!
//! ```text
//! word 0   tag
//! word 1   handler | number of arguments << 8 | category << 16 | flags << 20 | status << 24 | argument 0 << 32
//! word 2   arguments 1 and 2; of a long message the offset in the segment
//! word 3   arguments 3 and 4; of a long message arguments 1 and 2
//! payload  the bytes of the message, then the arguments that found no place in the words
//! ```
//!
//! The bytes come first, so that a payload that is aligned gives the handler aligned bytes.

use crate::code::{Category, Status};

/// The most arguments of a message: `AM_MaxShort()`.
pub const MAX_ARGUMENTS: usize = 16;
/// The most bytes of a medium or long message: `AM_MaxMedium()` and `AM_MaxLong()`.
pub const MAX_BYTES: usize = 65000;
/// The most bytes of a payload.
pub const MAX_PAYLOAD: usize = MAX_BYTES + 4 * MAX_ARGUMENTS;

/// The words of a message of the stack.
pub type Words = [u64; 4];

/// Flag of a reply whose sender has no translation for the receiver, and so knows no tag.
const HAS_NO_TAG: u64 = 1 << 20;

/// Everything in a message but its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The tag; `None` in a reply to an endpoint without a translation.
    pub tag: Option<u64>,
    /// The index of the handler.
    pub handler: u8,
    /// The kind of message.
    pub category: Category,
    /// The offset in the receiver's segment; 0 but in a long message.
    pub offset: u64,
    /// The arguments. Those that were not sent are 0.
    pub arguments: [i32; MAX_ARGUMENTS],
    /// The number of arguments.
    pub count: u8,
    /// The reason why the message comes back to its sender.
    pub status: Option<Status>,
}

/// The words of a short message behind its tag.
pub type ShortWords = [u64; 3];

/// Returns the number of arguments of such a message; `None` of another message, or if they do not fit into the words.
#[inline]
pub fn short_count(front: u64) -> Option<u8> {
    // The bits above the count are 0 in a short message that is not returned and has a tag.
    let count = front as u32 >> 8;
    (count <= 5).then_some(count as u8)
}

/// Returns the arguments of such a message.
#[inline]
pub fn short_arguments([front, second, third]: ShortWords) -> [i32; 5] {
    [(front >> 32) as i32, second as i32, (second >> 32) as i32, third as i32, (third >> 32) as i32]
}

/// A message that no correct peer sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl Head {
    /// Returns the number of arguments that find place in the words.
    #[inline]
    fn places(category: Category) -> usize {
        if category == Category::Long { 3 } else { 5 }
    }

    /// Returns the number of bytes behind the message's bytes in the payload.
    #[inline]
    pub fn tail_len(&self) -> usize {
        4 * usize::from(self.count).saturating_sub(Self::places(self.category))
    }

    /// Returns the words.
    #[inline]
    pub fn words(&self) -> Words {
        let argument = |at: usize| u64::from(self.arguments[at] as u32);
        let pair = |at: usize| argument(at) | argument(at + 1) << 32;
        let flags = if self.tag.is_none() { HAS_NO_TAG } else { 0 };
        let status = self.status.map_or(0, |status| status as u64);
        let front = u64::from(self.handler)
            | u64::from(self.count) << 8
            | (self.category as u64) << 16
            | flags
            | status << 24
            | argument(0) << 32;
        let [second, third] =
            if self.category == Category::Long { [self.offset, pair(1)] } else { [pair(1), pair(3)] };
        [self.tag.unwrap_or(0), front, second, third]
    }

    /// Appends the arguments that find no place in the words.
    pub fn write_tail(&self, payload: &mut Vec<u8>) {
        let rest = Self::places(self.category).min(self.count.into())..self.count.into();
        for argument in &self.arguments[rest] {
            payload.extend(argument.to_le_bytes());
        }
    }

    /// Reads a message. Returns the head and the bytes.
    ///
    /// # Errors
    /// Returns `Malformed` if no correct peer sends this.
    #[inline]
    pub fn read(words: Words, payload: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let [tag, front, second, third] = words;
        let count = (front >> 8) as u8;
        let category = Category::of((front >> 16) as u8 & 0xf).ok_or(Malformed)?;
        let status = match (front >> 24) as u8 {
            0 => None,
            number => Some(Status::of(number).ok_or(Malformed)?),
        };
        if usize::from(count) > MAX_ARGUMENTS || front >> 21 & 7 != 0 {
            return Err(Malformed);
        }
        let [low, high] = [|word: u64| word as i32, |word: u64| (word >> 32) as i32];
        let mut arguments = [0; MAX_ARGUMENTS];
        arguments[0] = high(front);
        let offset = if category == Category::Long {
            (arguments[1], arguments[2]) = (low(third), high(third));
            second
        } else {
            (arguments[1], arguments[2]) = (low(second), high(second));
            (arguments[3], arguments[4]) = (low(third), high(third));
            0
        };
        let tag = (front & HAS_NO_TAG == 0).then_some(tag);
        let mut head = Self { tag, handler: front as u8, category, offset, arguments, count, status };
        let bytes_len = payload.len().checked_sub(head.tail_len()).ok_or(Malformed)?;
        if bytes_len > if category == Category::Short { 0 } else { MAX_BYTES } {
            return Err(Malformed);
        }
        let (bytes, tail) = payload.split_at(bytes_len);
        for (argument, bytes) in head.arguments[Self::places(category)..].iter_mut().zip(tail.chunks_exact(4))
        {
            *argument = i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        Ok((head, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn heads() -> impl Strategy<Value = Head> {
        let numbers =
            (any::<Option<u64>>(), any::<u8>(), 0_u8..3, any::<u64>(), any::<[i32; MAX_ARGUMENTS]>());
        (numbers, 0..=MAX_ARGUMENTS, any::<u8>()).prop_map(
            |((tag, handler, category, offset, mut arguments), count, status)| {
                arguments[count..].fill(0);
                let category = Category::of(category).unwrap();
                let offset = if category == Category::Long { offset } else { 0 };
                Head {
                    tag,
                    handler,
                    category,
                    offset,
                    arguments,
                    count: count as u8,
                    status: Status::of(status),
                }
            },
        )
    }

    proptest! {
        #[test]
        fn a_message_comes_back(head in heads(), bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let bytes = if head.category == Category::Short { Vec::new() } else { bytes };
            let mut payload = bytes.clone();
            head.write_tail(&mut payload);
            prop_assert_eq!(payload.len(), bytes.len() + head.tail_len());
            prop_assert_eq!(Head::read(head.words(), &payload), Ok((head, &bytes[..])));
        }

        #[test]
        fn no_message_panics(words: Words, payload in proptest::collection::vec(any::<u8>(), 0..100)) {
            if let Ok((head, bytes)) = Head::read(words, &payload) {
                prop_assert!(bytes.len() <= payload.len() && usize::from(head.count) <= MAX_ARGUMENTS);
            }
        }
    }
}
