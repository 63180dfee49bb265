//! Messages over a channel: receives that are posted in advance, and are tested in the order of
//! posting; sends from slots in turn, all of the same bytes.

use crate::real::Patience;
use crate::sized::FILL;
use netdyno_host::wait::Wait;
use netdyno_measure::layer::LayerError;
use netdyno_plugin::channel::{Arrival, Channel};
use std::time::Duration;

/// Receives lie this far apart at least, so that none shares a line with another.
pub(super) const LINE: usize = 64;

/// Both directions.
pub(super) struct Lanes {
    channel: Channel,
    wait: Wait,
    /// From whom messages come; from any where it is none.
    from: Option<usize>,
    /// Receives that are kept posted, in slots from 0, and the length of each.
    receives: usize,
    capacity: usize,
    /// The one posted longest ago.
    next_receive: usize,
    next_send: usize,
}

impl Lanes {
    /// Over an open channel. Nothing is posted yet.
    pub(super) fn new(channel: Channel, from: Option<usize>, wait: Wait) -> Self {
        Self { channel, wait, from, receives: 0, capacity: 0, next_receive: 0, next_send: 0 }
    }

    pub(super) fn largest(&self) -> usize {
        self.channel.largest()
    }

    /// Keeps so many receives of so many bytes posted from now on. Nothing is on the way.
    pub(super) fn arrange(&mut self, receives: usize, capacity: usize) -> Result<(), LayerError> {
        for slot in 0..self.receives {
            if self.channel.cancel_receive(slot).map_err(LayerError::new)? {
                return Err(LayerError::new("a message came that nothing was asked for"));
            }
        }
        self.let_sends_go()?;
        (self.receives, self.capacity, self.next_receive) = (receives, capacity, 0);
        self.channel.set_strides(capacity.next_multiple_of(LINE), 0).map_err(LayerError::new)?;
        (0..receives).try_for_each(|slot| self.post(slot))
    }

    /// Posts the receive of a slot whose message has been seen.
    #[inline(always)]
    pub(super) fn post(&mut self, slot: usize) -> Result<(), LayerError> {
        self.channel.post_receive(slot, self.from, self.capacity).map_err(LayerError::new)
    }

    /// What came next, if it is there, and the slot that it lies in, to be posted again.
    #[inline(always)]
    pub(super) fn take(&mut self) -> Result<Option<(usize, Arrival)>, LayerError> {
        let slot = self.next_receive;
        let arrival = self.channel.test_receive(slot).map_err(LayerError::new)?;
        if arrival.is_some() {
            self.next_receive = if slot + 1 == self.receives { 0 } else { slot + 1 };
        }
        Ok(arrival.map(|arrival| (slot, arrival)))
    }

    /// The first bytes of what lies in a slot.
    pub(super) fn received(&self, slot: usize, bytes: usize) -> Result<&[u8], LayerError> {
        self.channel.received(slot, bytes).map_err(LayerError::new)
    }

    /// Sends so many bytes.
    #[inline(always)]
    pub(super) fn send(&mut self, to: usize, bytes: usize) -> Result<(), LayerError> {
        let slot = self.next_send;
        self.let_send_go(slot)?;
        self.next_send = if slot + 1 == self.channel.slots() { 0 } else { slot + 1 };
        self.channel.post_send(slot, to, bytes).map_err(LayerError::new)
    }

    /// Sends these bytes, while nothing else is on the way.
    pub(super) fn send_bytes(&mut self, to: usize, bytes: &[u8]) -> Result<(), LayerError> {
        self.let_sends_go()?;
        self.data(bytes.len())?.copy_from_slice(bytes);
        self.send(to, bytes.len())?;
        self.let_sends_go()?;
        self.data(bytes.len())?.fill(FILL);
        Ok(())
    }

    fn data(&mut self, bytes: usize) -> Result<&mut [u8], LayerError> {
        self.channel.to_send(0, bytes).map_err(LayerError::new)
    }

    fn let_sends_go(&mut self) -> Result<(), LayerError> {
        (0..self.channel.slots()).try_for_each(|slot| self.let_send_go(slot))
    }

    #[inline(always)]
    fn let_send_go(&mut self, slot: usize) -> Result<(), LayerError> {
        let mut patience = Patience::new(self.wait);
        while !self.channel.test_send(slot).map_err(LayerError::new)? {
            patience.in_vain(|timeout| self.channel.block(timeout).map_err(LayerError::new))?;
        }
        Ok(())
    }

    pub(super) fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        self.channel.block(timeout).map_err(LayerError::new)
    }
}
