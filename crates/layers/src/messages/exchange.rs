//! Sends and receives over a wire that transfers one message after the other.

use super::slots::{DEPTH, Slots};
use netdyno_host::wait::Wait;
use netdyno_measure::layer::LayerError;
use netdyno_measure::logp::data::Transport;
use netdyno_measure::order::Order;
use rustix::event::PollFlags;
use std::collections::VecDeque;
use std::time::Duration;

/// A send or a receive that is not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Posted {
    /// The slot whose buffer it uses.
    pub(crate) slot: usize,
    /// The size of a send's message, or the largest size that a receive takes, in bytes.
    pub(crate) bytes: usize,
}

impl Posted {
    /// Checks the size of a message that has come for this receive.
    ///
    /// # Errors
    /// `len` bytes are too few for an order, or more than the receive takes.
    #[inline(always)]
    pub(crate) fn check(self, len: usize) -> Result<(), LayerError> {
        if (Order::LEN..=self.bytes).contains(&len) { Ok(()) } else { Err(self.wrong_size(len)) }
    }

    #[cold]
    fn wrong_size(self, len: usize) -> LayerError {
        let (least, most) = (Order::LEN, self.bytes);
        LayerError(format!("a message of {len} bytes came, {least} to {most} were expected"))
    }
}

/// The progress that one call has made with a send or a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// No more bytes were transferred.
    None,
    /// More bytes were transferred, but not all.
    Partial,
    /// All bytes are transferred.
    Complete,
}

/// Either end of a wire, with a send buffer and a receive buffer for each slot.
pub(crate) trait MessageWire {
    /// Takes note of a receive that was posted behind all earlier ones.
    fn expect(&mut self, _: Posted) -> Result<(), LayerError> {
        Ok(())
    }

    /// Writes the order to the beginning of the message of a send that was posted behind all earlier ones.
    fn prepare(&mut self, send: Posted, order: Order) -> Result<(), LayerError>;

    /// Begins a call that makes progress. Returns whether anything was done.
    fn poll(&mut self) -> Result<bool, LayerError> {
        Ok(false)
    }

    /// Continues the first send that is not complete. A send is complete when its buffer may be used again.
    fn send(&mut self, send: Posted) -> Result<Progress, LayerError>;

    /// Continues the first receive that is not complete.
    fn receive(&mut self, receive: Posted) -> Result<Progress, LayerError>;

    /// Returns the first bytes of the message that the slot has received.
    fn beginning(&self, slot: usize) -> Result<[u8; Order::LEN], LayerError>;

    /// Sleeps until one of `events` may have happened, at most for `timeout`.
    fn block(&mut self, events: PollFlags, timeout: Duration) -> Result<(), LayerError>;

    /// Adds to the error of a peer timeout what this wire knows of its cause.
    fn on_timeout(error: LayerError) -> LayerError {
        error
    }

    /// Returns the transport's counters, for a wire that keeps them.
    fn transport(&self) -> Option<Transport> {
        None
    }
}

/// The sends, or the receives, that are posted and not complete, in the order of posting.
#[derive(Default)]
struct PostedQueue {
    queue: VecDeque<Posted>,
    is_posted: [bool; DEPTH],
    /// An error that is reported by the next call, because this call has completed something before.
    failed: Option<LayerError>,
}

impl PostedQueue {
    fn post(&mut self, posted: Posted, largest: usize) -> Result<(), LayerError> {
        let Posted { slot, bytes } = posted;
        if !(Order::LEN..=largest).contains(&bytes) {
            return Err(LayerError(format!(
                "there is no message of {bytes} bytes: use {} to {largest}",
                Order::LEN
            )));
        }
        match self.is_posted.get_mut(slot) {
            None => return Err(LayerError(format!("there is no slot {slot}: there are {DEPTH}"))),
            Some(true) => return Err(LayerError(format!("slot {slot} is posted and not complete"))),
            Some(is_posted) => *is_posted = true,
        }
        self.queue.push_back(posted);
        Ok(())
    }

