//! A VI provider: its protection tags, registered memory, VIs and completion queues, and the events
//! that it reports (VIA 1.0, "VI provider"; Speight et al. 1999, section 2).

use super::attributes::{NicAttributes, Offer, Unsupported, ViAttributes};
use super::codes::{AsyncError, Resource};
use super::completion::{CompletionQueue, CqError, CqHandle, Done};
use super::connections::{Asking, ConnectError, Meeting};
use super::descriptor::{Completion, DescriptorAt};
use super::fragments::Fragments;
use super::handles::ViHandle;
use super::memory::{MemAttributes, MemHandle, Memory, MemoryError, Ptag, Region};
use super::queue::{Completed, WorkQueue};
use super::state::State;
use super::table::Table;
use super::work::Side;
use crate::frame::vi_message::Head;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The reasons why a call about VIs is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceError {
    /// The VI does not exist.
    NoSuchVi,
    /// The completion queue does not exist.
    NoSuchQueue,
    /// The protection tag does not exist.
    NoSuchTag,
    /// The provider has as many VIs as it can have.
    TooMany,
    /// The VI is in a state in which this is not allowed.
    State,
    /// The provider does not support the requested attributes.
    Unsupported(Unsupported),
}

/// A connection, as the transport sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// This side's number for the connection: messages from the peer carry it.
    pub local: u64,
    /// The peer's number for the connection.
    pub remote: u64,
    /// The peer's host.
    pub host: Vec<u8>,
    /// The attributes of the peer's VI.
    pub offer: Offer,
}

/// An asynchronous error, as passed to the error callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The error.
    pub error: AsyncError,
    /// The kind of the resource that failed.
    pub resource: Resource,
    /// The VI, if the error concerns one.
    pub vi: Option<ViHandle>,
    /// The completion queue, if the error concerns one.
    pub cq: Option<CqHandle>,
    /// The descriptor, if the error concerns one.
    pub at: Option<DescriptorAt>,
}

/// An event that a provider reports to its driver, in the order of occurrence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A descriptor is complete: the driver writes the completion into it now.
    Completed {
        /// The VI.
        vi: ViHandle,
        /// The queue.
        side: Side,
        /// The descriptor.
        at: DescriptorAt,
        /// The values to write.
        completion: Completion,
    },
    /// The callback for a completed descriptor must be called (`VipSendNotify`, `VipRecvNotify`). The
    /// descriptor has been taken from its queue.
    Callback {
        /// The VI.
        vi: ViHandle,
        /// The queue.
        side: Side,
        /// The descriptor.
        at: DescriptorAt,
    },
    /// The callback for an entry of a completion queue must be called (`VipCQNotify`). The entry has
    /// been taken from the queue.
    CqCallback {
        /// The completion queue.
        cq: CqHandle,
        /// The queue with the completed descriptor.
        done: Done,
    },
    /// The error callback must be called.
    Failed(Failure),
    /// The VI is connected: from now on it may send and receive.
    Linked {
        /// The VI.
        vi: ViHandle,
        /// The connection.
        link: Link,
    },
    /// The VI is no longer connected.
    Unlinked {
        /// The VI.
        vi: ViHandle,
        /// The former connection.
        link: Link,
        /// The side that ended it.
        parting: Parting,
    },
}

/// The side that ended a connection. It decides whether the transport must tell the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parting {
    /// This side: the transport tells the peer, after all messages that were sent.
    Ours,
    /// This side, by the refusal of a message: the refusal tells the peer.
    Refusal,
    /// The peer.
    Peers,
}

/// The state of a VI, as a program may query it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViQuery {
    /// The connection state.
    pub state: State,
    /// The attributes.
    pub attributes: ViAttributes,
    /// Whether the send queue is empty.
    pub is_send_empty: bool,
    /// Whether the receive queue is empty.
    pub is_receive_empty: bool,
}

/// A VI: one end of a connection, once it is connected.
#[derive(Clone, Debug)]
pub(super) struct Vi {
    pub attributes: ViAttributes,
    pub state: State,
    pub send: WorkQueue,
    pub receive: WorkQueue,
    pub send_cq: Option<CqHandle>,
    pub receive_cq: Option<CqHandle>,
    pub link: Option<Link>,
    /// The head of the peer's message whose bytes are arriving.
    pub arriving: Option<Head>,
    pub fragments: Fragments,
    /// The pending request for a connection, and the outcome of the last one.
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

