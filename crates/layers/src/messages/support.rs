//! The support process: it sends what messages order, and nothing else.

use super::slots::{DEPTH, Slots};
use crate::half::Replier;
use crate::idle::Idle;
use crate::peer_wait::BLOCK_AT_MOST;
use netdyno_measure::layer::LayerError;
use netdyno_measure::order::Order;
use std::sync::atomic::{AtomicBool, Ordering};

/// The support process. It keeps a receive of the largest size posted in every slot. It takes messages in
/// the order of posting, posts each receive again, and sends what the message ordered.
pub(crate) struct Support<S> {
    slots: S,
    /// The slot of the next message.
    receive: usize,
    /// The rest of the last order. The next message waits until it is carried out, so that a peer cannot
    /// order more than the slots hold.
    owed: Order,
}

impl<S: Slots> Support<S> {
    pub(crate) fn new(slots: S) -> Self {
        Self { slots, receive: 0, owed: Order::NOTHING }
    }

    fn post_receive(&mut self, slot: usize) -> Result<(), LayerError> {
        self.slots.post_receive(slot, self.slots.largest())
    }

    /// Does what can be done at once. Returns whether there was anything to do.
    fn step(&mut self) -> Result<bool, LayerError> {
        if self.owed.answers > 0
            && let Some(slot) = self.slot_to_send()?
        {
            self.slots.post_send(slot, self.owed.bytes as usize, Order::NOTHING)?;
            self.owed.answers -= 1;
            return Ok(true);
        }
        if self.owed.answers == 0 && self.slots.has_received(self.receive)? {
            self.owed = self.order(self.receive)?;
            self.post_receive(self.receive)?;
            self.receive = (self.receive + 1) % DEPTH;
            return Ok(true);
        }
        self.slots.progress()
    }

    /// Returns the first free slot, because the buffer that was sent last is in the cache.
    fn slot_to_send(&mut self) -> Result<Option<usize>, LayerError> {
        for slot in 0..DEPTH {
            if self.slots.has_sent(slot)? {
                return Ok(Some(slot));
            }
        }
        Ok(None)
    }

    /// Returns the order in the message of a slot.
    fn order(&self, slot: usize) -> Result<Order, LayerError> {
        Order::parse(&self.slots.beginning(slot)?, self.slots.largest())
            .ok_or_else(|| LayerError::new("a message came without an order that can be carried out"))
    }
}

impl<S: Slots> Replier for Support<S> {
    fn serve(&mut self, over: &AtomicBool) -> Result<(), LayerError> {
        for slot in 0..DEPTH {
            self.post_receive(slot)?;
        }
        let mut idle = Idle::new(self.slots.waits());
        loop {
            if self.step()? {
                idle.found();
                continue;
            }
            if over.load(Ordering::Relaxed) {
                return Ok(());
            }
            idle.pass(|| self.slots.block(BLOCK_AT_MOST))?;
        }
    }
}
