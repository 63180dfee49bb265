//! A provider: its tags, memory, VIs and completion queues (VIA 1.0, "VI provider"; Speight et al.
//! 1999, section 2), and what it has to tell.

use super::attributes::{NicAttributes, Offer, Unsupported, ViAttributes};
use super::codes::{AsyncError, Resource};
use super::completion::{CompletionQueue, CqError, CqHandle, Done};
use super::connecting::{Asking, ConnectError, Meeting};
use super::descriptor::{Completion, DescriptorAt, Side};
use super::fragments::Fragments;
use super::memory::{MemAttributes, MemHandle, Memory, MemoryError, Ptag, Region};
use super::queue::{Completed, WorkQueue};
use super::state::State;
use super::table::{Table, handle};
use crate::frame::vi_message::Head;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

handle! {
    /// A VI.
    ViHandle
}

/// Why a call about VIs is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceError {
    /// There is no such VI.
    NoSuchVi,
    /// There is no such completion queue.
    NoSuchQueue,
    /// There is no such protection tag.
    NoSuchTag,
    /// There can not be more VIs.
    TooMany,
    /// Not in the state that the VI is in.
    State,
    /// The provider does not have what the VI is to have.
    Unsupported(Unsupported),
}

/// A connection, as a carrier has to know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Our number for it: what comes for it carries this.
    pub local: u64,
    /// The peer's.
    pub remote: u64,
    /// The host that the peer is on.
    pub host: Vec<u8>,
    /// The peer's VI.
    pub offer: Offer,
}

/// What the error callback is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What went wrong.
    pub error: AsyncError,
    /// What it is about.
    pub resource: Resource,
    /// The VI that it happened to.
    pub vi: Option<ViHandle>,
    /// The completion queue that it happened to.
    pub cq: Option<CqHandle>,
    /// The descriptor that it happened to.
    pub at: Option<DescriptorAt>,
}

/// What a provider has to tell to whoever drives it, in the order in which it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A descriptor is complete: that is to be written into it now.
    Completed {
        /// The VI.
        vi: ViHandle,
        /// Its queue.
        side: Side,
        /// The descriptor.
        at: DescriptorAt,
        /// What is to be written.
        completion: Completion,
    },
    /// The program wanted to be called when a descriptor is done. It is taken from its queue.
    Callback {
        /// The VI.
        vi: ViHandle,
        /// Its queue.
        side: Side,
        /// The descriptor.
        at: DescriptorAt,
    },
    /// The same of a completion queue, the entry taken from it.
    CqCallback {
        /// The completion queue.
        cq: CqHandle,
        /// Where something is done.
        done: Done,
    },
    /// The error callback is to be called.
    Failed(Failure),
    /// The VI is connected: from now on it may send, and be sent to.
    Linked {
        /// The VI.
        vi: ViHandle,
        /// The connection.
        link: Link,
    },
    /// It is no longer.
    Unlinked {
        /// The VI.
        vi: ViHandle,
        /// The connection that it had.
        link: Link,
        /// Who has ended it.
        parting: Parting,
    },
}

/// Who has ended a connection, and so whether the carrier is to tell the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parting {
    /// This side: the peer learns it from the carrier, behind all that it was sent.
    Ours,
    /// This side, by refusing a message: the peer learns it from that.
    Refusal,
    /// The peer.
    Peers,
}

/// What a program sees of a VI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViQuery {
    /// Its state.
    pub state: State,
    /// What it is made for.
    pub attributes: ViAttributes,
    /// Whether nothing is in its send queue.
    pub is_send_empty: bool,
    /// Whether nothing is in its receive queue.
    pub is_receive_empty: bool,
}

/// One end of a connection, or of none.
#[derive(Clone, Debug)]
pub(super) struct Vi {
    pub attributes: ViAttributes,
    pub state: State,
    pub send: WorkQueue,
    pub receive: WorkQueue,
    pub send_cq: Option<CqHandle>,
    pub receive_cq: Option<CqHandle>,
    pub link: Option<Link>,
    /// The message of the peer's whose bytes are coming.
    pub arriving: Option<Head>,
    pub fragments: Fragments,
    /// The connection that it asks for, and what came of that.
    pub asking: Option<Asking>,
    pub answer: Option<Result<Offer, ConnectError>>,
}

impl Vi {
    pub fn queue(&mut self, side: Side) -> &mut WorkQueue {
        match side {
            Side::Send => &mut self.send,
            Side::Receive => &mut self.receive,
        }
    }

    /// The next descriptor to complete, if it is finished.
    #[inline]
    pub fn settle(&mut self) -> Option<(Side, Completed)> {
        match self.send.settle() {
            Some(completed) => Some((Side::Send, completed)),
            None => Some((Side::Receive, self.receive.settle()?)),
        }
    }

    pub fn cq(&self, side: Side) -> Option<CqHandle> {
        match side {
            Side::Send => self.send_cq,
            Side::Receive => self.receive_cq,
        }
    }

    pub fn is_connected(&self) -> bool {
        self.state == State::Connected
    }