    /// Completes the oldest descriptor of a queue, if it is finished.
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

/// A VI provider.
#[derive(Clone, Debug)]
pub struct Nic {
    attributes: NicAttributes,
    pub(super) memory: Memory,
    pub(super) vis: Table<ViHandle, Vi>,
    pub(super) cqs: Table<CqHandle, CompletionQueue>,
    pub(super) meeting: Meeting,
    events: VecDeque<Event>,
    /// Descriptors completed by the fast path, modulo 2^64.
    at_once: u64,
}

impl Nic {
    /// Creates a provider without tags, memory, VIs or completion queues.
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

    /// Returns the attributes of the provider.
    pub fn attributes(&self) -> &NicAttributes {
        &self.attributes
    }

    /// Takes the next event.
    #[inline]
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Reports whether all events were taken. Otherwise the fast path would overtake them.
    #[inline]
    pub(super) fn is_at_rest(&self) -> bool {
        self.events.is_empty()
    }

    #[inline]
    pub(super) fn count_at_once(&mut self) {
        self.at_once = self.at_once.wrapping_add(1);
    }

    /// Returns the number of descriptors that the fast path completed, modulo 2^64. No event reports
    /// them.
    #[inline]
    pub fn at_once(&self) -> u64 {
        self.at_once
    }

