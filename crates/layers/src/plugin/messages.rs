//! Messages of two processes, each slot with a buffer each way: what the layer does with sends
//! and receives that are posted is the layer's own affair.

use super::lanes::LINE;
use crate::messages::DEPTH;
use crate::messages::support::Slots;
use crate::real::{BLOCK_AT_MOST, Patience};
use crate::time::{RealTime, in_real_time, other_threads_ns};
use netdyno_host::wait::Wait;
use netdyno_measure::layer::{LayerError, Messenger};
use netdyno_measure::order::Order;
use netdyno_plugin::channel::Channel;
use std::time::Duration;

/// The memory of receives, and of sends, of up to `largest` bytes.
pub(super) fn memory(largest: usize) -> (usize, usize) {
    let bytes = DEPTH * largest.next_multiple_of(LINE);
    (bytes, bytes)
}

/// Either end.
pub(super) struct Ends {
    channel: Channel,
    peer: usize,
    wait: Wait,
}

impl Ends {
    /// Over a channel to `peer`. Nothing is posted yet.
    pub(super) fn new(mut channel: Channel, peer: usize, wait: Wait) -> Result<Self, LayerError> {
        let stride = channel.largest().next_multiple_of(LINE);
        channel.set_strides(stride, stride).map_err(LayerError::new)?;
        Ok(Self { channel, peer, wait })
    }

    #[inline(always)]
    fn check(&self, bytes: usize) -> Result<(), LayerError> {
        if (Order::LEN..=self.largest()).contains(&bytes) { Ok(()) } else { Err(self.cannot_be(bytes)) }
    }

    #[cold]
    fn cannot_be(&self, bytes: usize) -> LayerError {
        LayerError(format!("there is no message of {bytes} bytes: use {} to {}", Order::LEN, self.largest()))
    }

    #[inline(always)]
    fn wait_until(
        &mut self,
        mut is_done: impl FnMut(&mut Self) -> Result<bool, LayerError>,
    ) -> Result<(), LayerError> {
        let mut patience = Patience::new(self.wait);
        while !is_done(self)? {
            patience.in_vain(|timeout| self.block(timeout))?;
        }
        Ok(())
    }

    fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        self.channel.block(timeout).map_err(LayerError::new)
    }
}

impl Slots for Ends {
    fn largest(&self) -> usize {
        self.channel.largest()
    }

    #[inline(always)]
    fn post_receive(&mut self, slot: usize, bytes: usize) -> Result<(), LayerError> {
        self.check(bytes)?;
        self.channel.post_receive(slot, Some(self.peer), bytes).map_err(LayerError::new)
    }

    #[inline(always)]
    fn post_send(&mut self, slot: usize, bytes: usize, order: Order) -> Result<(), LayerError> {
        self.check(bytes)?;
        let beginning = self.channel.to_send(slot, Order::LEN).map_err(LayerError::new)?;
        beginning.copy_from_slice(&order.to_bytes());
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

    /// Each test has made progress.
    fn progress(&mut self) -> Result<bool, LayerError> {
        Ok(false)
    }

    fn idle(&mut self) -> Result<(), LayerError> {
        match self.wait {
            Wait::Block => self.block(BLOCK_AT_MOST),
            wait => {
                wait.idle();
                Ok(())
            }
        }
    }
}

/// The worker's side, in real time.
pub(super) struct PluginMessenger {
    ends: Ends,
    time: RealTime,
}

impl PluginMessenger {
    /// Calibrates the clock.
    pub(super) fn new(ends: Ends) -> Self {
        Self { ends, time: RealTime::calibrate() }
    }
}

in_real_time!(PluginMessenger);

impl Messenger for PluginMessenger {
    fn depth(&self) -> usize {
        DEPTH
    }

    fn largest(&self) -> usize {
        self.ends.largest()
    }

    #[inline(always)]
    fn post_receive(&mut self, slot: usize, bytes: usize) -> Result<(), LayerError> {
        self.ends.post_receive(slot, bytes)
    }

    #[inline(always)]
    fn post_send(&mut self, slot: usize, bytes: usize, order: Order) -> Result<(), LayerError> {
        self.ends.post_send(slot, bytes, order)
    }

    #[inline(always)]
    fn test_receive(&mut self, slot: usize) -> Result<bool, LayerError> {
        self.ends.has_received(slot)
    }

    #[inline(always)]
    fn test_send(&mut self, slot: usize) -> Result<bool, LayerError> {
        self.ends.has_sent(slot)
    }

    #[inline(always)]
    fn wait_receive(&mut self, slot: usize) -> Result<(), LayerError> {
        self.ends.wait_until(|ends| ends.has_received(slot))
    }

    #[inline(always)]
    fn wait_send(&mut self, slot: usize) -> Result<(), LayerError> {
        self.ends.wait_until(|ends| ends.has_sent(slot))
    }

    /// Libraries may have threads that make progress; netdyno's own one sleeps.
    fn other_threads_ns(&mut self) -> Option<f64> {
        Some(other_threads_ns())
    }
}
