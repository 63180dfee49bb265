//! Messages between two processes. Each slot has a send buffer and a receive buffer. The layer itself
//! transfers posted messages.

use super::queues::LINE;
use crate::messages::slots::{DEPTH, Slots};
use netdyno_host::wait::Wait;
use netdyno_measure::layer::LayerError;
use netdyno_measure::order::Order;
use netdyno_plugin::channel::Channel;
use std::time::Duration;

/// Returns the memory of `slots` receives, and of as many sends, of up to `largest` bytes each, in bytes.
pub(super) fn memory(largest: usize, slots: usize) -> (usize, usize) {
    let bytes = slots * largest.next_multiple_of(LINE);
    (bytes, bytes)
}

/// Either end of a channel.
pub(super) struct PluginMessages {
    channel: Channel,
    peer: usize,
    wait: Wait,
    /// Bytes of the last message.
    bytes: usize,
}

impl PluginMessages {
    /// Returns the slots over a channel to `peer`. Nothing is posted yet.
    pub(super) fn new(mut channel: Channel, peer: usize, wait: Wait) -> Result<Self, LayerError> {
        let stride = channel.largest().next_multiple_of(LINE);
        channel.set_strides(stride, stride).map_err(LayerError::new)?;
        Ok(Self { channel, peer, wait, bytes: 0 })
    }

    #[inline(always)]
    fn check(&self, bytes: usize) -> Result<(), LayerError> {
        if (Order::LEN..=self.largest()).contains(&bytes) { Ok(()) } else { Err(self.wrong_size(bytes)) }
    }

    #[cold]
    fn wrong_size(&self, bytes: usize) -> LayerError {
        LayerError(format!("there is no message of {bytes} bytes: use {} to {}", Order::LEN, self.largest()))
    }
}

impl Slots for PluginMessages {
    fn largest(&self) -> usize {
        self.channel.largest()
    }

    #[inline(always)]
    fn post_receive(&mut self, slot: usize, bytes: usize) -> Result<(), LayerError> {
        self.check(bytes)?;
        self.bytes = bytes;
        self.channel.post_receive(slot, Some(self.peer), bytes).map_err(LayerError::new)
    }

    #[inline(always)]
    fn post_send(&mut self, slot: usize, bytes: usize, order: Order) -> Result<(), LayerError> {
        self.check(bytes)?;
        let beginning = self.channel.to_send(slot, Order::LEN).map_err(LayerError::new)?;
        beginning.copy_from_slice(&order.to_bytes());
        self.bytes = bytes;
        self.channel.post_send(slot, self.peer, bytes).map_err(LayerError::new)
    }

    #[inline(always)]
    fn has_received(&mut self, slot: usize) -> Result<bool, LayerError> {
        if !self.channel.is_receiving(slot) {
            return Ok(true);
        }
        let arrival = self.channel.test_receive(slot).map_err(LayerError::new)?;
        Ok(arrival.is_some())
    }

    #[inline(always)]
    fn has_sent(&mut self, slot: usize) -> Result<bool, LayerError> {
        self.channel.test_send(slot).map_err(LayerError::new)
    }

    fn beginning(&self, slot: usize) -> Result<[u8; Order::LEN], LayerError> {
        let message = self.channel.received(slot, Order::LEN).map_err(LayerError::new)?;
        message.try_into().map_err(LayerError::new)
    }

    /// Does nothing, because each test makes progress.
    fn progress(&mut self) -> Result<bool, LayerError> {
        Ok(false)
    }

    fn waits(&self) -> Wait {
        self.wait
    }

    fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        self.channel.block(timeout).map_err(LayerError::new)
    }

    /// Each slot for sends and each for receives may have a message of the last one's size in flight.
    fn unheard_bytes(&self) -> usize {
        2 * DEPTH * self.bytes
    }
}
