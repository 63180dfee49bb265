//! The worker: it posts, tests and waits for messages in real time.

use super::slots::{DEPTH, Slots};
use crate::accounts;
use crate::peer_wait::PeerWait;
use crate::time::{RealTime, in_real_time, other_threads_ns};
use netdyno_measure::layer::{LayerError, Messenger};
use netdyno_measure::logp::data::Transport;
use netdyno_measure::order::Order;
use netdyno_measure::processor_time::MachineAccount;
use rustix::thread::sched_getcpu;

/// The worker in real time.
pub(crate) struct RealMessenger<S> {
    slots: S,
    time: RealTime,
}

impl<S: Slots> RealMessenger<S> {
    /// Returns a worker with these slots. Calibrates the clock.
    pub(crate) fn new(slots: S) -> Self {
        Self { slots, time: RealTime::calibrate() }
    }

    /// Makes progress until `is_done`, or until the peer timeout is over.
    #[inline(always)]
    fn wait_until(&mut self, is_done: impl Fn(&mut S) -> Result<bool, LayerError>) -> Result<(), LayerError> {
        let wait = self.slots.waits();
        let unheard_bytes = self.slots.unheard_bytes();
        let mut peer_wait = PeerWait::new(wait).for_bytes(unheard_bytes);
        self.slots.begin_wait()?;
        while !is_done(&mut self.slots)? {
            if self.slots.progress()? {
                peer_wait = PeerWait::new(wait).for_bytes(unheard_bytes);
            } else {
                peer_wait
                    .after_empty_poll_of(&mut self.slots, S::block, S::transport)
                    .map_err(S::on_timeout)?;
            }
        }
        self.slots.end_wait()
    }

    /// Returns whether `is_done`, now or after the progress that can be made at once.
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

    /// Counts all other threads. Libraries may have progress threads; netdyno's own thread sleeps.
    fn other_threads_ns(&mut self) -> Option<f64> {
        Some(other_threads_ns())
    }

    fn machine(&mut self) -> Option<(MachineAccount, usize)> {
        Some((accounts::machine::account()?, sched_getcpu()))
    }

    fn transport(&self) -> Option<Transport> {
        self.slots.transport()
    }
}
