//! Receiving: the decisions of a VI about an arriving message (VIA 1.0, "receive processing", "RDMA").
//!
//! ```text
//!   arrive ----> Place ----> places (once for each piece that comes) ----> arrived
//!      |    \--> Serve ----> serves (once for each piece that goes)
//!      +-------> Drop, or Refuse: the message is discarded; a reliable VI breaks
//! ```
//!
//! The registration of memory is checked when the message begins and again for each piece, because
//! memory may be deregistered in between. If the sender has already copied all the bytes, over shared
//! memory, `arrived` follows directly on `arrive`.

use super::codes::{AsyncError, Resource, Status};
use super::descriptor::Completion;
use super::fragments::Piece;
use super::handles::ViHandle;
use super::memory::Access;
use super::nic::{Event, Failure, Nic, Parting, Vi};
use super::work::{Remote, Segment, cut};
use crate::frame::vi_fragment::Fragment;
use crate::frame::vi_message::{Head, Kind, Refusal};
use alloc::vec::Vec;

/// The decision about an arriving message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The transport places its bytes ([`Nic::places`]) and then reports its arrival
    /// ([`Nic::arrived`]).
    Place,
    /// The transport sends the bytes that the peer reads ([`Nic::serves`]).
    Serve,
    /// The message is discarded without an answer. Only an unreliable VI does this.
    Drop,
    /// The transport tells the peer that the message is refused.
    Refuse(Refusal),
}

/// The reason why a message can not be taken. It has the status for the receive, if the message
/// consumes one, the error for the callback, and the refusal for the peer.
struct Trouble {
    status: Option<Status>,
    error: AsyncError,
    refusal: Refusal,
}

impl Trouble {
    const NO_RECEIVE: Self =
        Self { status: None, error: AsyncError::RecvqEmpty, refusal: Refusal::NoReceive };
    const WRITE_DENIED: Self =
        Self { status: None, error: AsyncError::RdmawProt, refusal: Refusal::WriteDenied };
    /// The denied write would have consumed a receive, so the receive reports the denial.
    const WRITE_DENIED_TO_RECEIVE: Self = Self {
        status: Some(Status::OP_REMOTE_WRITE.with(Status::RDMA_PROT_ERROR)),
        error: AsyncError::ConnLost,
        refusal: Refusal::WriteDenied,
    };
    const READ_DENIED: Self =
        Self { status: None, error: AsyncError::RdmarProt, refusal: Refusal::ReadDenied };
    /// The message is longer than the VIs agreed on, or has other bytes than its head announced.
    const MISBEHAVED: Self = Self { status: None, error: AsyncError::ConnLost, refusal: Refusal::TooLong };

    /// The status of the receive reports its fault. The receive was posted long before, so the callback
    /// reports that the connection was lost.
    const fn of_receive(status: Status, refusal: Refusal) -> Self {
        Self { status: Some(status), error: AsyncError::ConnLost, refusal }
    }
}

impl Nic {
    /// Decides about a message of the peer's whose head has arrived.
    pub fn arrive(&mut self, vi: ViHandle, head: &Head) -> Arrival {
        if !self.vis.get(vi).is_some_and(Vi::is_connected) {
            return Arrival::Refuse(Refusal::NotConnected);
        }
        match self.examine(vi, head) {
            Err(trouble) => self.refuse(vi, &trouble),
            // A read may come between the pieces of another message and leaves that message alone.
            Ok(()) if matches!(head.kind, Kind::Read { .. }) => Arrival::Serve,
            Ok(()) => {
                self.vis.get_mut(vi).into_iter().for_each(|endpoint| endpoint.arriving = Some(*head));
                Arrival::Place
            }
        }
    }

    /// Checks whether a message can be taken.
    fn examine(&self, vi: ViHandle, head: &Head) -> Result<(), Trouble> {
        let endpoint = self.vis.get(vi).ok_or(Trouble::MISBEHAVED)?;
        if head.len > endpoint.attributes.transfer_bytes {
            return Err(Trouble::MISBEHAVED);
        }
        match head.kind {
            Kind::Send { .. } => {
                let (fault, room) = self.next_receive(vi, head.len).ok_or(Trouble::NO_RECEIVE)?;
                match fault {
                    Some(status) => Err(Trouble::of_receive(status, Refusal::BadReceive)),
                    None if room < head.len => {
                        Err(Trouble::of_receive(Status::LENGTH_ERROR, Refusal::TooLong))
                    }
                    None => Ok(()),
                }
            }
            Kind::Write { remote, immediate } => {
                self.examine_write(endpoint, remote, immediate, head.len)?;
                if immediate.is_none() {
                    return Ok(());
                }
                // The write consumes a receive to report its immediate data. The segments of that
                // receive are not used.
                match self.next_receive(vi, head.len).ok_or(Trouble::NO_RECEIVE)? {
                    (Some(status @ Status::FORMAT_ERROR), _) => {
                        Err(Trouble::of_receive(status, Refusal::BadReceive))
                    }
                    _ => Ok(()),
                }
            }
            Kind::Read { remote } => self.examine_read(endpoint, remote, head.len),
        }
    }

