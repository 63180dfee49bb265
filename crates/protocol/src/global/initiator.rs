//! The initiator of operations: its outstanding operations, the counters that a sync waits for, and the first error
//! that came back to each of them.

use super::message::{Outcome, Reply};
use super::{GlobalPointer, Refusal, Segments, check};
use alloc::vec::Vec;

/// The call that waits for an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// The call that began it.
    Call,
    /// The next sync: the operation is a split-phase get, put or addition.
    Sync,
    /// The next sync of stores.
    StoreSync,
}

/// Number of completions.
const COMPLETIONS: usize = 3;

/// The place of the result of an operation at its initiator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Landing {
    /// There is no result but the completion.
    Nothing,
    /// The old value of an atomic operation or the word of a get, for [`Initiator::value`].
    Value,
    /// The bytes of a get, from this offset in [`Initiator::bytes`] on.
    Bytes(usize),
    /// The bytes of a get or the old value of an atomic operation, in a segment of this rank.
    Segment {
        /// The segment.
        segment: u32,
        /// The offset, in bytes.
        offset: u64,
    },
    /// Another layer moves the bytes, and calls [`Initiator::complete`].
    Elsewhere,
}

/// An operation under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outstanding {
    /// The place at the target.
    pub at: GlobalPointer,
    /// The number of bytes at the target.
    pub len: u64,
    /// The place of the result.
    pub landing: Landing,
    /// The call that waits.
    pub completion: Completion,
}

/// An operation that its target refused, or whose result has no place at this rank any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The place at the target or at this rank.
    pub at: GlobalPointer,
    /// The number of bytes.
    pub len: u64,
    /// The reason.
    pub refusal: Refusal,
}

/// The reply belongs to no operation of this rank, or is of another kind. A correct target sends none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unexpected;

/// The outstanding operations of a rank.
#[derive(Debug)]
pub struct Initiator {
    rank: u32,
    /// The operations under way, by their tickets. A ticket is given out again at once, because the transport brings
    /// each reply exactly once.
    outstanding: Vec<Option<Outstanding>>,
    /// The tickets that belong to no operation.
    free: Vec<u32>,
    counts: [usize; COMPLETIONS],
    failures: [Option<Failure>; COMPLETIONS],
    /// The word that the last operation with [`Landing::Value`] returned.
    pub value: u64,
    /// The bytes of gets that land in no segment. The caller sets the length first.
    pub bytes: Vec<u8>,
}

impl Initiator {
    /// Creates an initiator without operations, at this rank.
    #[must_use]
    pub fn new(rank: u32) -> Self {
        Self {
            rank,
            outstanding: Vec::new(),
            free: Vec::new(),
            counts: [0; COMPLETIONS],
            failures: [None; COMPLETIONS],
            value: 0,
            bytes: Vec::new(),
        }
    }

    /// Begins an operation, and returns the ticket for its request.
    #[inline(always)]
    pub fn begin(&mut self, operation: Outstanding) -> u32 {
        self.counts[operation.completion as usize] += 1;
        if let Some(ticket) = self.free.pop() {
            self.outstanding[ticket as usize] = Some(operation);
            return ticket;
        }
        self.outstanding.push(Some(operation));
        // Memory ends long before the tickets.
        (self.outstanding.len() - 1) as u32
    }

    /// Returns the number of operations under way that this call waits for.
    pub fn count(&self, completion: Completion) -> usize {
        self.counts[completion as usize]
    }

    /// Reports whether an operation on a rank is under way.
    #[must_use]
    pub fn waits_for(&self, rank: u32) -> bool {
        self.outstanding.iter().flatten().any(|operation| operation.at.rank == rank)
    }

    /// Takes the first failure since the last sync of this kind.
    pub fn take_failure(&mut self, completion: Completion) -> Option<Failure> {
        self.failures[completion as usize].take()
    }

    /// Takes the reply of the rank `from`, and places its result.
    ///
    /// # Errors
    /// Returns `Unexpected` if the reply does not belong to an outstanding operation on that rank.
    #[inline(always)]
    pub fn take(
        &mut self,
        from: u32,
        Reply { ticket, outcome }: Reply<'_>,
        segments: &mut impl Segments,
    ) -> Result<(), Unexpected> {
        let operation = self.operation(from, ticket)?;
        let Outstanding { at, len, .. } = operation;
        let mut failure = None;
        match (operation.landing, outcome) {
            (_, Outcome::Refused(refusal)) => failure = Some(Failure { at, len, refusal }),
            (Landing::Nothing | Landing::Elsewhere, Outcome::Written) => {}
            (Landing::Value, Outcome::Old(value)) => self.value = value,
            (Landing::Value, Outcome::Bytes(data)) if is_whole(&operation, data.as_slice()) => {
                self.value = u64::from_le_bytes(data.as_slice().try_into().map_err(|_| Unexpected)?);
            }
            (Landing::Bytes(offset), Outcome::Bytes(data)) if is_whole(&operation, data.as_slice()) => {
                let bytes = data.as_slice();
                let place = self.bytes.get_mut(offset..offset + bytes.len()).ok_or(Unexpected)?;
                place.copy_from_slice(bytes);
            }
            (Landing::Segment { segment, offset }, Outcome::Bytes(data))
                if is_whole(&operation, data.as_slice()) =>
            {
                failure = self.place(segments, segment, offset, data.as_slice()).err();
            }
            (Landing::Segment { segment, offset }, Outcome::Old(value))
                if is_whole(&operation, &value.to_le_bytes()) =>
            {
                failure = self.place(segments, segment, offset, &value.to_le_bytes()).err();
            }
            _ => return Err(Unexpected),
        }
        self.end(ticket, operation, failure);
        Ok(())
    }

