//! Numbered slots for sends and for receives, in each of which one message at a time is in flight.

use netdyno_host::wait::Wait;
use netdyno_measure::layer::LayerError;
use netdyno_measure::logp::data::Transport;
use netdyno_measure::order::Order;
use std::time::Duration;

/// The number of slots for sends, and for receives.
pub(crate) const DEPTH: usize = 16;

/// One process's slots: [`DEPTH`] for sends and [`DEPTH`] for receives.
pub(crate) trait Slots {
    /// Returns the size of the largest message, in bytes.
    fn largest(&self) -> usize;

    /// Posts a receive of at most `bytes`, behind all earlier ones.
    fn post_receive(&mut self, slot: usize, bytes: usize) -> Result<(), LayerError>;

    /// Posts a send of `bytes`, whose message begins with `order`.
    fn post_send(&mut self, slot: usize, bytes: usize, order: Order) -> Result<(), LayerError>;

    /// Returns whether no receive is in flight in the slot.
    fn has_received(&mut self, slot: usize) -> Result<bool, LayerError>;

    /// Returns whether no send is in flight in the slot.
    fn has_sent(&mut self, slot: usize) -> Result<bool, LayerError>;

    /// Returns the first bytes of the message that the slot has received.
    fn beginning(&self, slot: usize) -> Result<[u8; Order::LEN], LayerError>;

    /// Makes the progress that can be made at once. Returns whether there was any.
    fn progress(&mut self) -> Result<bool, LayerError>;

    /// Begins a wait: the program makes progress itself until it ends.
    fn begin_wait(&mut self) -> Result<(), LayerError> {
        Ok(())
    }

    /// Ends a wait: the program may compute for any time.
    fn end_wait(&mut self) -> Result<(), LayerError> {
        Ok(())
    }

    /// Returns how to wait.
    fn waits(&self) -> Wait;

    /// Sleeps until progress may be possible, at most for `timeout`.
    fn block(&mut self, timeout: Duration) -> Result<(), LayerError>;

    /// Returns the most bytes on their way of which nothing is heard before they have arrived.
    fn unheard_bytes(&self) -> usize {
        0
    }

    /// Adds to the error of a peer timeout what the layer knows of its cause.
    fn on_timeout(error: LayerError) -> LayerError {
        error
    }

    /// Returns the transport's counters, for a layer that keeps them.
    fn transport(&self) -> Option<Transport> {
        None
    }
}
