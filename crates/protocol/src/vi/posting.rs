//! Posting, processing and completing: the life of a descriptor (VIA 1.0, "descriptor processing",
//! "reliability levels").
//!
//! | | unreliable | reliable delivery | reliable reception |
//! | --- | --- | --- | --- |
//! | a send or write completes when | the wire has it | the wire has it | it is in the peer's memory |
//! | an error | is in the descriptor's status | breaks the VI | breaks the VI |
//! | RDMA reads | no | yes | yes |
//!
//! A VI that breaks enters the state ERROR, its unfinished descriptors are flushed, and the error
//! callback is called once with the reason. A faulty descriptor waits until all descriptors before it
//! are complete, so that it is the first to fail. A fenced descriptor waits as well.

use super::codes::{AsyncError, Level, Resource, Status};
use super::completion::{CqHandle, Done};
use super::descriptor::{ALIGNMENT, Completion, DescriptorAt, Malformed};
use super::handles::ViHandle;
use super::nic::{Event, Failure, Nic, Parting, Vi};
use super::queue::{Completed, Entry};
use super::state::{Change, State};
use super::work::{Operation, Segment, Side, Work, cut, only_segment};
use crate::frame::vi_message::{Head, Kind, Refusal};
use alloc::vec::Vec;

/// The reasons why a descriptor is not posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostError {
    /// The VI does not exist.
    NoSuchVi,
    /// The descriptor's address is not a multiple of [`ALIGNMENT`](super::descriptor::ALIGNMENT).
    Misaligned,
    /// The descriptor is not in memory that the VI may use.
    NotRegistered,
    /// The queue is full.
    Full,
}

/// A message for the transport to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The number of the descriptor, for [`Nic::progress`] and [`Nic::bytes_of`].
    pub number: u64,
    /// The head to send to the peer. Its number is the low 32 bits of `number`.
    pub head: Head,
}

/// The progress that a transport reports for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The wire has taken all of it: its memory is no longer needed.
    Accepted,
    /// It is in the peer's memory.
    Received,
    /// All bytes of an RDMA read have arrived.
    Fetched,
    /// The peer refused it.
    Refused(Refusal),
}

/// Returns the fault of a descriptor, if it has one. Only the first `used` bytes of its memory are
/// checked. Programs post receives that reach beyond registered memory, for messages that are shorter.
fn fault_of(nic: &Nic, vi: &Vi, entry: &Entry, used: u32) -> Option<Status> {
    let Ok(work) = &entry.work else { return Some(Status::FORMAT_ERROR) };
    let is_read = matches!(work.operation, Operation::Read(_));
    if is_read && !nic.attributes().can_read(vi.attributes.level) {
        return Some(Status::FORMAT_ERROR);
    }
    if work.operation != Operation::Receive && work.len > vi.attributes.transfer_bytes {
        return Some(Status::LENGTH_ERROR);
    }
    let is_allowed = |segment| nic.memory.check(vi.attributes.tag, &segment).is_ok();
    (!cut(work.segments.as_slice(), 0, used).all(is_allowed)).then_some(Status::PROTECTION_ERROR)
}

/// Returns the head of a descriptor's message.
#[inline]
pub(super) fn head_of(number: u64, operation: Operation, immediate: Option<u32>, len: u32) -> Head {
    let kind = match operation {
        Operation::Send | Operation::Receive => Kind::Send { immediate },
        Operation::Write(remote) => Kind::Write { remote, immediate },
        Operation::Read(remote) => Kind::Read { remote },
    };
    Head { number: number as u32, len, kind }
}

