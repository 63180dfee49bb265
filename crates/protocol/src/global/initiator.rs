//! The initiator of operations: its outstanding operations, the counters that a sync waits for, and the first error
//! that came back to each of them.

use super::message::{Outcome, Reply};
use super::{GlobalPointer, Refusal, Segments, check};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// The call that waits for an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// The call that began it.
    Call,
    /// The next sync: the operation is a split-phase get or put.
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
    /// The old value of an atomic operation, for [`Initiator::value`].
    Value,
    /// The bytes of a get, from this offset in [`Initiator::bytes`] on.
    Bytes(usize),
    /// The bytes of a get, in a segment of this rank.
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
    outstanding: BTreeMap<u32, Outstanding>,
    next_ticket: u32,
    counts: [usize; COMPLETIONS],
    failures: [Option<Failure>; COMPLETIONS],
    /// The old value that the last atomic operation returned.
    pub value: u64,
    /// The bytes of gets that land in no segment. The caller sets the length first.
    pub bytes: Vec<u8>,
}

impl Initiator {
    /// Begins an operation, and returns the ticket for its request.
    pub fn begin(&mut self, operation: Outstanding) -> u32 {
        // Tickets are given out again after 2^32 operations; an old one may still be under way.
        while self.outstanding.contains_key(&self.next_ticket) {
            self.next_ticket = self.next_ticket.wrapping_add(1);
        }
        let ticket = self.next_ticket;
        self.next_ticket = ticket.wrapping_add(1);
        self.outstanding.insert(ticket, operation);
        self.counts[operation.completion as usize] += 1;
        ticket
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
    pub fn take(
        &mut self,
        from: u32,
        Reply { ticket, outcome }: Reply<'_>,
        segments: &mut impl Segments,
    ) -> Result<(), Unexpected> {
        let operation = *self.outstanding.get(&ticket).ok_or(Unexpected)?;
        if operation.at.rank != from {
            return Err(Unexpected);
        }
        let mut refused = None;
        match (operation.landing, outcome) {
            (_, Outcome::Refused(refusal)) => refused = Some(refusal),
            (Landing::Nothing | Landing::Elsewhere, Outcome::Written) => {}
            (Landing::Value, Outcome::Old(value)) => self.value = value,
            (Landing::Bytes(offset), Outcome::Bytes(bytes)) if bytes.len() as u64 == operation.len => {
                let place = self.bytes.get_mut(offset..offset + bytes.len()).ok_or(Unexpected)?;
                place.copy_from_slice(bytes);
            }
            (Landing::Segment { segment, offset }, Outcome::Bytes(bytes))
                if bytes.len() as u64 == operation.len =>
            {
                // This rank may have freed the segment since.
                match check(segments, segment, offset, operation.len) {
                    Ok(()) => segments.write(segment, offset, bytes),
                    Err(refusal) => refused = Some(refusal),
                }
            }
            _ => return Err(Unexpected),
        }
        self.complete(ticket, refused);
        Ok(())
    }

    /// Ends an operation whose bytes another layer has moved or refused.
    pub fn complete(&mut self, ticket: u32, refused: Option<Refusal>) {
        let Some(Outstanding { at, len, completion, .. }) = self.outstanding.remove(&ticket) else { return };
        self.counts[completion as usize] -= 1;
        if let Some(refusal) = refused {
            self.failures[completion as usize].get_or_insert(Failure { at, len, refusal });
        }
    }
}
