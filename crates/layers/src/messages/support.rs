//! The support process: it does what messages order, and nothing else.

use super::{DEPTH, Slots};
use crate::half::Replier;
use netdyno_measure::layer::LayerError;
use netdyno_measure::order::Order;
use std::sync::atomic::{AtomicBool, Ordering};

/// Keeps a receive of the largest size posted in every slot; looks at what comes in its order,
/// posts again, and sends what was ordered.
pub(crate) struct Support<S> {
    slots: S,
    /// The slot of the next message to be looked at.
    receive: usize,
    /// What is left of the last order. The next message waits for it, so that nobody orders
    /// more than the slots hold.
    owed: Order,
}

impl<S: Slots> Support<S> {
    pub(crate) fn new(slots: S) -> Self {
        Self { slots, receive: 0, owed: Order::NOTHING }
    }

    fn post_receive(&mut self, slot: usize) -> Result<(), LayerError> {
        self.slots.post_receive(slot, self.slots.largest())
    }

    /// Does what can be done at once. Whether that was anything.
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

    /// The first that is free: what was sent last is in the cache.
    fn slot_to_send(&mut self) -> Result<Option<usize>, LayerError> {
        for slot in 0..DEPTH {
            if self.slots.has_sent(slot)? {
                return Ok(Some(slot));
            }
        }
        Ok(None)
    }

    /// What the message in a slot orders.
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
        loop {
            if self.step()? {
                continue;
            }
            if over.load(Ordering::Relaxed) {
                return Ok(());
            }
            self.slots.idle()?;
        }
    }
}
