//! The fast path of short messages: a message is sent in one step, or taken in one step, if no other
//! work is before it.
//!
//! The rules are those of posting and receiving. The fast path handles the case without errors and
//! without waiting: the message goes, and its descriptor completes. In every other case it returns
//! `None` and changes nothing; the caller then takes the regular path.

use super::codes::{Level, Status};
use super::completion::{CompletionQueue, CqHandle, Done};
use super::descriptor::{ALIGNMENT, Completion, DescriptorAt};
use super::handles::ViHandle;
use super::memory::{Access, Memory};
use super::nic::{Nic, Vi};
use super::posting::head_of;
use super::queue::{Completed, Entry};
use super::table::Table;
use super::work::{Segment, Short, Side, only_segment};
use crate::frame::vi_message::{Head, Kind};

/// A message taken by the fast path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The completed receive: the caller writes the completion into it now. `None` for a write without
    /// immediate data.
    pub receive: Option<Completed>,
}

impl Nic {
    /// Posts a send or a write, passes it to the wire, and completes it. `read` copies the descriptor,
    /// as for [`Nic::post`], if it is short. `carry` gets the number, the head and the place of the
    /// bytes, and returns whether the wire has taken the message. Returns the completion for the caller
    /// to write into the descriptor now.
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

    /// Takes a message whose bytes have all arrived. `place` gets the place for the bytes and copies
    /// them there. If a receive completes, the caller gives it to the program, provided that no earlier
    /// completion waits to be taken. Otherwise the caller keeps it ([`Nic::keep`]).
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

    /// Keeps a completed receive until the program takes it.
    #[inline]
    pub fn keep(&mut self, vi: ViHandle, completed: Completed) {
        if let Some(endpoint) = self.vis.get_mut(vi) {
            endpoint.receive.keep(completed);
        }
    }
}

type Queues = Table<CqHandle, CompletionQueue>;

/// Reports whether the completion queue, if any, has room for one more entry and needs no callback.
#[inline]
fn is_clear(cqs: &Queues, cq: Option<CqHandle>) -> bool {
    cq.is_none_or(|cq| cqs.get(cq).is_some_and(CompletionQueue::is_clear))
}

/// Adds an entry to the completion queue, if any. The caller has checked that there is room.
#[inline]
fn note(cqs: &mut Queues, cq: Option<CqHandle>, done: Done) {
    if let Some(queue) = cq.and_then(|cq| cqs.get_mut(cq)) {
        let _ = queue.put(done);
    }
}

/// Reports whether a VI can send by the fast path.
#[inline]
fn sends_at_once(endpoint: &Vi, cqs: &Queues) -> bool {
    endpoint.is_connected()
        && endpoint.attributes.level != Level::Reception
        && endpoint.send.is_clear()
        && is_clear(cqs, endpoint.send_cq)
}

/// Returns the only segment of the next receive, if it passes the checks and its completion needs no
/// callback.
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