    /// Returns whether nothing is posted in the slot.
    #[inline(always)]
    fn is_free(&self, slot: usize) -> bool {
        !self.is_posted.get(slot).is_some_and(|is_posted| *is_posted)
    }

    /// Continues the first entry, and the next one whenever one completes. Returns whether any made progress.
    #[inline(always)]
    fn advance(
        &mut self,
        mut step: impl FnMut(Posted) -> Result<Progress, LayerError>,
    ) -> Result<bool, LayerError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut has_moved = false;
        while let Some(&first) = self.queue.front() {
            match step(first) {
                Err(error) if has_moved => {
                    self.failed = Some(error);
                    break;
                }
                Err(error) => return Err(error),
                Ok(Progress::None) => break,
                Ok(Progress::Partial) => return Ok(true),
                Ok(Progress::Complete) => {
                    self.is_posted[first.slot] = false;
                    self.queue.pop_front();
                    has_moved = true;
                }
            }
        }
        Ok(has_moved)
    }
}

/// Sends and receives over a wire.
pub(crate) struct Exchange<W> {
    wire: W,
    wait: Wait,
    largest: usize,
    sends: PostedQueue,
    receives: PostedQueue,
}

impl<W: MessageWire> Exchange<W> {
    /// Returns the exchange of messages of up to `largest` bytes, over a wire with buffers for them.
    pub(crate) fn new(wire: W, wait: Wait, largest: usize) -> Self {
        Self { wire, wait, largest, sends: PostedQueue::default(), receives: PostedQueue::default() }
    }

    pub(super) fn wire(&self) -> &W {
        &self.wire
    }

    pub(super) fn wire_mut(&mut self) -> &mut W {
        &mut self.wire
    }
}

impl<W: MessageWire> Slots for Exchange<W> {
    fn largest(&self) -> usize {
        self.largest
    }

    #[inline(always)]
    fn post_receive(&mut self, slot: usize, bytes: usize) -> Result<(), LayerError> {
        let receive = Posted { slot, bytes };
        self.receives.post(receive, self.largest)?;
        self.wire.expect(receive)
    }

    #[inline(always)]
    fn post_send(&mut self, slot: usize, bytes: usize, order: Order) -> Result<(), LayerError> {
        let send = Posted { slot, bytes };
        self.sends.post(send, self.largest)?;
        self.wire.prepare(send, order)?;
        self.sends.advance(|send| self.wire.send(send)).map(drop)
    }

    #[inline(always)]
    fn progress(&mut self) -> Result<bool, LayerError> {
        let was_polled = self.wire.poll()?;
        let has_sent = self.sends.advance(|send| self.wire.send(send))?;
        let has_received = self.receives.advance(|receive| self.wire.receive(receive))?;
        Ok(was_polled || has_sent || has_received)
    }

    #[inline(always)]
    fn has_received(&mut self, slot: usize) -> Result<bool, LayerError> {
        Ok(self.receives.is_free(slot))
    }

    #[inline(always)]
    fn has_sent(&mut self, slot: usize) -> Result<bool, LayerError> {
        Ok(self.sends.is_free(slot))
    }

    fn beginning(&self, slot: usize) -> Result<[u8; Order::LEN], LayerError> {
        self.wire.beginning(slot)
    }

    fn waits(&self) -> Wait {
        self.wait
    }

    fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        let wanted =
            |posted: &PostedQueue, event| if posted.queue.is_empty() { PollFlags::empty() } else { event };
        let events = wanted(&self.sends, PollFlags::OUT) | wanted(&self.receives, PollFlags::IN);
        self.wire.block(events, timeout)
    }

    fn on_timeout(error: LayerError) -> LayerError {
        W::on_timeout(error)
    }

    fn transport(&self) -> Option<Transport> {
        self.wire.transport()
    }
}
