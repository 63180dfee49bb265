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

/// An operation that its target refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The place at the target.
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
#[derive(Debug, Default)]
pub struct Initiator {
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
        let operation = self.outstanding.get(ticket as usize).copied().flatten().ok_or(Unexpected)?;
        if operation.at.rank != from {
            return Err(Unexpected);
        }
        let mut refused = None;
        match (operation.landing, outcome) {
            (_, Outcome::Refused(refusal)) => refused = Some(refusal),
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
                refused = place(segments, segment, offset, data.as_slice()).err();
            }
            (Landing::Segment { segment, offset }, Outcome::Old(value))
                if is_whole(&operation, &value.to_le_bytes()) =>
            {
                refused = place(segments, segment, offset, &value.to_le_bytes()).err();
            }
            _ => return Err(Unexpected),
        }
        self.complete(ticket, refused);
        Ok(())
    }

    /// Ends an operation whose bytes another layer has moved or refused.
    #[inline(always)]
    pub fn complete(&mut self, ticket: u32, refused: Option<Refusal>) {
        let taken = self.outstanding.get_mut(ticket as usize).and_then(Option::take);
        let Some(Outstanding { at, len, completion, .. }) = taken else { return };
        self.free.push(ticket);
        self.counts[completion as usize] -= 1;
        if let Some(refusal) = refused {
            self.failures[completion as usize].get_or_insert(Failure { at, len, refusal });
        }
    }
}

/// Reports whether these are all bytes of the result of an operation.
#[inline(always)]
fn is_whole(operation: &Outstanding, bytes: &[u8]) -> bool {
    bytes.len() as u64 == operation.len
}

/// Writes a result into a segment of this rank, which may have freed it since.
#[inline(always)]
fn place(segments: &mut impl Segments, segment: u32, offset: u64, bytes: &[u8]) -> Result<(), Refusal> {
    check(segments, segment, offset, bytes.len() as u64)?;
    segments.write(segment, offset, bytes);
    Ok(())
}
