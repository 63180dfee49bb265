//! Messages of any size between two processes: the worker posts sends and receives, tests and
//! waits ([`RealMessenger`]); the support process does what messages order
//! ([`support`]). Both work with slots each way ([`Slots`]).
//!
//! What the layers have in common is here: slots each way, sends and receives that are done in
//! the order in which they were posted, progress inside of calls, patience. A wire sees to one
//! message after the other ([`MessageWire`]).
//!
//! * [`tcp`]: frames on a stream. * [`udp`]: a datagram a message, and as many at once as the
//!   receiver has room for. * [`am`]: stores into the memory of posted receives.

pub(crate) mod am;
mod slots;
pub(crate) mod support;
pub(crate) mod tcp;
pub(crate) mod udp;

use netdyno_host::wait::Wait;
use netdyno_measure::layer::LayerError;
use netdyno_measure::logp::data::Transport;
use netdyno_measure::order::Order;
use rustix::event::PollFlags;
pub(crate) use slots::{RealMessenger, Slots};
use std::collections::VecDeque;
use std::time::Duration;

/// Slots each way.
pub(crate) const DEPTH: usize = 16;
/// The largest message where the layer knows no limit of its own: both ends have a buffer for
/// it in each slot.
pub(crate) const MAX_SIZE: usize = 4 << 20;

/// A send or a receive that is not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Posted {
    /// The slot whose buffer it uses.
    pub(crate) slot: usize,
    /// Bytes of the message; of a receive, the most of them.
    pub(crate) bytes: usize,
}

/// How far a look at a message has brought it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It is where it was.
    Nowhere,
    /// More of it is through.
    Further,
    /// All of it is.
    Complete,
}

/// Either end of a wire, with a buffer each way for each slot.
pub(crate) trait MessageWire {
    /// A receive was posted, behind those that were before.
    fn expect(&mut self, _: Posted) -> Result<(), LayerError> {
        Ok(())
    }

    /// A send was posted, behind those that were before: its message begins with the order.
    fn prepare(&mut self, send: Posted, order: Order) -> Result<(), LayerError>;

    /// What every call does once, before anything else. Whether that was anything.
    fn poll(&mut self) -> Result<bool, LayerError> {
        Ok(false)
    }

    /// Goes on with the first send that is not complete: complete is one whose buffer may be
    /// used again.
    fn send(&mut self, send: Posted) -> Result<Step, LayerError>;

    /// Goes on with the first receive that is not complete.
    fn receive(&mut self, receive: Posted) -> Result<Step, LayerError>;

    /// How the message begins that the slot has received.
    fn beginning(&self, slot: usize) -> Result<[u8; Order::LEN], LayerError>;

    /// Sleeps until one of `events` may have happened, at most for `timeout`.
    fn block(&mut self, events: PollFlags, timeout: Duration) -> Result<(), LayerError>;

    /// What else there is to say where patience has ended.
    fn on_silence(error: LayerError) -> LayerError {
        error
    }

    /// What happened on the way so far, where the wire keeps count.
    fn transport(&self) -> Option<Transport> {
        None
    }
}

/// What goes one way: posted and not complete, in order.
#[derive(Default)]
struct Lane {
    queue: VecDeque<Posted>,
    is_posted: [bool; DEPTH],
    /// What ended it, told once what was completed before has been seen.
    failed: Option<LayerError>,
}

impl Lane {
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

    /// Whether nothing is under way in the slot.
    #[inline(always)]
    fn is_free(&self, slot: usize) -> bool {
        !self.is_posted.get(slot).is_some_and(|is_posted| *is_posted)
    }

    /// Goes on with one after the other while they are completed. Whether anything moved.
    #[inline(always)]
    fn advance(
        &mut self,
        mut step: impl FnMut(Posted) -> Result<Step, LayerError>,
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
                Ok(Step::Nowhere) => break,
                Ok(Step::Further) => return Ok(true),
                Ok(Step::Complete) => {
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
    sends: Lane,
    receives: Lane,
}

impl<W: MessageWire> Exchange<W> {
    /// Of messages up to `largest` bytes, over a wire with buffers for them.
    pub(crate) fn new(wire: W, wait: Wait, largest: usize) -> Self {
        Self { wire, wait, largest, sends: Lane::default(), receives: Lane::default() }
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
        let wanted = |lane: &Lane, event| if lane.queue.is_empty() { PollFlags::empty() } else { event };
        let events = wanted(&self.sends, PollFlags::OUT) | wanted(&self.receives, PollFlags::IN);
        self.wire.block(events, timeout)
    }

    fn on_silence(error: LayerError) -> LayerError {
        W::on_silence(error)
    }

    fn transport(&self) -> Option<Transport> {
        self.wire.transport()
    }
}