impl Nic {
    /// Posts a descriptor. `read` copies the descriptor and parses the copy with
    /// [`View::work`](super::View::work). Its argument is the number of registered bytes from the
    /// descriptor's first byte on. It is not called for a descriptor outside of registered memory. A
    /// malformed descriptor is posted as well, and completes with an error in its turn. After a send
    /// was posted, the transport calls [`Nic::next`].
    ///
    /// # Errors
    /// Returns `NoSuchVi` if the VI does not exist, `Full` if the queue is full. Returns `Misaligned`
    /// or `NotRegistered` if the descriptor's place is not allowed.
    pub fn post(
        &mut self,
        vi: ViHandle,
        side: Side,
        at: DescriptorAt,
        read: impl FnOnce(u64) -> Result<Work, Malformed>,
    ) -> Result<(), PostError> {
        let most = self.attributes().segments;
        let Self { vis, memory, .. } = self;
        let endpoint = vis.get_mut(vi).ok_or(PostError::NoSuchVi)?;
        if !at.address.is_multiple_of(ALIGNMENT) {
            return Err(PostError::Misaligned);
        }
        let room = memory.check_descriptor(endpoint.attributes.tag, at);
        let room = room.map_err(|_| PostError::NotRegistered)?;
        if endpoint.queue(side).is_full() {
            return Err(PostError::Full);
        }
        let is_short = |work: &Work| work.segments.as_slice().len() <= most.into();
        let work =
            read(room).and_then(|work| if is_short(&work) { Ok(work) } else { Err(Malformed::SegmentCount) });
        let tag = endpoint.attributes.tag;
        let is_sound = |work: &Work| only_segment(work).is_some_and(|only| memory.check(tag, only).is_ok());
        // A short receive is checked here, outside of the latency of a message.
        let sound_at = (side == Side::Receive && work.as_ref().is_ok_and(is_sound)).then(|| memory.changes());
        endpoint.queue(side).post(at, work, sound_at).map_err(|_| PostError::Full)?;
        // A send needs a connection. In the state ERROR no more messages arrive.
        let is_hopeless = match side {
            Side::Send => !endpoint.is_connected(),
            Side::Receive => endpoint.state == State::Error,
        };
        if is_hopeless {
            endpoint.queue(side).flush();
            self.settle(vi);
        }
        Ok(())
    }

    /// Returns the next message that a VI sends. The transport calls this after each message, each
    /// [`Nic::progress`] and each post, because a message may have to wait for those before it. A
    /// faulty descriptor completes here.
    pub fn next(&mut self, vi: ViHandle) -> Option<Outgoing> {
        loop {
            let endpoint = self.vis.get(vi).filter(|endpoint| endpoint.is_connected())?;
            let entry = endpoint.send.next()?;
            let at = entry.at;
            let fault = fault_of(self, endpoint, entry, u32::MAX);
            let is_fenced = fault.is_some() || entry.work.as_ref().is_ok_and(|work| work.is_fenced);
            if is_fenced && !endpoint.send.is_next_first() {
                return None;
            }
            let is_reliable = endpoint.is_reliable();
            let queue = &mut self.vis.get_mut(vi)?.send;
            let number = queue.begin()?;
            let Some(status) = fault else {
                let work = queue.under_way(number)?.work.as_ref().ok()?;
                let Work { operation, immediate, len, .. } = *work;
                return Some(Outgoing { number, head: head_of(number, operation, immediate, len) });
            };
            queue.finish(number, Completion { status, ..Completion::default() });
            if is_reliable {
                self.break_vi(vi, AsyncError::PostDesc, Some(at), Parting::Ours);
            }
            self.settle(vi);
        }
    }

    /// Appends to `out` the places of `len` bytes of a message of this side, from byte `at` on. These
    /// are the bytes to send, or the places for the bytes of an RDMA read.
    ///
    /// # Errors
    /// Returns the status if the memory may no longer be used. The descriptor has then failed with that
    /// status, and a reliable VI is broken. The transport must stop the message. Returns `FLUSHED` if
    /// the descriptor is no longer in progress.
    pub fn bytes_of(
        &mut self,
        vi: ViHandle,
        number: u64,
        at: u32,
        len: u32,
        out: &mut Vec<Segment>,
    ) -> Result<(), Status> {
        let endpoint = self.vis.get(vi).ok_or(Status::FLUSHED)?;
        let entry = endpoint.send.under_way(number).ok_or(Status::FLUSHED)?;
        let work = entry.work.as_ref().map_err(|_| Status::FORMAT_ERROR)?;
        let begin = out.len();
        out.extend(cut(work.segments.as_slice(), at, len));
        let tag = endpoint.attributes.tag;
        if out[begin..].iter().all(|segment| self.memory.check(tag, segment).is_ok()) {
            return Ok(());
        }
        out.truncate(begin);
        let at = entry.at;
        self.fail_work(vi, number, Status::PROTECTION_ERROR);
        self.break_if_reliable(vi, AsyncError::PostDesc, Some(at), Parting::Ours);
        Err(Status::PROTECTION_ERROR)
    }