    /// Writes a result into a segment of this rank, which may have freed it since.
    #[inline(always)]
    fn place(
        &self,
        segments: &mut impl Segments,
        segment: u32,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), Failure> {
        let (at, len) = (GlobalPointer { rank: self.rank, segment, offset }, bytes.len() as u64);
        check(segments, segment, offset, len).map_err(|refusal| Failure { at, len, refusal })?;
        segments.write(segment, offset, bytes);
        Ok(())
    }

    /// Ends an operation on the rank `from` whose bytes another layer has moved or refused.
    ///
    /// # Errors
    /// Returns `Unexpected` if the ticket does not belong to such an operation on that rank.
    #[inline(always)]
    pub fn complete(&mut self, from: u32, ticket: u32, refused: Option<Refusal>) -> Result<(), Unexpected> {
        let operation = self.operation(from, ticket)?;
        if operation.landing != Landing::Elsewhere {
            return Err(Unexpected);
        }
        let Outstanding { at, len, .. } = operation;
        self.end(ticket, operation, refused.map(|refusal| Failure { at, len, refusal }));
        Ok(())
    }

    /// Returns an operation under way on the rank `from`.
    #[inline(always)]
    fn operation(&self, from: u32, ticket: u32) -> Result<Outstanding, Unexpected> {
        let operation = self.outstanding.get(ticket as usize).copied().flatten();
        operation.filter(|operation| operation.at.rank == from).ok_or(Unexpected)
    }

    #[inline(always)]
    fn end(&mut self, ticket: u32, operation: Outstanding, failure: Option<Failure>) {
        self.outstanding[ticket as usize] = None;
        let completion = operation.completion as usize;
        self.free.push(ticket);
        self.counts[completion] -= 1;
        if let Some(failure) = failure {
            self.failures[completion].get_or_insert(failure);
        }
    }
}

/// Reports whether these are all bytes of the result of an operation.
#[inline(always)]
fn is_whole(operation: &Outstanding, bytes: &[u8]) -> bool {
    bytes.len() as u64 == operation.len
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No segment is there any more.
    struct Freed;

    impl Segments for Freed {
        fn len(&self, _: u32) -> Option<u64> {
            None
        }
        fn read(&self, _: u32, _: u64, _: &mut [u8]) {}
        fn write(&mut self, _: u32, _: u64, _: &[u8]) {}
    }

    #[test]
    fn another_layer_ends_only_operations_whose_bytes_it_moves_at_their_rank() {
        let at = GlobalPointer { rank: 3, segment: 1, offset: 0 };
        let mut initiator = Initiator::new(7);
        let mut begin =
            |landing| initiator.begin(Outstanding { at, len: 8, landing, completion: Completion::Call });
        let [moved, other] = [begin(Landing::Elsewhere), begin(Landing::Value)];
        let refusal = Some(Refusal::NoSuchSegment);
        for (from, ticket) in [(3, other), (4, moved), (3, 2)] {
            assert_eq!(initiator.complete(from, ticket, refusal), Err(Unexpected));
        }
        assert_eq!(initiator.count(Completion::Call), 2);
        assert_eq!(initiator.take_failure(Completion::Call), None);
        assert_eq!(initiator.complete(3, moved, refusal), Ok(()));
        assert_eq!(initiator.complete(3, moved, refusal), Err(Unexpected));
        assert_eq!(initiator.count(Completion::Call), 1);
    }

    #[test]
    fn a_failure_names_the_segment_that_is_not_there() {
        let there = GlobalPointer { rank: 3, segment: 1, offset: 40 };
        let here = GlobalPointer { rank: 7, segment: 2, offset: 8 };
        let landing = Landing::Segment { segment: 2, offset: 8 };
        let refused = Outcome::Refused(Refusal::NoSuchSegment);
        for (outcome, at) in [(Outcome::Old(1), here), (refused, there)] {
            let mut initiator = Initiator::new(7);
            let operation = Outstanding { at: there, len: 8, landing, completion: Completion::Sync };
            let ticket = initiator.begin(operation);
            assert_eq!(initiator.take(3, Reply { ticket, outcome }, &mut Freed), Ok(()));
            assert_eq!(initiator.count(Completion::Sync), 0);
            let failure = Failure { at, len: 8, refusal: Refusal::NoSuchSegment };
            assert_eq!(initiator.take_failure(Completion::Sync), Some(failure));
        }
    }
}
