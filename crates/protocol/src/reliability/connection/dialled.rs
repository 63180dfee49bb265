//! The messages of a dialled link. The caller holds each message until it is due, and stamps those that it
//! sends with their departure.

use super::{Connection, Loss};
use crate::dial::timing::Departed;
use crate::frame::datagram::{Datagram, Kind};
use crate::reliability::congestion::Controller;
use crate::reliability::holding::{Held, Released, What};
use crate::reliability::transfers::{Asked, Memories, Step, Stray};
use alloc::vec::Vec;

impl<C: Controller> Connection<C> {
    /// Returns the number of messages that have arrived and are not due.
    #[inline]
    pub(super) fn held(&self) -> usize {
        self.holding.as_ref().map_or(0, |holding| holding.len())
    }

    /// Makes the caller hold messages from now on until they are due.
    pub fn hold_messages(&mut self) {
        self.holding.get_or_insert_default();
    }

    /// Sets the stamp of the next message.
    pub fn depart(&mut self, departed: Departed) {
        self.departs = Some(departed);
    }

    /// Notes that no answer to the messages sent can come before `at_ns`. Until then no probe asks for one,
    /// and the peer timeout does not run.
    pub fn expect_answer(&mut self, at_ns: u64) {
        self.sending.expect_answer(at_ns);
        self.be_patient(at_ns);
    }

    /// Applies a completion count, after the messages that are held.
    pub(super) fn complete_in_turn(&mut self, completed: u16, now_ns: u64) {
        match self.holding.as_mut().and_then(|holding| holding.last()) {
            None => drop(self.complete(completed, now_ns)),
            Some(last) => {
                // Two acknowledgements may overtake each other.
                let is_later = |before: u16| completed.wrapping_sub(before) < 1 << 15;
                if last.then_completed.is_none_or(is_later) {
                    last.then_completed = Some(completed);
                }
            }
        }
    }

    /// Holds a message from [`Connection::receive`] or [`Connection::buffered`] until it is due. `due`
    /// returns the time, from the departure and the bytes that the message or its transfer brings. The times
    /// must rise in the order of the messages. Bytes of transfers are placed at once.
    pub fn hold(
        &mut self,
        datagram: &Datagram<'_>,
        memories: &mut impl Memories,
        due: impl FnOnce(Option<Departed>, usize) -> u64,
    ) {
        let Datagram { header, words, word_count, payload, bytes } = *datagram;
        // There cannot be more than a window of requests and a window of replies.
        if self.held() >= self.places {
            return self.lost = Some(Loss::Misbehaved);
        }
        let (what, len) = match header.kind {
            Kind::Request | Kind::Reply => {
                let mut copy = self.buffers.take();
                copy.extend_from_slice(bytes);
                (What::Message(copy), size_of_val(&words[..word_count.into()]) + payload.len())
            }
            _ => match self.place(datagram, memories) {
                Ok(Some(mut step)) => {
                    // The departure of the answer depends on its bytes, and is stamped before they are read.
                    if let Step::Asked(Asked { range, has: None, bytes }) = &mut step
                        && memories.read(range, 0, 0, &mut Vec::new())
                    {
                        *bytes = range.len as usize;
                    }
                    (What::Step(step), step.len())
                }
                Ok(None) => {
                    // A long transfer must not look like silence.
                    self.heard_ns = self.received_ns;
                    self.complete_in_turn(header.completed, self.received_ns);
                    return self.close_when_all_is_here();
                }
                Err(Stray) => return self.lost = Some(Loss::Misbehaved),
            },
        };
        let due = due(header.departed, len);
        if let Some(holding) = &mut self.holding {
            holding.put(header, what, due);
        }
        self.close_when_all_is_here();
    }

    /// Returns the time at which the first held message is due.
    pub fn next_due(&self) -> Option<u64> {
        self.holding.as_ref().filter(|_| self.lost.is_none())?.next_due()
    }

    /// Delivers the first held message. `depart` returns the departure of an answer that needs no handler,
    /// from the number of its bytes.
    pub fn release(&mut self, now_ns: u64, depart: impl FnOnce(usize) -> Departed) -> Option<Released> {
        let held = self.holding.as_mut().filter(|_| self.lost.is_none())?.take()?;
        let Held { header, what, then_completed, .. } = held;
        self.heard_ns = now_ns;
        if !self.deliver(&header, now_ns) {
            return None;
        }
        let released = match what {
            What::Message(bytes) => Released::Message(bytes),
            What::Step(step) => match self.finish(step, Some(depart)) {
                Ok(event) => Released::Event(event),
                Err(Stray) => {
                    self.lost = Some(Loss::Misbehaved);
                    return None;
                }
            },
        };
        if let Some(completed) = then_completed {
            self.complete(completed, now_ns);
        }
        self.receiving.owe(now_ns);
        if let Some(loss) = self.ending.filter(|_| self.held() == 0) {
            self.lost = Some(loss);
        }
        Some(released)
    }
}
