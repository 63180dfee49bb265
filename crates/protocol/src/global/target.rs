//! The target of operations: checks each against the segments of this rank and carries it out.
//!
//! A rank carries out one operation after the other. So atomic operations on a word are linearizable, together with
//! gets, puts and stores of the word that come as messages.

use super::data::{Data, Few};
use super::message::{Operation, Outcome, Request};
use super::{Refusal, Segments, check};
use alloc::vec::Vec;

/// Length of the word of an atomic operation, in bytes.
pub const WORD: u64 = 8;

/// Carries out an operation. `longest` is the most bytes of a reply that has a payload; a longer get is refused as
/// malformed, because its initiator knows the limit. The bytes of a get replace the contents of `out`.
#[inline(always)]
pub fn serve<'a>(
    request: &Request<'_>,
    segments: &mut impl Segments,
    longest: usize,
    out: &'a mut Vec<u8>,
) -> Outcome<'a> {
    match run(request, segments, longest, out) {
        Ok(Done::Written) => Outcome::Written,
        Ok(Done::Old(value)) => Outcome::Old(value),
        Ok(Done::ReadFew(few)) => Outcome::Bytes(Data::Few(few)),
        Ok(Done::Read) => Outcome::Bytes(Data::Slice(out)),
        Err(refusal) => Outcome::Refused(refusal),
    }
}

enum Done {
    Written,
    Old(u64),
    ReadFew(Few),
    Read,
}

#[inline(always)]
fn run(
    &Request { segment, offset, operation, .. }: &Request<'_>,
    segments: &mut impl Segments,
    longest: usize,
    out: &mut Vec<u8>,
) -> Result<Done, Refusal> {
    match operation {
        Operation::Get(len) => {
            check(segments, segment, offset, len)?;
            if let Some(few) = Few::filled(len, |into| segments.read(segment, offset, into)) {
                return Ok(Done::ReadFew(few));
            }
            let len = usize::try_from(len).ok().filter(|len| *len <= longest).ok_or(Refusal::Malformed)?;
            out.clear();
            out.resize(len, 0);
            segments.read(segment, offset, out);
            Ok(Done::Read)
        }
        Operation::Put(data) | Operation::Store(data) => {
            let bytes = data.as_slice();
            check(segments, segment, offset, bytes.len() as u64)?;
            segments.write(segment, offset, bytes);
            Ok(Done::Written)
        }
        Operation::Add(addend) => {
            update(segments, segment, offset, |old| old.wrapping_add(addend)).map(|_| Done::Written)
        }
        Operation::FetchAdd(addend) => {
            update(segments, segment, offset, |old| old.wrapping_add(addend)).map(Done::Old)
        }
        Operation::CompareSwap { expected, new } => {
            update(segments, segment, offset, |old| if old == expected { new } else { old }).map(Done::Old)
        }
    }
}

/// Replaces the word at `offset` and returns its old value. Words are little endian.
#[inline(always)]
fn update(
    segments: &mut impl Segments,
    segment: u32,
    offset: u64,
    new: impl Fn(u64) -> u64,
) -> Result<u64, Refusal> {
    check(segments, segment, offset, WORD)?;
    if !offset.is_multiple_of(WORD) {
        return Err(Refusal::Misaligned);
    }
    let mut bytes = [0; WORD as usize];
    segments.read(segment, offset, &mut bytes);
    let old = u64::from_le_bytes(bytes);
    segments.write(segment, offset, &new(old).to_le_bytes());
    Ok(old)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    struct One(Vec<u8>);

    impl Segments for One {
        fn len(&self, segment: u32) -> Option<u64> {
            (segment == 3).then_some(self.0.len() as u64)
        }
        fn read(&self, _: u32, offset: u64, into: &mut [u8]) {
            into.copy_from_slice(&self.0[offset as usize..][..into.len()]);
        }
        fn write(&mut self, _: u32, offset: u64, from: &[u8]) {
            self.0[offset as usize..][..from.len()].copy_from_slice(from);
        }
    }

    proptest! {
        /// Whatever a peer asks for, nothing outside of the segment is touched, and a refusal changes nothing.
        #[test]
        fn no_request_reaches_beyond_its_segment(
            segment in 2u32..4,
            offset in prop_oneof![0u64..80, any::<u64>()],
            len in prop_oneof![0u64..80, any::<u64>()],
            code in 0..6,
            bytes in proptest::collection::vec(any::<u8>(), 0..80),
        ) {
            let operation = match code {
                0 => Operation::Get(len),
                1 => Operation::Put(bytes[..].into()),
                2 => Operation::Store(bytes[..].into()),
                3 => Operation::FetchAdd(len),
                4 => Operation::Add(len),
                _ => Operation::CompareSwap { expected: 0, new: len },
            };
            let before = vec![0; 64];
            let (mut segments, mut out) = (One(before.clone()), Vec::new());
            let request = Request { ticket: 0, segment, offset, operation };
            let touched = match code { 0 => len, 1 | 2 => bytes.len() as u64, _ => WORD };
            let expected = if segment != 3 {
                Some(Refusal::NoSuchSegment)
            } else if u128::from(offset) + u128::from(touched) > 64 {
                Some(Refusal::OutOfBounds { segment_len: 64 })
            } else if code > 2 && offset % 8 != 0 {
                Some(Refusal::Misaligned)
            } else if code == 0 && len > 32 {
                Some(Refusal::Malformed)
            } else {
                None
            };
            match serve(&request, &mut segments, 32, &mut out) {
                Outcome::Refused(refusal) => {
                    prop_assert_eq!(Some(refusal), expected);
                    prop_assert_eq!(segments.0, before);
                }
                _ => prop_assert_eq!(expected, None),
            }
        }
    }
}