    pub fn is_reliable(&self) -> bool {
        self.attributes.level.is_reliable()
    }
}

/// A provider.
#[derive(Clone, Debug)]
pub struct Nic {
    attributes: NicAttributes,
    pub(super) memory: Memory,
    pub(super) vis: Table<ViHandle, Vi>,
    pub(super) cqs: Table<CqHandle, CompletionQueue>,
    pub(super) meeting: Meeting,
    events: VecDeque<Event>,
    /// Descriptors that were complete by the short way.
    at_once: u64,
}

impl Nic {
    /// A provider with nothing in it.
    pub fn new(attributes: NicAttributes) -> Self {
        let can_read = attributes.read_levels.0 != 0;
        Self {
            attributes,
            memory: Memory::new(attributes.memory, can_read),
            vis: Table::new(attributes.vis),
            cqs: Table::new(attributes.cqs),
            meeting: Meeting::new(attributes.vis),
            events: VecDeque::new(),
            at_once: 0,
        }
    }

    /// What it can do.
    pub fn attributes(&self) -> &NicAttributes {
        &self.attributes
    }

    /// What it has to tell next.
    #[inline]
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Whether all was told: what is told at once would come before it.
    #[inline]
    pub(super) fn is_at_rest(&self) -> bool {
        self.events.is_empty()
    }

    #[inline]
    pub(super) fn count_at_once(&mut self) {
        self.at_once = self.at_once.wrapping_add(1);
    }

    /// How many descriptors were complete in one step, of which no event tells.
    #[inline]
    pub fn at_once(&self) -> u64 {
        self.at_once
    }