    /// Reports the progress of a message. Ignored if the descriptor is not, or no longer, in progress.
    pub fn progress(&mut self, vi: ViHandle, number: u64, progress: Progress) {
        let Some(endpoint) = self.vis.get_mut(vi) else { return };
        let level = endpoint.attributes.level;
        let Some(entry) = endpoint.send.under_way(number) else {
            // The descriptor was already complete when the wire had taken it.
            return match progress {
                Progress::Refused(_) if level.is_reliable() => {
                    self.break_vi(vi, AsyncError::ConnLost, None, Parting::Peers);
                    self.settle(vi);
                }
                _ => {}
            };
        };
        let Ok(work) = &entry.work else { return };
        let (at, len) = (entry.at, work.len);
        let is_complete = match (work.operation, progress) {
            (_, Progress::Refused(refusal)) => {
                self.fail_work(vi, number, status_of(refusal));
                return self.break_if_reliable(vi, AsyncError::ConnLost, Some(at), Parting::Peers);
            }
            (Operation::Read(_), progress) => progress == Progress::Fetched,
            (_, Progress::Accepted) => level != Level::Reception,
            (_, Progress::Received) => true,
            (_, Progress::Fetched) => false,
        };
        if is_complete {
            endpoint.send.finish(number, Completion { len, ..Completion::default() });
            self.settle(vi);
        }
    }

    /// Finishes a descriptor of the send queue with an error.
    fn fail_work(&mut self, vi: ViHandle, number: u64, status: Status) {
        if let Some(endpoint) = self.vis.get_mut(vi) {
            endpoint.send.finish(number, Completion { status, ..Completion::default() });
        }
    }

    /// Breaks a reliable VI after an error, so that no more descriptors are processed.
    pub(super) fn break_if_reliable(
        &mut self,
        vi: ViHandle,
        error: AsyncError,
        at: Option<DescriptorAt>,
        parting: Parting,
    ) {
        if self.vis.get(vi).is_some_and(Vi::is_reliable) {
            self.break_vi(vi, error, at, parting);
        }
        self.settle(vi);
    }

    /// Reports that the transport has given up the peer of a VI. The oldest descriptor in progress
    /// fails with a transport error. Whether the peer received its message is unknown.
    pub fn lost(&mut self, vi: ViHandle) {
        let Some(endpoint) = self.vis.get(vi).filter(|endpoint| endpoint.is_connected()) else { return };
        let oldest = endpoint.send.all_under_way().next().map(|(number, entry)| (number, entry.at));
        let is_rdma = endpoint.send.all_under_way().any(|(_, entry)| {
            let operation = entry.work.as_ref().map(|work| work.operation);
            matches!(operation, Ok(Operation::Write(_) | Operation::Read(_)))
        });
        let is_written = endpoint.arriving.is_some_and(|head| matches!(head.kind, Kind::Write { .. }));
        if let Some((number, _)) = oldest {
            self.fail_work(vi, number, Status::TRANSPORT_ERROR);
        }
        let error = match (is_written, is_rdma) {
            (true, _) => AsyncError::RdmawAbort,
            (false, true) => AsyncError::RdmaTransport,
            (false, false) => AsyncError::ConnLost,
        };
        self.break_vi(vi, error, oldest.map(|(_, at)| at), Parting::Ours);
        self.settle(vi);
    }

    /// Reports that the peer has ended the connection, and that all its messages have been processed.
    pub fn left(&mut self, vi: ViHandle) {
        if self.vis.get(vi).is_some_and(Vi::is_connected) {
            self.break_vi(vi, AsyncError::ConnLost, None, Parting::Peers);
            self.settle(vi);
        }
    }

    /// Takes the next completed descriptor. Returns `None` and changes nothing if there is none.
    ///
    /// # Errors
    /// Returns `NoSuchVi` if the VI does not exist.
    #[inline]
    pub fn done(&mut self, vi: ViHandle, side: Side) -> Result<Option<Completed>, PostError> {
        Ok(self.vis.get_mut(vi).ok_or(PostError::NoSuchVi)?.queue(side).take())
    }

    /// Asks for a callback for one more completed descriptor.
    ///
    /// # Errors
    /// Returns `NoSuchVi` if the VI does not exist.
    pub fn notify(&mut self, vi: ViHandle, side: Side) -> Result<(), PostError> {
        self.vis.get_mut(vi).ok_or(PostError::NoSuchVi)?.queue(side).want_callback();
        self.call_back(vi, side);
        Ok(())
    }

    fn call_back(&mut self, vi: ViHandle, side: Side) {
        let take = |nic: &mut Self| nic.vis.get_mut(vi)?.queue(side).take_for_callback();
        while let Some(Completed { at, .. }) = take(self) {
            self.tell(Event::Callback { vi, side, at });
        }
    }

    /// Returns the receives that wait for messages, in order, for a peer that copies bytes by itself. A
    /// faulty receive is `None`: the peer leaves its message to the receiver.
    pub fn receives(&self, vi: ViHandle) -> impl Iterator<Item = Option<&Work>> {
        let endpoint = self.vis.get(vi);
        endpoint.into_iter().flat_map(move |endpoint| {
            endpoint.receive.waiting().map(move |entry| {
                let is_sound = fault_of(self, endpoint, entry, u32::MAX).is_none();
                entry.work.as_ref().ok().filter(|_| is_sound)
            })
        })
    }

