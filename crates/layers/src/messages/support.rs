//! The support process: it does what messages order, and nothing else.

use super::{DEPTH, Exchange, MessageWire};
use crate::half::Replier;
use netdyno_measure::layer::LayerError;
use netdyno_measure::order::Order;
use std::convert::Infallible;

/// Keeps a receive of the largest size posted in every slot; looks at what comes in its order,
/// posts again, and sends what was ordered.
pub(crate) struct Support<W> {
    exchange: Exchange<W>,
    /// The slot of the next message to be looked at.
    receive: usize,
    /// What is left of the last order. The next message waits for it, so that nobody orders
    /// more than the slots hold.
    owed: Order,
}

impl<W: MessageWire> Support<W> {
    pub(crate) fn new(exchange: Exchange<W>) -> Self {
        Self { exchange, receive: 0, owed: Order::NOTHING }
    }

    fn post_receive(&mut self, slot: usize) -> Result<(), LayerError> {
        self.exchange.post_receive(slot, self.exchange.largest)
    }

    /// Does what can be done at once. Whether that was anything.
    fn step(&mut self) -> Result<bool, LayerError> {
        if self.owed.answers > 0
            // The first: what was sent last is in the cache.
            && let Some(slot) = (0..DEPTH).find(|&slot| self.exchange.sends.is_free(slot))
        {
            self.exchange.post_send(slot, self.owed.bytes as usize, Order::NOTHING)?;
            self.owed.answers -= 1;
            return Ok(true);
        }
        if self.owed.answers == 0 && self.exchange.receives.is_free(self.receive) {
            self.owed = self.exchange.order(self.receive)?;
            self.post_receive(self.receive)?;
            self.receive = (self.receive + 1) % DEPTH;
            return Ok(true);
        }
        self.exchange.progress()
    }
}

impl<W: MessageWire> Replier for Support<W> {
    fn serve(&mut self) -> Result<Infallible, LayerError> {
        for slot in 0..DEPTH {
            self.post_receive(slot)?;
        }
        loop {
            if !self.step()? {
                self.exchange.idle()?;
            }
        }
    }
}
