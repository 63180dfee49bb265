//! The face that a layer shows to the measuring patterns.

use crate::logp::data::Transport;
use crate::order::Order;
use crate::registration::data::MemorySystem;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why a layer could not go on. One line, for the user.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct LayerError(pub String);

impl LayerError {
    /// An error that says what `error` says.
    pub fn new(error: impl std::fmt::Display) -> Self {
        Self(error.to_string())
    }
}

/// What two processes share of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Face {
    /// Requests and replies of one size ([`Requester`]).
    Requests,
    /// Requests and replies whose size can be set ([`SizedRequester`]).
    Sized,
    /// Messages ([`Messenger`]).
    Messages,
}

/// A layer's word for an amount of computation, so that nothing has to be converted
/// while time runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work(pub u64);

/// A layer's own time.
pub trait Time {
    /// The layer's clock, in ticks.
    fn now(&mut self) -> u64;

    /// Length of one tick.
    fn tick_ns(&self) -> f64;

    /// The work that takes about `d_ns`.
    fn work(&self, d_ns: f64) -> Work;

    /// Computes without touching the layer.
    fn compute(&mut self, work: Work);

    /// Whether this is the time of a simulation. Nobody waits for it, so that a pattern is not
    /// shortened to fit into its budget.
    fn is_virtual(&self) -> bool {
        false
    }
}

/// The requester's side of a request/reply layer, in its own time.
///
/// Every request is answered by one reply. Replies are handled only inside
/// [`Requester::poll`] and [`Requester::wait`].
pub trait Requester: Time {
    /// Issues one request. False, and nothing done, where the window is full.
    fn issue(&mut self) -> Result<bool, LayerError>;

    /// Handles at most one reply. False where none was there.
    fn poll(&mut self) -> Result<bool, LayerError>;

    /// Idles until one reply is handled; fails in a bounded time where none can come.
    fn wait(&mut self) -> Result<(), LayerError>;

    /// Requests without a reply.
    fn in_flight(&self) -> usize;

    /// The most requests that may ever be without a reply.
    fn max_window(&self) -> usize;

    /// Limits the requests without a reply, from 1 to [`Requester::max_window`].
    fn set_window(&mut self, window: usize);

    /// What happened on the way so far, where the layer keeps count.
    fn transport(&self) -> Option<Transport> {
        None
    }
}

/// A requester whose messages can have any size.
pub trait SizedRequester: Requester {
    /// The largest message, in bytes. The smallest has one byte.
    fn largest(&self) -> usize;

    /// Sets the bytes of every request and of every reply to come. Nothing may be in flight.
    /// [`Requester::max_window`] may be another afterwards, and is in force.
    fn set_sizes(&mut self, request_bytes: usize, reply_bytes: usize) -> Result<(), LayerError>;
}

/// The worker's side of two processes that exchange messages of any size, in its own time: the
/// face of MPI's non-blocking calls. What the other process does with a message, the message
/// itself says ([`Order`]).
///
/// Progress is made as the layer makes it: inside these calls alone, or besides.
pub trait Messenger: Time {
    /// How many messages may be under way each way, in slots counted from 0.
    fn depth(&self) -> usize;

    /// The largest message, in bytes. The smallest has [`Order::LEN`].
    fn largest(&self) -> usize;

    /// Posts a receive of at most `bytes` into the slot. Messages are received in the order
    /// in which receives were posted.
    fn post_receive(&mut self, slot: usize, bytes: usize) -> Result<(), LayerError>;

    /// Posts a send of `bytes` from the slot.
    fn post_send(&mut self, slot: usize, bytes: usize, order: Order) -> Result<(), LayerError>;

    /// Whether the receive of the slot is complete; then the slot may be posted again.
    fn test_receive(&mut self, slot: usize) -> Result<bool, LayerError>;

    /// Whether the send of the slot is complete; then the slot may be posted again.
    fn test_send(&mut self, slot: usize) -> Result<bool, LayerError>;

    /// Idles until the receive of the slot is complete; fails in a bounded time where it
    /// cannot be.
    fn wait_receive(&mut self, slot: usize) -> Result<(), LayerError>;

    /// Idles until the send of the slot is complete; fails in a bounded time where it cannot
    /// be.
    fn wait_send(&mut self, slot: usize) -> Result<(), LayerError>;

    /// Processor time that other threads of this process have taken so far, where that can be
    /// told: those of a layer that makes progress on a thread of its own.
    fn other_threads_ns(&mut self) -> Option<f64> {
        None
    }

    /// What happened on the way so far, where the layer keeps count.
    fn transport(&self) -> Option<Transport> {
        None
    }
}

/// What memory is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To be registered with the layer.
    Register,
    /// To be locked by the system, for comparison.
    Lock,
}

/// A process that has its layer know memory, in its own time. It has one region at a time.
pub trait Registrar: Time {
    /// What the system says about memory.
    fn system(&self) -> MemorySystem;

    /// Gives the region back, which is neither registered nor locked any more, and takes one of `bytes`
    /// that nothing has touched.
    fn renew(&mut self, purpose: Purpose, bytes: usize) -> Result<(), LayerError>;

    /// Writes to every page of the region.
    fn touch(&mut self);

    /// Registers and deregisters other memory, so that the layer's code and tables are in caches,
    /// whatever has just been done to a region.
    fn warm_up(&mut self) -> Result<(), LayerError>;

    /// Registers the region, which may be registered already.
    fn register(&mut self) -> Result<(), LayerError>;

    /// Takes the latest registration back.
    fn deregister(&mut self) -> Result<(), LayerError>;

    /// Has the system lock the region, as `mlock` does. False where it refuses.
    fn lock(&mut self) -> Result<bool, LayerError>;

    /// Has the system unlock it.
    fn unlock(&mut self) -> Result<(), LayerError>;

    /// What transfers need besides memory and costs the same whatever its size, by name, as in
    /// `create VI`.
    fn fixed(&self) -> &[&'static str];

    /// Does what [`Registrar::fixed`] names at this index, and undoes it: the ticks from just before
    /// to just after doing it.
    fn perform(&mut self, nth: usize) -> Result<u64, LayerError>;
}
