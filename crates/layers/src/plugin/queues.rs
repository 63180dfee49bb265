//! Messages over a channel: a queue of receives that are posted in advance and tested in the order of
//! posting, and a queue of sends, which all send the same bytes.

use crate::payload::FILL;
use crate::peer_wait::PeerWait;
use netdyno_host::wait::Wait;
use netdyno_measure::layer::LayerError;
use netdyno_plugin::channel::{Arrival, Channel};
use std::time::Duration;

/// The least distance of the buffers of receives, in bytes, so that no two share a cache line.
pub(super) const LINE: usize = 64;

/// The receives and the sends of a channel.
pub(super) struct Queues {
    channel: Channel,
    wait: Wait,
    /// The process that messages come from; `None` for messages of any process.
    from: Option<usize>,
    /// The number of receives that are kept posted, in slots from 0.
    receives: usize,
    /// The capacity of each receive, in bytes.
    capacity: usize,
    /// Bytes of the last send.
    sent_bytes: usize,
    /// The slot of the receive that was posted longest ago.
    next_receive: usize,
    /// The slot of the next send.
    next_send: usize,
}

impl Queues {
    /// Returns the queues of an open channel. Nothing is posted yet.
    pub(super) fn new(channel: Channel, from: Option<usize>, wait: Wait) -> Self {
        Self { channel, wait, from, receives: 0, capacity: 0, sent_bytes: 0, next_receive: 0, next_send: 0 }
    }

    pub(super) fn largest(&self) -> usize {
        self.channel.largest()
    }

    /// Keeps `receives` receives of `capacity` bytes posted from now on. The caller has made sure that
    /// nothing is in flight.
    pub(super) fn arrange(&mut self, receives: usize, capacity: usize) -> Result<(), LayerError> {
        for slot in 0..self.receives {
            if self.channel.cancel_receive(slot).map_err(LayerError::new)? {
                return Err(LayerError::new("a message came that nothing was asked for"));
            }
        }
        self.complete_sends()?;
        (self.receives, self.capacity, self.next_receive) = (receives, capacity, 0);
        self.channel.set_strides(capacity.next_multiple_of(LINE), 0).map_err(LayerError::new)?;
        (0..receives).try_for_each(|slot| self.post(slot))
    }

    /// Posts a slot's receive, again after the caller has used its message.
    #[inline(always)]
    pub(super) fn post(&mut self, slot: usize) -> Result<(), LayerError> {
        self.channel.post_receive(slot, self.from, self.capacity).map_err(LayerError::new)
    }

    /// Takes the next message, if it has arrived. Returns its slot, which the caller has to post again.
    #[inline(always)]
    pub(super) fn take(&mut self) -> Result<Option<(usize, Arrival)>, LayerError> {
        let slot = self.next_receive;
        let arrival = self.channel.test_receive(slot).map_err(LayerError::new)?;
        if arrival.is_some() {
            self.next_receive = if slot + 1 == self.receives { 0 } else { slot + 1 };
        }
        Ok(arrival.map(|arrival| (slot, arrival)))
    }

    /// Returns the first `bytes` of the message in a slot.
    pub(super) fn received(&self, slot: usize, bytes: usize) -> Result<&[u8], LayerError> {
        self.channel.received(slot, bytes).map_err(LayerError::new)
    }

    /// Sends a message of `bytes`.
    #[inline(always)]
    pub(super) fn send(&mut self, to: usize, bytes: usize) -> Result<(), LayerError> {
        let slot = self.next_send;
        self.complete_send(slot)?;
        self.sent_bytes = bytes;
        self.next_send = if slot + 1 == self.channel.slots() { 0 } else { slot + 1 };
        self.channel.post_send(slot, to, bytes).map_err(LayerError::new)
    }

    /// Sends these bytes. The caller has made sure that nothing else is in flight.
    pub(super) fn send_bytes(&mut self, to: usize, bytes: &[u8]) -> Result<(), LayerError> {
        self.complete_sends()?;
        self.data(bytes.len())?.copy_from_slice(bytes);
        self.send(to, bytes.len())?;
        self.complete_sends()?;
        self.data(bytes.len())?.fill(FILL);
        Ok(())
    }

    fn data(&mut self, bytes: usize) -> Result<&mut [u8], LayerError> {
        self.channel.to_send(0, bytes).map_err(LayerError::new)
    }

    fn complete_sends(&mut self) -> Result<(), LayerError> {
        (0..self.channel.slots()).try_for_each(|slot| self.complete_send(slot))
    }

    #[inline(always)]
    fn complete_send(&mut self, slot: usize) -> Result<(), LayerError> {
        let mut wait = PeerWait::new(self.wait).for_bytes(self.unheard_bytes());
        while !self.channel.test_send(slot).map_err(LayerError::new)? {
            wait.after_empty_poll(|timeout| self.channel.block(timeout).map_err(LayerError::new))?;
        }
        Ok(())
    }

    /// Returns the most bytes on their way, in both directions. The library does not say how much of them has arrived.
    #[inline(always)]
    pub(super) fn unheard_bytes(&self) -> usize {
        self.receives * (self.capacity + self.sent_bytes)
    }

    pub(super) fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        self.channel.block(timeout).map_err(LayerError::new)
    }
}
