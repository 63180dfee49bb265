//! Long transfers, by the bulk transfers of Active Messages.

use crate::error::Error;
use crate::state::{FETCHED, KEY, KeyQuestion, STORED, Segment};
use crate::world::World;
use netdyno_protocol::global::initiator::{Completion, Landing, Outstanding};
use netdyno_protocol::global::{GlobalPointer, Refusal};
use netdyno_stack::am::{AttachError, Memory, Remote, TransferError};

impl World {
    pub(crate) fn read_bulk(&mut self, from: GlobalPointer, into: &mut [u8]) -> Result<(), Error> {
        let local = self.endpoint.register(vec![0; into.len()].into())?;
        let got = self
            .fetch(from, &local, 0, into.len(), Completion::Call)
            .and_then(|()| self.complete(Completion::Call));
        self.endpoint.deregister(local.id())?;
        got?;
        // The memory has the length of `into`.
        local.read(0, into).map_err(|error| Error::Memory(error.to_string()))
    }

    pub(crate) fn get_bulk(
        &mut self,
        from: GlobalPointer,
        to: Segment,
        offset: usize,
        len: usize,
    ) -> Result<(), Error> {
        let local = self.state.memories.get(to.0).cloned();
        let local = local.ok_or_else(|| Error::NoSuchSegment(self.pointer(to, offset as u64)))?;
        self.fetch(from, &local, offset, len, Completion::Sync)
    }

    fn fetch(
        &mut self,
        from: GlobalPointer,
        local: &Memory,
        offset: usize,
        len: usize,
        completion: Completion,
    ) -> Result<(), Error> {
        let (ticket, remote) = self.begin_bulk(from, len, completion)?;
        let Some(remote) = remote else { return Ok(()) };
        let target = remote.at(usize::try_from(from.offset).unwrap_or(usize::MAX));
        let range = local.range(offset, len);
        let words = [ticket.into()];
        let begun = self.endpoint.get(&mut self.state, target, range, FETCHED, words);
        if begun.is_ok() {
            self.state.traffic.send(words.len(), 0);
            self.state.traffic.got_bytes += len as u64;
        }
        self.settle(from, ticket, remote, begun)
    }

    pub(crate) fn send_bulk(
        &mut self,
        to: GlobalPointer,
        bytes: &[u8],
        completion: Completion,
    ) -> Result<(), Error> {
        let (ticket, remote) = self.begin_bulk(to, bytes.len(), completion)?;
        let Some(remote) = remote else { return Ok(()) };
        let target = remote.at(usize::try_from(to.offset).unwrap_or(usize::MAX));
        let words = [ticket.into(), u64::from(completion == Completion::StoreSync)];
        let begun = self.endpoint.store(&mut self.state, target, bytes, STORED, words);
        if begun.is_ok() {
            self.state.traffic.send(words.len(), bytes.len());
        }
        self.settle(to, ticket, remote, begun)
    }

    /// Begins an operation, and returns its ticket and the memory of its target. Without that memory the operation has
    /// ended with an error, which its sync reports.
    fn begin_bulk(
        &mut self,
        at: GlobalPointer,
        len: usize,
        completion: Completion,
    ) -> Result<(u32, Option<Remote>), Error> {
        let remote = self.attach(at)?;
        let outstanding = Outstanding { at, len: len as u64, landing: Landing::Elsewhere, completion };
        let ticket = self.state.initiator.begin(outstanding);
        if remote.is_none() {
            self.refuse(at, ticket, Refusal::NoSuchSegment);
        }
        Ok((ticket, remote))
    }

    /// Ends an operation whose transfer was not begun.
    fn settle(
        &mut self,
        at: GlobalPointer,
        ticket: u32,
        remote: Remote,
        begun: Result<(), TransferError>,
    ) -> Result<(), Error> {
        let refusal = match begun {
            Ok(()) => return Ok(()),
            Err(TransferError::Remote(_)) => Refusal::OutOfBounds { segment_len: remote.len() as u64 },
            Err(TransferError::Deregistered) => {
                self.state.attached.remove(&(at.rank, at.segment));
                Refusal::NoSuchSegment
            }
            // No rank leaves while another one has operations, so that any loss ends the job.
            Err(TransferError::Lost(lost)) => return Err(self.lose(self.state.rank_of(lost.peer), lost)),
            Err(error) => return Err(self.fail(Error::unreachable(at.rank, &error))),
        };
        self.refuse(at, ticket, refusal);
        Ok(())
    }

    /// Ends an operation that was not begun.
    fn refuse(&mut self, at: GlobalPointer, ticket: u32, refusal: Refusal) {
        let ended = self.state.initiator.complete(at.rank, ticket, Some(refusal));
        debug_assert_eq!(ended, Ok(()));
    }

    /// Returns the memory of a segment of another rank, or `None` if it has none. Asks for its key the first time.
    fn attach(&mut self, at: GlobalPointer) -> Result<Option<Remote>, Error> {
        let GlobalPointer { rank, segment, .. } = at;
        if let Some(remote) = self.state.attached.get(&(rank, segment)) {
            return Ok(Some(*remote));
        }
        self.state.key = Some(KeyQuestion { rank, answer: None });
        self.post(rank, KEY, [segment.into(), 0, 0, 0], &[])?;
        self.state.traffic.round_trips += 1;
        self.wait(|state| state.key.as_ref().is_some_and(|question| question.answer.is_some()))?;
        let Some(key) = self.state.key.take().and_then(|question| question.answer).flatten() else {
            return Ok(None);
        };
        let peer = self.neighbour(rank)?;
        match self.endpoint.attach(&mut self.state, peer, &key) {
            Ok(remote) => {
                self.state.attached.insert((rank, segment), remote);
                Ok(Some(remote))
            }
            // The owner has freed it since it told the key.
            Err(AttachError::NotRegistered) => Ok(None),
            Err(AttachError::Lost(lost)) => Err(self.lose(self.state.rank_of(lost.peer), lost)),
            Err(error) => Err(Error::unreachable(rank, &error)),
        }
    }
}
