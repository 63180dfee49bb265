//! Slots each way, in which messages are under way, and the worker's side of them.

use super::DEPTH;
use crate::real::{BLOCK_AT_MOST, Patience};
use crate::time::{RealTime, in_real_time, other_threads_ns};
use netdyno_host::wait::Wait;
use netdyno_measure::layer::{LayerError, Messenger};
use netdyno_measure::logp::data::Transport;
use netdyno_measure::order::Order;
use std::time::Duration;

/// What a side works with: [`DEPTH`] slots each way.
pub(crate) trait Slots {
    /// The largest message, in bytes.
    fn largest(&self) -> usize;

    /// Posts a receive of at most `bytes`, behind those that were posted before.
    fn post_receive(&mut self, slot: usize, bytes: usize) -> Result<(), LayerError>;

    /// Posts a send of `bytes`.
    fn post_send(&mut self, slot: usize, bytes: usize, order: Order) -> Result<(), LayerError>;

    /// Whether no receive is under way in the slot.
    fn has_received(&mut self, slot: usize) -> Result<bool, LayerError>;

    /// Whether no send is under way in the slot.
    fn has_sent(&mut self, slot: usize) -> Result<bool, LayerError>;

    /// How the message begins that the slot has received.
    fn beginning(&self, slot: usize) -> Result<[u8; Order::LEN], LayerError>;

    /// Does what can be done at once. Whether anything moved.
    fn progress(&mut self) -> Result<bool, LayerError>;

    /// What to do after a look in vain.
    fn waits(&self) -> Wait;

    /// Sleeps until something may have moved, at most for `timeout`.
    fn block(&mut self, timeout: Duration) -> Result<(), LayerError>;

    /// What else there is to say where patience has ended.
    fn on_silence(error: LayerError) -> LayerError {
        error
    }

    /// What happened on the way so far, where that is counted.
    fn transport(&self) -> Option<Transport> {
        None
    }

    /// Passes time after a look in vain.
    fn idle(&mut self) -> Result<(), LayerError> {
        match self.waits() {
            Wait::Block => self.block(BLOCK_AT_MOST),
            wait => {
                wait.idle();
                Ok(())
            }
        }
    }
}

/// The worker's side, in real time.
pub(crate) struct RealMessenger<S> {
    slots: S,
    time: RealTime,
}

impl<S: Slots> RealMessenger<S> {
    /// Calibrates the clock.
    pub(crate) fn new(slots: S) -> Self {
        Self { slots, time: RealTime::calibrate() }
    }

    /// Makes progress until `is_done`.
    #[inline(always)]
    fn wait_until(&mut self, is_done: impl Fn(&mut S) -> Result<bool, LayerError>) -> Result<(), LayerError> {
        let wait = self.slots.waits();
        let mut patience = Patience::new(wait);
        while !is_done(&mut self.slots)? {
            if self.slots.progress()? {
                patience = Patience::new(wait);
            } else {
                patience.in_vain(|timeout| self.slots.block(timeout)).map_err(S::on_silence)?;
            }
        }
        Ok(())
    }

    /// Whether `is_done`, now or after what can be done at once.
    #[inline(always)]
    fn test(&mut self, is_done: impl Fn(&mut S) -> Result<bool, LayerError>) -> Result<bool, LayerError> {
        Ok(is_done(&mut self.slots)? || (self.slots.progress()? && is_done(&mut self.slots)?))
    }
}

in_real_time!(RealMessenger<S: Slots>);

impl<S: Slots> Messenger for RealMessenger<S> {
    fn depth(&self) -> usize {
        DEPTH
    }

    fn largest(&self) -> usize {
        self.slots.largest()
    }

    #[inline(always)]
    fn post_receive(&mut self, slot: usize, bytes: usize) -> Result<(), LayerError> {
        self.slots.post_receive(slot, bytes)
    }

    #[inline(always)]
    fn post_send(&mut self, slot: usize, bytes: usize, order: Order) -> Result<(), LayerError> {
        self.slots.post_send(slot, bytes, order)
    }

    #[inline(always)]
    fn test_receive(&mut self, slot: usize) -> Result<bool, LayerError> {
        self.test(|slots| slots.has_received(slot))
    }

    #[inline(always)]
    fn test_send(&mut self, slot: usize) -> Result<bool, LayerError> {
        self.test(|slots| slots.has_sent(slot))
    }

    #[inline(always)]
    fn wait_receive(&mut self, slot: usize) -> Result<(), LayerError> {
        self.wait_until(|slots| slots.has_received(slot))
    }

    #[inline(always)]
    fn wait_send(&mut self, slot: usize) -> Result<(), LayerError> {
        self.wait_until(|slots| slots.has_sent(slot))
    }

    /// Libraries may have threads that make progress; netdyno's own one sleeps.
    fn other_threads_ns(&mut self) -> Option<f64> {
        Some(other_threads_ns())
    }

    fn transport(&self) -> Option<Transport> {
        self.slots.transport()
    }
}
