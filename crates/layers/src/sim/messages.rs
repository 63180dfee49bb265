//! Messages of two simulated processes.

use super::time::{PS_PER_NS, in_virtual_time};
use super::{LARGEST_MESSAGE, check_time, stuck};
use netdyno_measure::layer::{LayerError, Messenger};
use netdyno_measure::order::Order;
use netdyno_protocol::sim::{Message, Messages, Truth};

/// Most messages in flight each way. The model parameters may have a smaller window.
const DEPTH: usize = 64;

/// The worker's side of two simulated processes that exchange messages.
pub struct SimMessenger {
    messages: Messages,
    depth: usize,
}

impl SimMessenger {
    /// Returns two idle processes. `seed` seeds their noise.
    pub fn new(truth: Truth, seed: u64) -> Self {
        let depth = truth.window.min(DEPTH);
        Self { messages: Messages::new(truth, depth, seed), depth }
    }
}

in_virtual_time!(SimMessenger, messages);

impl Messenger for SimMessenger {
    fn depth(&self) -> usize {
        self.depth
    }

    fn largest(&self) -> usize {
        LARGEST_MESSAGE
    }

    fn post_receive(&mut self, slot: usize, _: usize) -> Result<(), LayerError> {
        self.messages.post_receive(slot);
        Ok(())
    }

    fn post_send(&mut self, slot: usize, bytes: usize, order: Order) -> Result<(), LayerError> {
        check_time(self.messages.now_ps())?;
        let (answers, answer_bytes) = (order.answers.into(), order.bytes as usize);
        self.messages.post_send(slot, Message { bytes, answers, answer_bytes });
        Ok(())
    }

    fn test_receive(&mut self, slot: usize) -> Result<bool, LayerError> {
        Ok(self.messages.test_receive(slot))
    }

    fn test_send(&mut self, slot: usize) -> Result<bool, LayerError> {
        Ok(self.messages.test_send(slot))
    }

    fn wait_receive(&mut self, slot: usize) -> Result<(), LayerError> {
        self.messages.wait_receive(slot).map_err(stuck)
    }

    fn wait_send(&mut self, slot: usize) -> Result<(), LayerError> {
        self.messages.wait_send(slot).map_err(stuck)
    }

    fn other_threads_ns(&mut self) -> Option<f64> {
        Some(self.messages.helper_ps() as f64 / PS_PER_NS)
    }
}