    pub(super) fn tell(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// Creates a protection tag.
    ///
    /// # Errors
    /// Returns `TooMuch` if there are too many.
    pub fn create_tag(&mut self) -> Result<Ptag, MemoryError> {
        self.memory.create_tag()
    }

    /// Destroys a protection tag.
    ///
    /// # Errors
    /// Returns `NoSuchTag` if it does not exist, `TagInUse` if a VI or a region has it.
    pub fn destroy_tag(&mut self, tag: Ptag) -> Result<(), MemoryError> {
        self.memory.destroy_tag(tag)
    }

    /// Registers `len` bytes of memory at `address`, for VIs with the same protection tag.
    ///
    /// # Errors
    /// Returns `NoRange` if there are no bytes or the addresses overflow, `NoSuchTag` if the tag does
    /// not exist. Returns `ReadNotSupported` if peers may not read here, `TooMuch` if a limit is
    /// exceeded.
    pub fn register(
        &mut self,
        address: u64,
        len: u64,
        attributes: MemAttributes,
    ) -> Result<MemHandle, MemoryError> {
        self.memory.register(address, len, attributes)
    }

    /// Deregisters memory at once, for posted descriptors and arriving messages too.
    ///
    /// # Errors
    /// Returns `NoSuchRegion` if the handle has no region that begins at `address`.
    pub fn deregister(&mut self, address: u64, handle: MemHandle) -> Result<(), MemoryError> {
        self.memory.deregister(address, handle)
    }

    /// Returns the region of a handle.
    ///
    /// # Errors
    /// Returns `NoSuchRegion` if the handle has no region that begins at `address`.
    pub fn query_memory(&self, address: u64, handle: MemHandle) -> Result<&Region, MemoryError> {
        self.memory.query(address, handle)
    }

    /// Changes the attributes of registered memory.
    ///
    /// # Errors
    /// Returns `NoSuchRegion` if the handle has no region that begins at `address`. Returns `NoSuchTag`
    /// if the tag does not exist, `ReadNotSupported` if peers may not read here.
    pub fn set_memory(
        &mut self,
        address: u64,
        handle: MemHandle,
        attributes: MemAttributes,
    ) -> Result<(), MemoryError> {
        self.memory.set_attributes(address, handle, attributes)
    }

    /// Creates a VI. Its queues complete on the given completion queues, if any.
    ///
    /// # Errors
    /// Returns `Unsupported` if the provider does not support the attributes, `TooMany` if there are
    /// too many VIs. Returns `NoSuchQueue` or `NoSuchTag` if one of these does not exist.
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

    /// Destroys an idle VI. The descriptors in its queues are dropped.
    ///
    /// # Errors
    /// Returns `NoSuchVi` if it does not exist, `State` if it is not idle.
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

    /// Returns the state of a VI.
    ///
    /// # Errors
    /// Returns `NoSuchVi` if it does not exist.
    pub fn query_vi(&self, vi: ViHandle) -> Result<ViQuery, ResourceError> {
        let Vi { state, attributes, send, receive, .. } = self.vi(vi)?;
        Ok(ViQuery {
            state: *state,
            attributes: *attributes,
            is_send_empty: send.is_empty(),
            is_receive_empty: receive.is_empty(),
        })
    }

    /// Returns the handles of all VIs.
    pub fn vis(&self) -> Vec<ViHandle> {
        self.vis.handles()
    }

    /// Changes the attributes of an idle VI.
    ///
    /// # Errors
    /// Returns `NoSuchVi` if it does not exist, `State` if it is not idle. Returns `Unsupported` if the
    /// provider does not support the attributes, `NoSuchTag` if the tag does not exist.
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

    /// Reports whether a queue of a VI completes on a completion queue. If so, the program waits there.
    ///
    /// # Errors
    /// Returns `NoSuchVi` if the VI does not exist.
    pub fn completes_elsewhere(&self, vi: ViHandle, side: Side) -> Result<bool, ResourceError> {
        Ok(self.vi(vi)?.cq(side).is_some())
    }

    fn vi(&self, vi: ViHandle) -> Result<&Vi, ResourceError> {
        self.vis.get(vi).ok_or(ResourceError::NoSuchVi)
    }

    /// Creates a completion queue for `entries` entries.
    ///
    /// # Errors
    /// Returns `NoSuchSize` if the size is 0 or too large, `TooMany` if there are too many queues.
    pub fn create_cq(&mut self, entries: u32) -> Result<CqHandle, CqError> {
        self.check_cq_size(entries)?;
        self.cqs.insert(CompletionQueue::new(entries)).map_err(|_| CqError::TooMany)
    }

    /// Destroys a completion queue that no VI uses.
    ///
    /// # Errors
    /// Returns `NoSuchQueue` if it does not exist, `InUse` if a VI uses it.
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

    /// Changes the size of a completion queue to `entries` entries and keeps those in it.
    ///
    /// # Errors
    /// Returns `NoSuchQueue` if it does not exist, `NoSuchSize` if the size is 0 or too large,
    /// `TooSmall` if it holds more entries.
    pub fn resize_cq(&mut self, cq: CqHandle, entries: u32) -> Result<(), CqError> {
        self.check_cq_size(entries)?;
        self.cqs.get_mut(cq).ok_or(CqError::NoSuchQueue)?.resize(entries)
    }

    fn check_cq_size(&self, entries: u32) -> Result<(), CqError> {
        let is_one = (1..=self.attributes.cq_entries).contains(&entries);
        if is_one { Ok(()) } else { Err(CqError::NoSuchSize) }
    }

    /// Takes the next entry of a completion queue: the VI queue with the completed descriptor, to be
    /// taken from there.
    ///
    /// # Errors
    /// Returns `NoSuchQueue` if the completion queue does not exist.
    pub fn cq_done(&mut self, cq: CqHandle) -> Result<Option<Done>, CqError> {
        Ok(self.cqs.get_mut(cq).ok_or(CqError::NoSuchQueue)?.take())
    }

    /// Asks for a callback for one more entry of a completion queue.
    ///
    /// # Errors
    /// Returns `NoSuchQueue` if it does not exist.
    pub fn notify_cq(&mut self, cq: CqHandle) -> Result<(), CqError> {
        self.cqs.get_mut(cq).ok_or(CqError::NoSuchQueue)?.want_callback();
        self.call_back_cq(cq);
        Ok(())
    }

    /// Reports the callbacks that are due on a completion queue.
    pub(super) fn call_back_cq(&mut self, cq: CqHandle) {
        while let Some(done) = self.cqs.get_mut(cq).and_then(CompletionQueue::take_for_callback) {
            self.tell(Event::CqCallback { cq, done });
        }
    }

    /// Reports that the provider has failed as a whole: every VI breaks.
    pub fn fail(&mut self) {
        let error = AsyncError::Catastrophic;
        self.tell(Event::Failed(Failure { error, resource: Resource::Nic, vi: None, cq: None, at: None }));
        for vi in self.vis.handles() {
            self.break_silently(vi, Parting::Ours);
            self.settle(vi);
        }
    }
}