    fn examine_write(
        &self,
        endpoint: &Vi,
        remote: Remote,
        immediate: Option<u32>,
        len: u32,
    ) -> Result<(), Trouble> {
        let tag = endpoint.attributes.tag;
        let is_allowed = endpoint.attributes.can_be_written
            && self.memory.check_remote(tag, remote, len, Access::PeerWrites).is_ok();
        match (is_allowed, immediate.and(endpoint.receive.next())) {
            (true, _) => Ok(()),
            (false, None) => Err(Trouble::WRITE_DENIED),
            (false, Some(_)) => Err(Trouble::WRITE_DENIED_TO_RECEIVE),
        }
    }

    fn examine_read(&self, endpoint: &Vi, remote: Remote, len: u32) -> Result<(), Trouble> {
        let tag = endpoint.attributes.tag;
        let is_allowed = endpoint.attributes.can_be_read
            && endpoint.is_reliable()
            && self.memory.check_remote(tag, remote, len, Access::PeerReads).is_ok();
        if is_allowed { Ok(()) } else { Err(Trouble::READ_DENIED) }
    }

    /// Appends to `out` the places of `len` bytes of the arriving message, from byte `at` on.
    ///
    /// # Errors
    /// Returns the refusal if the bytes have no place any more: the rest of the message is not wanted.
    /// A reliable VI is then broken, and the transport must tell the peer.
    pub fn places(&mut self, vi: ViHandle, at: u32, len: u32, out: &mut Vec<Segment>) -> Result<(), Refusal> {
        if !self.vis.get(vi).is_some_and(Vi::is_connected) {
            return Err(Refusal::NotConnected);
        }
        let begin = out.len();
        match self.find_places(vi, at, len, out) {
            Ok(()) => Ok(()),
            Err(trouble) => {
                out.truncate(begin);
                self.refuse(vi, &trouble);
                Err(trouble.refusal)
            }
        }
    }

    fn find_places(&self, vi: ViHandle, at: u32, len: u32, out: &mut Vec<Segment>) -> Result<(), Trouble> {
        let endpoint = self.vis.get(vi).ok_or(Trouble::MISBEHAVED)?;
        let head = endpoint.arriving.ok_or(Trouble::MISBEHAVED)?;
        if at.checked_add(len).is_none_or(|end| end > head.len) {
            return Err(Trouble::MISBEHAVED);
        }
        if let Kind::Write { remote, immediate } = head.kind {
            self.examine_write(endpoint, remote, immediate, head.len)?;
            let Remote { address, handle } = remote;
            out.extend(cut(&[Segment { address, handle, len: head.len }], at, len));
            return Ok(());
        }
        let begin = out.len();
        let receive = endpoint.receive.next().and_then(|entry| entry.work.as_ref().ok());
        out.extend(cut(receive.ok_or(Trouble::MISBEHAVED)?.segments.as_slice(), at, len));
        let is_allowed = |segment| self.memory.check(endpoint.attributes.tag, segment).is_ok();
        if out[begin..].iter().all(is_allowed) {
            Ok(())
        } else {
            Err(Trouble::of_receive(Status::PROTECTION_ERROR, Refusal::BadReceive))
        }
    }

    /// Reports that all bytes of the message are in place: the receive that it consumes completes.
    pub fn arrived(&mut self, vi: ViHandle) {
        let Some(endpoint) = self.vis.get_mut(vi) else { return };
        let Some(head) = endpoint.arriving.take() else { return };
        let (status, immediate) = match head.kind {
            Kind::Send { immediate } => (Status::OP_RECEIVE, immediate),
            Kind::Write { immediate: None, .. } | Kind::Read { .. } => return,
            Kind::Write { immediate, .. } => (Status::OP_REMOTE_WRITE, immediate),
        };
        let status = if immediate.is_some() { status.with(Status::IMMEDIATE) } else { status };
        self.complete_receive(vi, Completion { status, len: head.len, immediate });
    }