    pub(super) fn tell(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// A new protection tag.
    ///
    /// # Errors
    /// There are too many.
    pub fn create_tag(&mut self) -> Result<Ptag, MemoryError> {
        self.memory.create_tag()
    }

    /// Does away with a tag.
    ///
    /// # Errors
    /// There is none, or it is in use.
    pub fn destroy_tag(&mut self, tag: Ptag) -> Result<(), MemoryError> {
        self.memory.destroy_tag(tag)
    }

    /// Makes memory usable for VIs with its tag.
    ///
    /// # Errors
    /// It can not be.
    pub fn register(
        &mut self,
        address: u64,
        len: u64,
        attributes: MemAttributes,
    ) -> Result<MemHandle, MemoryError> {
        self.memory.register(address, len, attributes)
    }

    /// Makes it unusable, at once: also for what is posted and what is coming.
    ///
    /// # Errors
    /// It is not registered so.
    pub fn deregister(&mut self, address: u64, handle: MemHandle) -> Result<(), MemoryError> {
        self.memory.deregister(address, handle)
    }

    /// The registered memory of a handle.
    ///
    /// # Errors
    /// It is not registered so.
    pub fn query_memory(&self, address: u64, handle: MemHandle) -> Result<&Region, MemoryError> {
        self.memory.query(address, handle)
    }

    /// Changes what memory may be used for.
    ///
    /// # Errors
    /// It is not registered so, or can not be used so.
    pub fn set_memory(
        &mut self,
        address: u64,
        handle: MemHandle,
        attributes: MemAttributes,
    ) -> Result<(), MemoryError> {
        self.memory.set_attributes(address, handle, attributes)
    }

    /// A new VI, whose queues complete on these completion queues, where there are any.
    ///
    /// # Errors
    /// There is no such thing as it is to have.
    pub fn create_vi(
        &mut self,
        attributes: ViAttributes,
        send_cq: Option<CqHandle>,
        receive_cq: Option<CqHandle>,
    ) -> Result<ViHandle, ResourceError> {
        self.attributes.check(&attributes).map_err(ResourceError::Unsupported)?;
        if send_cq.iter().chain(&receive_cq).any(|cq| self.cqs.get(*cq).is_none()) {
            return Err(ResourceError::NoSuchQueue);
        }
        if self.vis.is_full() {
            return Err(ResourceError::TooMany);
        }
        self.memory.take_tag(attributes.tag).map_err(|_| ResourceError::NoSuchTag)?;
        for cq in send_cq.iter().chain(&receive_cq) {
            self.cqs.get_mut(*cq).into_iter().for_each(CompletionQueue::join);
        }
        let queue = |side| WorkQueue::new(side, self.attributes.descriptors);
        let vi = Vi {
            attributes,
            state: State::Idle,
            send: queue(Side::Send),
            receive: queue(Side::Receive),
            send_cq,
            receive_cq,
            link: None,
            arriving: None,
            fragments: Fragments::default(),
            asking: None,
            answer: None,
        };
        self.vis.insert(vi).map_err(|_| ResourceError::TooMany)
    }

    /// Does away with a VI, which is disconnected. What is in its queues is forgotten.
    ///
    /// # Errors
    /// There is none, or it is not idle.
    pub fn destroy_vi(&mut self, vi: ViHandle) -> Result<(), ResourceError> {
        if self.vi(vi)?.state != State::Idle {
            return Err(ResourceError::State);
        }
        let Some(gone) = self.vis.remove(vi) else { return Err(ResourceError::NoSuchVi) };
        self.memory.leave_tag(gone.attributes.tag);
        for cq in [gone.send_cq, gone.receive_cq].into_iter().flatten() {
            if let Some(cq) = self.cqs.get_mut(cq) {
                cq.leave();
                cq.forget(vi);
            }
        }
        Ok(())
    }

    /// What a program sees of a VI.
    ///
    /// # Errors
    /// There is none.
    pub fn query_vi(&self, vi: ViHandle) -> Result<ViQuery, ResourceError> {
        let Vi { state, attributes, send, receive, .. } = self.vi(vi)?;
        Ok(ViQuery {
            state: *state,
            attributes: *attributes,
            is_send_empty: send.is_empty(),
            is_receive_empty: receive.is_empty(),
        })
    }

    /// All VIs.
    pub fn vis(&self) -> Vec<ViHandle> {
        self.vis.handles()
    }

    /// Changes what an idle VI is made for.
    ///
    /// # Errors
    /// There is none, it is not idle, or it can not be made so.
    pub fn set_vi(&mut self, vi: ViHandle, attributes: ViAttributes) -> Result<(), ResourceError> {
        let Vi { state, attributes: old, .. } = self.vi(vi)?;
        let (state, old) = (*state, *old);
        if state != State::Idle {
            return Err(ResourceError::State);
        }
        self.attributes.check(&attributes).map_err(ResourceError::Unsupported)?;
        self.memory.take_tag(attributes.tag).map_err(|_| ResourceError::NoSuchTag)?;
        self.memory.leave_tag(old.tag);
        if attributes.tag != old.tag {
            self.memory.note_change();
        }
        if let Some(vi) = self.vis.get_mut(vi) {
            vi.attributes = attributes;
        }
        Ok(())
    }

    /// Whether a queue of a VI completes on a completion queue: then a program waits there.
    ///
    /// # Errors
    /// There is no such VI.
    pub fn completes_elsewhere(&self, vi: ViHandle, side: Side) -> Result<bool, ResourceError> {
        Ok(self.vi(vi)?.cq(side).is_some())
    }

    fn vi(&self, vi: ViHandle) -> Result<&Vi, ResourceError> {
        self.vis.get(vi).ok_or(ResourceError::NoSuchVi)
    }

    /// A new completion queue of so many entries.
    ///
    /// # Errors
    /// There is no such size, or there are too many.
    pub fn create_cq(&mut self, entries: u32) -> Result<CqHandle, CqError> {
        self.check_cq_size(entries)?;
        self.cqs.insert(CompletionQueue::new(entries)).map_err(|_| CqError::TooMany)
    }

    /// Does away with a completion queue that no VI has.
    ///
    /// # Errors
    /// There is none, or it is in use.
    pub fn destroy_cq(&mut self, cq: CqHandle) -> Result<(), CqError> {
        match self.cqs.get(cq) {
            None => Err(CqError::NoSuchQueue),
            Some(queue) if queue.is_in_use() => Err(CqError::InUse),
            Some(_) => {
                self.cqs.remove(cq);
                Ok(())
            }
        }
    }

    /// Gives a completion queue room for so many entries; those in it stay.
    ///
    /// # Errors
    /// There is none, there is no such size, or more are in it.
    pub fn resize_cq(&mut self, cq: CqHandle, entries: u32) -> Result<(), CqError> {
        self.check_cq_size(entries)?;
        self.cqs.get_mut(cq).ok_or(CqError::NoSuchQueue)?.resize(entries)
    }

    fn check_cq_size(&self, entries: u32) -> Result<(), CqError> {
        let is_one = (1..=self.attributes.cq_entries).contains(&entries);
        if is_one { Ok(()) } else { Err(CqError::NoSuchSize) }
    }

    /// Where something is done next: the descriptor is taken from there.
    ///
    /// # Errors
    /// There is no such queue.
    pub fn cq_done(&mut self, cq: CqHandle) -> Result<Option<Done>, CqError> {
        Ok(self.cqs.get_mut(cq).ok_or(CqError::NoSuchQueue)?.take())
    }

    /// The program is to be called for one more entry.
    ///
    /// # Errors
    /// There is no such queue.
    pub fn notify_cq(&mut self, cq: CqHandle) -> Result<(), CqError> {
        self.cqs.get_mut(cq).ok_or(CqError::NoSuchQueue)?.want_callback();
        self.call_back_cq(cq);
        Ok(())
    }

    /// Calls the program for what it wanted to be called for.
    pub(super) fn call_back_cq(&mut self, cq: CqHandle) {
        while let Some(done) = self.cqs.get_mut(cq).and_then(CompletionQueue::take_for_callback) {
            self.tell(Event::CqCallback { cq, done });
        }
    }

    /// The provider can not go on: every VI breaks.
    pub fn fail(&mut self) {
        let error = AsyncError::Catastrophic;
        self.tell(Event::Failed(Failure { error, resource: Resource::Nic, vi: None, cq: None, at: None }));
        for vi in self.vis.handles() {
            self.break_silently(vi, Parting::Ours);
            self.settle(vi);
        }
    }
}
