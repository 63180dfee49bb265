//! Atomic accesses: the target's engine carries them out, one after the other, when its process makes progress.

use super::arithmetic::{self, Datatype, Operation};
use super::endpoint::Arrival;
use super::{
    Access, Completion, Engine, Failure, Links, Op, PAYLOAD, Payload, PeerNo, Pending, Place, Refused, Role,
    Target, Wants,
};
use crate::abi;
use crate::frame::{Header, Kind};
use crate::memory::Memory;

/// Most bytes of values in an access. The comparands travel with the operands.
pub const MOST_VALUES: usize = PAYLOAD / 2 / 8 * 8;
/// The bit of a header's number that says that the origin wants the old values.
const FETCHES: u32 = 1 << 16;

/// An atomic access.
#[derive(Clone, Debug)]
pub struct Atomic {
    /// The operation.
    pub operation: Operation,
    /// The type of the values.
    pub datatype: Datatype,
    /// Length of all values in bytes.
    pub len: usize,
    /// The operands; none for a read.
    pub operands: Memory,
    /// The comparands, if the operation compares.
    pub comparands: Memory,
    /// Where the old values go; `None` if they are not wanted.
    pub result: Option<Memory>,
}

impl<L: Links> Engine<L> {
    /// Accesses memory of a peer.
    ///
    /// # Errors
    /// Returns an error if the operation was not begun.
    pub fn access(
        &mut self,
        endpoint: u16,
        to: Target,
        place: Place,
        atomic: Atomic,
        (context, wants): (usize, Wants),
    ) -> Result<(), Refused> {
        let Atomic { operation, datatype, len, operands, comparands, result } = atomic;
        self.check(to.peer)?;
        if len > MOST_VALUES {
            return Err(Refused::TooLong);
        }
        let mut payload = vec![0; operands.len() + comparands.len()];
        let (first, second) = payload.split_at_mut(operands.len());
        operands.read(0, first);
        comparands.read(0, second);
        let fetches = if result.is_some() { FETCHES } else { 0 };
        let header = Header {
            to: to.endpoint,
            from: endpoint,
            other: u32::from(operation as u8) | u32::from(datatype as u8) << 8 | fetches,
            len: len as u64,
            tag: place.key,
            offset: place.offset,
            ..Header::new(Kind::Atomic)
        };
        let (op, flag) = if result.is_some() { (Op::Read, abi::READ) } else { (Op::Write, abi::WRITE) };
        let completion = Completion::new(context, abi::ATOMIC | flag);
        let pending = Pending { op, completion, is_reported: wants.is_reported };
        let role = match result {
            Some(memory) => Role::Reading { pending, memory, got: 0, wanted: len },
            None => Role::Awaited { pending, memory: Memory::default(), is_accepted: true, copy: None },
        };
        self.begin(to.peer, header, Payload::Bytes(&payload), role);
        Ok(())
    }

    pub(super) fn on_atomic(&mut self, peer: PeerNo, header: &Header, payload: &[u8]) -> bool {
        let operation = Operation::of(header.other & 0xff);
        let datatype = Datatype::of(header.other >> 8 & 0xff);
        let (Some(operation), Some(datatype)) = (operation, datatype) else { return false };
        let fetches = header.other & FETCHES != 0;
        let len = usize::try_from(header.len).unwrap_or(usize::MAX);
        let operands = if operation == Operation::Read { 0 } else { len };
        let comparands = if operation.compares() { len } else { 0 };
        let is_sound = len > 0
            && len <= MOST_VALUES
            && len.is_multiple_of(datatype.len())
            && payload.len() == operands + comparands
            && datatype.has(operation);
        if !is_sound {
            return false;
        }
        let needs = Access {
            can_be_read: fetches || operation == Operation::Read,
            can_be_written: operation != Operation::Read,
        };
        let Some(memory) = self.region(header, needs) else {
            self.answer_done(peer, header.transfer, Some(Failure::NoMemory));
            return true;
        };
        let mut values = vec![0; len];
        memory.read(0, &mut values);
        let old = values.clone();
        let (operands, comparands) = payload.split_at(operands);
        arithmetic::apply(operation, datatype, &mut values, operands, comparands);
        if operation != Operation::Read {
            memory.write(0, &values);
        }
        if fetches {
            self.answer(peer, Header { transfer: header.transfer, ..Header::new(Kind::Piece) }, &old);
            self.was_read(header.to, header.tag);
        } else {
            self.answer_done(peer, header.transfer, None);
            self.written(header.to, Some(header.tag), &Arrival::of(peer, header), len, None);
        }
        true
    }
}