    fn complete_receive(&mut self, vi: ViHandle, completion: Completion) {
        if let Some(endpoint) = self.vis.get_mut(vi)
            && let Some(number) = endpoint.receive.begin()
        {
            endpoint.receive.finish(number, completion);
        }
        self.settle(vi);
    }

    /// Abandons the arriving message. On an unreliable VI the next message takes its receive.
    pub fn abandon(&mut self, vi: ViHandle) {
        if let Some(endpoint) = self.vis.get_mut(vi) {
            endpoint.arriving = None;
        }
    }

    /// Returns the place of `len` bytes that the peer reads, from byte `at` of its read on.
    ///
    /// # Errors
    /// Returns the refusal if the peer may not, or no longer, read them. The VI is then broken, and the
    /// transport must tell the peer.
    pub fn serves(&mut self, vi: ViHandle, head: &Head, at: u32, len: u32) -> Result<Segment, Refusal> {
        let endpoint = self.vis.get(vi).filter(|endpoint| endpoint.is_connected());
        let Some(endpoint) = endpoint else { return Err(Refusal::NotConnected) };
        let trouble = match head.kind {
            Kind::Read { remote } if at.checked_add(len).is_some_and(|end| end <= head.len) => {
                match self.examine_read(endpoint, remote, head.len) {
                    Ok(()) => {
                        let Remote { address, handle } = remote;
                        return Ok(Segment { address: address + u64::from(at), handle, len });
                    }
                    Err(trouble) => trouble,
                }
            }
            _ => Trouble::MISBEHAVED,
        };
        self.refuse(vi, &trouble);
        Err(trouble.refusal)
    }

    /// Takes a piece of a message on an unreliable VI and appends the places of its bytes to `out`.
    /// Returns whether the piece completes the message: the caller then calls [`Nic::arrived`] once the
    /// bytes are in place. Returns `None` if the piece is discarded.
    pub fn arrive_in_pieces(
        &mut self,
        vi: ViHandle,
        piece: &Fragment<'_>,
        out: &mut Vec<Segment>,
    ) -> Option<bool> {
        let Fragment { head, at, payload, .. } = piece;
        let len = payload.len() as u32;
        // A reliable VI receives no fragments.
        let is_meant = |endpoint: &&mut Vi| endpoint.is_connected() && !endpoint.is_reliable();
        let endpoint = self.vis.get_mut(vi).filter(is_meant)?;
        let is_taken = match endpoint.fragments.take(head, *at, len) {
            Piece::Stale => return None,
            Piece::Continues => true,
            Piece::Begins => self.arrive(vi, head) == Arrival::Place,
        };
        let is_placed = is_taken && self.places(vi, *at, len, out).is_ok();
        let fragments = &mut self.vis.get_mut(vi)?.fragments;
        let is_whole = fragments.is_whole();
        if is_whole || !is_placed {
            fragments.end();
        }
        is_placed.then_some(is_whole)
    }

    /// Refuses a message. Completes the receive with the error, if there is one to report, and breaks a
    /// reliable VI.
    fn refuse(&mut self, vi: ViHandle, trouble: &Trouble) -> Arrival {
        let Trouble { status, error, refusal } = *trouble;
        let Some(endpoint) = self.vis.get_mut(vi) else { return Arrival::Refuse(refusal) };
        endpoint.arriving = None;
        let is_reliable = endpoint.is_reliable();
        if let Some(status) = status
            && let Some(number) = endpoint.receive.begin()
        {
            endpoint.receive.finish(number, Completion { status, ..Completion::default() });
        }
        if is_reliable {
            self.break_vi(vi, error, None, Parting::Refusal);
        } else if matches!(error, AsyncError::RdmawProt) {
            self.tell_of_write(vi);
        }
        self.settle(vi);
        if is_reliable { Arrival::Refuse(refusal) } else { Arrival::Drop }
    }

    /// Reports a denied write of the peer's to the error callback, because no descriptor of either side
    /// reports it.
    fn tell_of_write(&mut self, vi: ViHandle) {
        let (error, resource) = (AsyncError::RdmawProt, Resource::Vi);
        self.tell(Event::Failed(Failure { error, resource, vi: Some(vi), cq: None, at: None }));
    }
}
