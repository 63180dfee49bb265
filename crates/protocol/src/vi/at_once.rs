//! The short way of short messages: one that nothing stands before is sent in one step, and taken in one.
//!
//! The rules are those of posting and of what arrives, where they come to nothing but this: the message
//! goes, and its descriptor is complete. Whatever else is the case, or goes wrong, is left as it is and
//! takes the long way: `None` says so.

use super::codes::{Level, Status};
use super::completion::{CompletionQueue, CqHandle, Done};
use super::descriptor::{ALIGNMENT, Completion, DescriptorAt, Segment, Segments, Short, Side, Work};
use super::memory::{Access, Memory};
use super::nic::{Nic, Vi, ViHandle};
use super::posting::head_of;
use super::queue::{Completed, Entry};
use super::table::Table;
use crate::frame::vi_message::{Head, Kind};

/// A message that was taken in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The receive that is complete, which is to be written into it now: of a write without immediate
    /// data none.
    pub receive: Option<Completed>,
}

impl Nic {
    /// Posts a send or a write, gives it to the wire, and completes it. `read` copies the descriptor, as for
    /// [`Nic::post`], if it is a short one; `carry` is told the message and where its bytes are, and says
    /// whether the wire has taken it. What is to be written into the descriptor now.
    #[inline(always)]
    pub fn send_at_once(
        &mut self,
        vi: ViHandle,
        at: DescriptorAt,
        read: impl FnOnce(u64) -> Option<Short>,
        carry: impl FnOnce(u64, &Head, &Segment) -> bool,
    ) -> Option<Completed> {
        if !self.is_at_rest() || !at.address.is_multiple_of(ALIGNMENT) || self.attributes().segments == 0 {
            return None;
        }
        let Self { vis, memory, cqs, .. } = self;
        let endpoint = vis.get_mut(vi).filter(|endpoint| sends_at_once(endpoint, cqs))?;
        let tag = endpoint.attributes.tag;
        let Short { operation, immediate, segment } = read(memory.check_descriptor(tag, at).ok()?)?;
        let len = segment.len;
        if len > endpoint.attributes.transfer_bytes || memory.check(tag, &segment).is_err() {
            return None;
        }
        let number = endpoint.send.next_number();
        if !carry(number, &head_of(number, operation, immediate, len), &segment) {
            return None;
        }
        let status = Status::DONE.with(operation.status());
        let completed = Completed { at, completion: Completion { status, len, immediate: None } };
        endpoint.send.pass(completed);
        note(cqs, endpoint.send_cq, Done { vi, side: Side::Send });
        self.count_at_once();
        Some(completed)
    }

    /// Takes a message whose bytes are all here. `place` is told where they belong, and copies them. Where
    /// a receive is complete, either the program is given that now, if nothing is done that it has not
    /// taken, or it is kept ([`Nic::keep`]).
    #[inline(always)]
    pub fn take_at_once(&mut self, vi: ViHandle, head: &Head, place: impl FnOnce(&Segment)) -> Option<Taken> {
        if !self.is_at_rest() {
            return None;
        }
        let Self { vis, memory, cqs, .. } = self;
        let endpoint = vis.get_mut(vi)?;
        if !endpoint.is_connected()
            || endpoint.arriving.is_some()
            || head.len > endpoint.attributes.transfer_bytes
        {
            return None;
        }
        let receive = match head.kind {
            Kind::Read { .. } => return None,
            Kind::Send { immediate } => {
                let segment = next_receive(endpoint, memory, cqs)?;
                if segment.len < head.len {
                    return None;
                }
                place(&Segment { len: head.len, ..*segment });
                Some((Status::OP_RECEIVE, immediate))
            }
            Kind::Write { remote, immediate } => {
                let attributes = &endpoint.attributes;
                memory.check_remote(attributes.tag, remote, head.len, Access::PeerWrites).ok()?;
                let can_be_told = immediate.is_none() || next_receive(endpoint, memory, cqs).is_some();
                if !attributes.can_be_written || !can_be_told {
                    return None;
                }
                place(&Segment { address: remote.address, handle: remote.handle, len: head.len });
                immediate.map(|immediate| (Status::OP_REMOTE_WRITE, Some(immediate)))
            }
        };
        let receive = match receive {
            None => None,
            Some((status, immediate)) => {
                let status = if immediate.is_some() { status.with(Status::IMMEDIATE) } else { status };
                note(cqs, endpoint.receive_cq, Done { vi, side: Side::Receive });
                let completed =
                    endpoint.receive.complete_next(Completion { status, len: head.len, immediate });
                self.count_at_once();
                completed
            }
        };
        Some(Taken { receive })
    }

    /// The program takes a receive later that is complete.
    #[inline]
    pub fn keep(&mut self, vi: ViHandle, completed: Completed) {
        if let Some(endpoint) = self.vis.get_mut(vi) {
            endpoint.receive.keep(completed);
        }
    }
}

type Queues = Table<CqHandle, CompletionQueue>;

/// Whether one more may complete there, and that is all that comes of it.
#[inline]
fn is_clear(cqs: &Queues, cq: Option<CqHandle>) -> bool {
    cq.is_none_or(|cq| cqs.get(cq).is_some_and(CompletionQueue::is_clear))
}

/// Something is done on a VI, and there is room to say so.
#[inline]
fn note(cqs: &mut Queues, cq: Option<CqHandle>, done: Done) {
    if let Some(queue) = cq.and_then(|cq| cqs.get_mut(cq)) {
        let _ = queue.put(done);
    }
}

/// Whether nothing stands before what a VI sends.
#[inline]
fn sends_at_once(endpoint: &Vi, cqs: &Queues) -> bool {
    endpoint.is_connected()
        && endpoint.attributes.level != Level::Reception
        && endpoint.send.is_clear()
        && is_clear(cqs, endpoint.send_cq)
}

/// The one segment of the receive that is next, if it is sound and its completion can be written.
#[inline(always)]
fn next_receive<'a>(endpoint: &'a Vi, memory: &Memory, cqs: &Queues) -> Option<&'a Segment> {
    if !is_clear(cqs, endpoint.receive_cq) {
        return None;
    }
    let Entry { at, work: Ok(work), sound_at, .. } = endpoint.receive.next_alone()? else { return None };
    let segment = only_segment(work)?;
    let tag = endpoint.attributes.tag;
    let is_known = *sound_at == Some(memory.changes());
    let is_sound =
        is_known || memory.check_descriptor(tag, *at).is_ok() && memory.check(tag, segment).is_ok();
    is_sound.then_some(segment)
}

/// The segment of a work that has one, or none: then it has no bytes.
#[inline]
pub(super) fn only_segment(work: &Work) -> Option<&Segment> {
    if let Segments::Few(0 | 1, [segment, _]) = &work.segments { Some(segment) } else { None }
}
