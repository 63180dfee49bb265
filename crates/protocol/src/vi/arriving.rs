//! What a VI does with a message that comes (VIA 1.0, "receive processing", "RDMA").
//!
//! ```text
//!   arrive ----> Place ----> places (as often as bytes come) ----> arrived
//!      |    \--> Serve ----> serves (as often as bytes go)
//!      +-------> Drop, or Refuse: nothing is done; a reliable VI is broken
//! ```
//!
//! Registration is checked as the message begins and again with each piece, for memory may be
//! deregistered between. Where whoever sends has copied the bytes already, over shared memory,
//! `arrive` and `arrived` follow each other.

use super::codes::{AsyncError, Resource, Status};
use super::descriptor::{Completion, Remote, Segment, cut};
use super::fragments::Piece;
use super::memory::Access;
use super::nic::{Event, Failure, Nic, Parting, Vi, ViHandle};
use crate::frame::vi_fragment::Fragment;
use crate::frame::vi_message::{Head, Kind, Refusal};
use alloc::vec::Vec;

/// What is to be done with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Its bytes are to be placed ([`Nic::places`]), and then it has arrived ([`Nic::arrived`]).
    Place,
    /// The bytes that it asks for are to be sent ([`Nic::serves`]).
    Serve,
    /// Nothing: it is lost, as may happen on a VI that promises nothing.
    Drop,
    /// The peer is to be told that it is refused.
    Refuse(Refusal),
}

/// A message can not be taken: what the receive says if it took one, what the error callback is
/// told, and what the peer.
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
    /// The write tells a receive of itself, and so it does that it is denied.
    const WRITE_DENIED_TO_RECEIVE: Self = Self {
        status: Some(Status::OP_REMOTE_WRITE.with(Status::RDMA_PROT_ERROR)),
        error: AsyncError::ConnLost,
        refusal: Refusal::WriteDenied,
    };
    const READ_DENIED: Self =
        Self { status: None, error: AsyncError::RdmarProt, refusal: Refusal::ReadDenied };
    /// More bytes than the VIs have agreed on, or other ones than were announced.
    const MISBEHAVED: Self = Self { status: None, error: AsyncError::ConnLost, refusal: Refusal::TooLong };

    /// The receive says what was wrong with it. That it was posted is long ago: the program is told that the
    /// connection has ended by it.
    const fn of_receive(status: Status, refusal: Refusal) -> Self {
        Self { status: Some(status), error: AsyncError::ConnLost, refusal }
    }
}

impl Nic {
    /// A message of the peer's begins.
    pub fn arrive(&mut self, vi: ViHandle, head: &Head) -> Arrival {
        if !self.vis.get(vi).is_some_and(Vi::is_connected) {
            return Arrival::Refuse(Refusal::NotConnected);
        }
        match self.examine(vi, head) {
            Err(trouble) => self.refuse(vi, &trouble),
            // Beside the message that is coming, where one is.
            Ok(()) if matches!(head.kind, Kind::Read { .. }) => Arrival::Serve,
            Ok(()) => {
                self.vis.get_mut(vi).into_iter().for_each(|endpoint| endpoint.arriving = Some(*head));
                Arrival::Place
            }
        }
    }

    /// Whether a message can be taken.
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
                // The receive is told of it. Its segments are not used.
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

    /// Where `len` bytes of the message that is coming belong, from `at` on. Puts the places behind
    /// `out`.
    ///
    /// # Errors
    /// They belong nowhere any more, and nothing more of the message is wanted. On a reliable VI,
    /// which is broken then, the peer is to be told.
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

    /// All bytes of the message are in place: what waits for it completes.
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

    /// Nothing more comes of the message that is coming: on a VI that promises nothing, the next
    /// one takes its receive.
    pub fn abandon(&mut self, vi: ViHandle) {
        if let Some(endpoint) = self.vis.get_mut(vi) {
            endpoint.arriving = None;
        }
    }

    /// Where `len` bytes are that the peer reads, from `at` on within what it asked for.
    ///
    /// # Errors
    /// It may not, or no longer. The VI is broken, and the peer is to be told.
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

    /// A piece of a message on a VI that promises nothing. Puts the places of its bytes behind
    /// `out`; whether they make the message whole, so that it has arrived once they are there.
    /// `None` where nothing is to be placed.
    pub fn arrive_in_pieces(
        &mut self,
        vi: ViHandle,
        piece: &Fragment<'_>,
        out: &mut Vec<Segment>,
    ) -> Option<bool> {
        let Fragment { head, at, payload, .. } = piece;
        let len = payload.len() as u32;
        // To one that promises something nothing comes so.
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

    /// A message is not taken. What the receive says that it would have had, and on a reliable VI
    /// the end.
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

    /// The peer wrote where it may not, and neither side has a descriptor that says so.
    fn tell_of_write(&mut self, vi: ViHandle) {
        let (error, resource) = (AsyncError::RdmawProt, Resource::Vi);
        self.tell(Event::Failed(Failure { error, resource, vi: Some(vi), cq: None, at: None }));
    }
}