    /// Returns the fault of the next receive for a message of `len` bytes, and the length of the
    /// receive. Returns `None` if there is no receive.
    pub(super) fn next_receive(&self, vi: ViHandle, len: u32) -> Option<(Option<Status>, u32)> {
        let endpoint = self.vis.get(vi)?;
        let entry = endpoint.receive.next()?;
        let room = entry.work.as_ref().map_or(0, |work| work.len);
        Some((fault_of(self, endpoint, entry, len), room))
    }

    /// Breaks a VI and reports the error to the callback. The caller then calls [`Nic::settle`], which
    /// reports the completions.
    pub(super) fn break_vi(
        &mut self,
        vi: ViHandle,
        error: AsyncError,
        at: Option<DescriptorAt>,
        parting: Parting,
    ) {
        if self.break_silently(vi, parting) {
            let resource = if at.is_some() { Resource::Descriptor } else { Resource::Vi };
            self.tell(Event::Failed(Failure { error, resource, vi: Some(vi), cq: None, at }));
        }
    }

    /// Breaks a VI without a report. Returns `false` if the VI was broken before or is idle.
    pub(super) fn break_silently(&mut self, vi: ViHandle, parting: Parting) -> bool {
        let Some(endpoint) = self.vis.get_mut(vi) else { return false };
        let Some(state) = endpoint.state.after(Change::Fault).filter(|_| endpoint.state != State::Error)
        else {
            return false;
        };
        endpoint.state = state;
        endpoint.send.flush();
        endpoint.receive.flush();
        self.part(vi, parting);
        true
    }

    /// Completes all descriptors that can complete, and reports them with events, entries and
    /// callbacks.
    pub(super) fn settle(&mut self, vi: ViHandle) {
        while let Some((side, completed)) = self.vis.get_mut(vi).and_then(Vi::settle) {
            self.announce(vi, side, completed);
        }
        self.call_back(vi, Side::Send);
        self.call_back(vi, Side::Receive);
    }

    /// Reports the completion of a descriptor.
    fn announce(&mut self, vi: ViHandle, side: Side, Completed { at, completion }: Completed) {
        let Some(endpoint) = self.vis.get(vi) else { return };
        let cq = endpoint.cq(side);
        if self.memory.check_descriptor(endpoint.attributes.tag, at).is_ok() {
            self.tell(Event::Completed { vi, side, at, completion });
        } else {
            // The descriptor's memory is gone, so nothing is written. The program can still take the
            // descriptor.
            self.fail_completion(vi, at);
        }
        let Some(cq) = cq else { return };
        let done = Done { vi, side };
        let is_full = self.cqs.get_mut(cq).is_some_and(|queue| queue.put(done).is_err());
        // A descriptor is flushed because its connection has ended: that is no reason for another error.
        if is_full && !completion.status.has(Status::FLUSHED) {
            self.overrun(vi, cq);
        }
        self.call_back_cq(cq);
    }

    fn fail_completion(&mut self, vi: ViHandle, at: DescriptorAt) {
        let (error, resource) = (AsyncError::CompProt, Resource::Descriptor);
        self.tell(Event::Failed(Failure { error, resource, vi: Some(vi), cq: None, at: Some(at) }));
        if self.vis.get(vi).is_some_and(Vi::is_reliable) {
            self.break_silently(vi, Parting::Ours);
        }
    }

    /// Breaks a VI because its completion queue was full. The program can no longer learn of
    /// completions, so a VI of any reliability level breaks.
    fn overrun(&mut self, vi: ViHandle, cq: CqHandle) {
        // The flushed descriptors of a broken VI are no reason for another error.
        if self.vis.get(vi).is_some_and(|endpoint| endpoint.state != State::Error) {
            let (error, resource) = (AsyncError::ViOverrun, Resource::Cq);
            self.tell(Event::Failed(Failure { error, resource, vi: Some(vi), cq: Some(cq), at: None }));
            self.break_silently(vi, Parting::Ours);
        }
    }
}

/// Returns the descriptor's status for a refusal by the peer.
fn status_of(refusal: Refusal) -> Status {
    match refusal {
        Refusal::NoReceive | Refusal::TooLong | Refusal::BadReceive => Status::REMOTE_DESC_ERROR,
        Refusal::WriteDenied | Refusal::ReadDenied => Status::RDMA_PROT_ERROR,
        Refusal::NotConnected => Status::TRANSPORT_ERROR,
    }
}
