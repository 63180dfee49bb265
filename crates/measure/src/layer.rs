//! The traits of a layer under test, as the measurement patterns use it.

use crate::breakdown::anatomy::Anatomy;
use crate::logp::data::Transport;
use crate::onesided::data::{Level, Memory, Operation, Synchronisation};
use crate::order::Order;
use crate::processor_time::{Accounts, MachineAccount};
use crate::registration::data::MemorySystem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The reason why a layer could not continue: one line, for the user.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct LayerError(pub String);

impl LayerError {
    /// Returns an error with the message of `error`.
    pub fn new(error: impl std::fmt::Display) -> Self {
        Self(error.to_string())
    }
}

/// The interface of a layer that two processes use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Face {
    /// Requests and replies of one size ([`Requester`]).
    Requests,
    /// Requests and replies whose size can be set ([`SizedRequester`]).
    Sized,
    /// Messages ([`Messenger`]).
    Messages,
    /// One-sided operations ([`Initiator`]).
    OneSided,
}

/// An amount of computation in the layer's own unit. It needs no conversion while time is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work(pub u64);

/// A layer's own time.
pub trait Time {
    /// Returns the layer's clock, in ticks.
    fn now(&mut self) -> u64;

    /// Returns the length of one tick, in nanoseconds.
    fn tick_ns(&self) -> f64;

    /// Returns the work that takes about `d_ns` nanoseconds.
    fn work(&self, d_ns: f64) -> Work;

    /// Computes without touching the layer.
    fn compute(&mut self, work: Work);

    /// Reports that this is the time of a simulation. Virtual time costs the user nothing, so that a
    /// pattern is not shortened to fit into its budget.
    fn is_virtual(&self) -> bool {
        false
    }
}

/// The requester's side of a request/reply layer, in its own time.
///
/// The replier answers every request with one reply. Only [`Requester::poll`] and [`Requester::wait`]
/// handle replies.
pub trait Requester: Time {
    /// Issues one request. Returns false, and does nothing, if the window is full.
    fn issue(&mut self) -> Result<bool, LayerError>;

    /// Handles at most one reply. Returns false if none had arrived.
    fn poll(&mut self) -> Result<bool, LayerError>;

    /// Idles until it has handled one reply.
    ///
    /// # Errors
    /// Returns an error if no reply arrives within a bounded time.
    fn wait(&mut self) -> Result<(), LayerError>;

    /// Returns the number of outstanding requests (requests without a reply).
    fn in_flight(&self) -> usize;

    /// Returns the largest possible number of outstanding requests.
    fn max_window(&self) -> usize;

    /// Limits the number of outstanding requests to `window`, from 1 to [`Requester::max_window`].
    fn set_window(&mut self, window: usize);

    /// Returns the transport statistics so far, if the layer keeps them.
    fn transport(&self) -> Option<Transport> {
        None
    }
}

/// The way in which requests move their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Transfer {
    /// The request is a message with the bytes, sent as suits the layer and the size.
    #[default]
    Request,
    /// The request stores its bytes into the memory of the replier, whatever their number.
    Store,
    /// The request is small and asks for a reply, which is a message with the bytes.
    Reply,
    /// The request gets its bytes from the memory of the replier. The replier's program takes no part.
    Get,
}

/// Reads the accounts of both sides of a connection.
pub trait Meter {
    /// Returns the accounts of both sides so far.
    ///
    /// # Errors
    /// Returns an error if the other process cannot be asked.
    fn accounts(&mut self) -> Result<Accounts, LayerError>;
}

/// A requester with messages of any size.
pub trait SizedRequester: Requester {
    /// Returns the largest message, in bytes. The smallest has one byte.
    fn largest(&self) -> usize;

    /// Sets the sizes of every later request and reply, in bytes. No request may be outstanding. The call
    /// may change [`Requester::max_window`], and sets the window to it.
    fn set_sizes(&mut self, request_bytes: usize, reply_bytes: usize) -> Result<(), LayerError>;

    /// Chooses the way in which later requests move their bytes, from the next [`SizedRequester::set_sizes`]
    /// on. Returns the way that the layer has: [`Transfer::Request`] in place of a store, and
    /// [`Transfer::Reply`] in place of a get, if it has messages alone.
    fn set_transfer(&mut self, transfer: Transfer) -> Transfer {
        transfer.by_messages()
    }

    /// Reads the accounts of both sides by `meter` from now on. A simulated layer keeps its own accounts.
    fn set_meter(&mut self, _meter: Box<dyn Meter>) {}

    /// Returns the processor time of both sides so far.
    ///
    /// # Errors
    /// Returns an error if the layer was opened without a meter, or if the other process cannot be asked.
    fn accounts(&mut self) -> Result<Accounts, LayerError> {
        Err(LayerError::new("the layer has no accounts of processor time"))
    }

    /// Sleeps for `d_ns` nanoseconds of the layer's time, without the processor. A layer whose time does not pass
    /// by itself computes.
    fn sleep(&mut self, d_ns: f64) {
        let work = self.work(d_ns);
        self.compute(work);
    }
}

impl Transfer {
    /// Returns the same transfer by messages alone.
    pub fn by_messages(self) -> Self {
        match self {
            Self::Request | Self::Store => Self::Request,
            Self::Reply | Self::Get => Self::Reply,
        }
    }
}

/// The worker's side of two processes that exchange messages of any size, in its own time. It models the
/// non-blocking calls of MPI. Each message itself tells the other process how to answer it ([`Order`]).
///
/// The layer makes progress in its own way: inside these calls only, or also outside them.
pub trait Messenger: Time {
    /// Returns the number of messages that may be under way in each direction. The slots count from 0.
    fn depth(&self) -> usize;

    /// Returns the largest message, in bytes. The smallest has [`Order::LEN`] bytes.
    fn largest(&self) -> usize;

    /// Posts a receive of at most `bytes` into the slot. Receives match messages in the order in which they
    /// were posted.
    fn post_receive(&mut self, slot: usize, bytes: usize) -> Result<(), LayerError>;

    /// Posts a send of `bytes` from the slot.
    fn post_send(&mut self, slot: usize, bytes: usize, order: Order) -> Result<(), LayerError>;

    /// Reports that the receive of the slot is complete. The slot may then be posted again.
    fn test_receive(&mut self, slot: usize) -> Result<bool, LayerError>;

    /// Reports that the send of the slot is complete. The slot may then be posted again.
    fn test_send(&mut self, slot: usize) -> Result<bool, LayerError>;

    /// Idles until the receive of the slot is complete.
    ///
    /// # Errors
    /// Returns an error if the receive does not complete within a bounded time.
    fn wait_receive(&mut self, slot: usize) -> Result<(), LayerError>;

    /// Idles until the send of the slot is complete.
    ///
    /// # Errors
    /// Returns an error if the send does not complete within a bounded time.
    fn wait_send(&mut self, slot: usize) -> Result<(), LayerError>;

    /// Returns the processor time of the process's other threads so far, in nanoseconds, if it is known. A
    /// layer with a progress thread spends it there.
    fn other_threads_ns(&mut self) -> Option<f64> {
        None
    }

    /// Returns the accounts of the machine's processors so far, and the worker's processor, if they are known.
    fn machine(&mut self) -> Option<(MachineAccount, usize)> {
        None
    }

    /// Returns the transport statistics so far, if the layer keeps them.
    fn transport(&self) -> Option<Transport> {
        None
    }
}

/// A process that puts bytes into the memory of another process, the target, and gets bytes from there, in its
/// own time. All operations name the same memory at both ends.
pub trait Initiator: Time {
    /// Returns the operations that the layer has.
    fn operations(&self) -> &[Operation];

    /// Returns the largest size, in bytes. The smallest has one byte.
    fn largest(&self) -> usize;

    /// Chooses the operation that every later call starts, and its size. No operation may be in flight.
    fn choose(&mut self, operation: Operation, bytes: usize) -> Result<(), LayerError>;

    /// Returns the reliability level, if the layer has levels.
    fn level(&self) -> Option<Level> {
        None
    }

    /// Returns the synchronisation of the operations, if the layer has several.
    fn synchronisation(&self) -> Option<Synchronisation> {
        None
    }

    /// Returns whose memory is reached, if the layer has a choice.
    fn memory(&self) -> Option<Memory> {
        None
    }

    /// Opens an epoch, inside which operations are started, and waits until the target takes part. It is called
    /// before the first operation, and again before the first one after [`Initiator::wait_local`] or
    /// [`Initiator::flush`], which close the epoch. Does nothing if the layer has no epochs.
    ///
    /// # Errors
    /// Returns an error if the layer fails.
    fn open_epoch(&mut self) -> Result<(), LayerError> {
        Ok(())
    }

    /// Returns the largest possible number of operations in flight, at the chosen size.
    fn window(&self) -> usize;

    /// Starts an operation. Waits first, while as many operations are in flight as possible.
    ///
    /// # Errors
    /// Returns an error if that takes longer than a bounded time.
    fn start(&mut self) -> Result<(), LayerError>;

    /// Idles until the local memory of all started operations is free again, or has the bytes.
    ///
    /// # Errors
    /// Returns an error if that takes longer than a bounded time.
    fn wait_local(&mut self) -> Result<(), LayerError>;

    /// Idles until all started operations are known to be complete in the target's memory. For
    /// [`Operation::PutNotify`] it idles until the target has replied to all of them.
    ///
    /// # Errors
    /// Returns an error if that takes longer than a bounded time.
    fn flush(&mut self) -> Result<(), LayerError>;

    /// Returns the transport statistics so far, if the layer keeps them.
    fn transport(&self) -> Option<Transport> {
        None
    }
}

/// The purpose of a memory region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Registration with the layer.
    Register,
    /// Locking by the operating system, for comparison.
    Lock,
}

/// A layer whose operations are made in parts, in its own time.
pub trait Dissected: Time {
    /// Returns the runs, and the operations whose steps follow from them.
    fn anatomy(&self) -> &Anatomy;

    /// Makes the `nth` run with `count` operations. Returns the ticks of each of its probes, for all operations.
    fn make(&mut self, nth: usize, count: u64) -> Result<Vec<u64>, LayerError>;
}

/// A process that registers memory with its layer, in its own time. It has one region at a time.
pub trait Registrar: Time {
    /// Returns what the operating system reports about memory.
    fn system(&self) -> MemorySystem;

    /// Frees the region, which must be neither registered nor locked, and allocates a region of `bytes`
    /// whose pages are untouched.
    fn renew(&mut self, purpose: Purpose, bytes: usize) -> Result<(), LayerError>;

    /// Writes to every page of the region.
    fn touch(&mut self);

    /// Registers and deregisters other memory. The layer's code and tables are then in caches, whatever was
    /// done to a region before.
    fn warm_up(&mut self) -> Result<(), LayerError>;

    /// Registers the region, which may already be registered.
    fn register(&mut self) -> Result<(), LayerError>;

    /// Undoes the latest registration.
    fn deregister(&mut self) -> Result<(), LayerError>;

    /// Makes the operating system lock the region, as `mlock` does. Returns false if it refuses.
    fn lock(&mut self) -> Result<bool, LayerError>;

    /// Makes the operating system unlock the region.
    fn unlock(&mut self) -> Result<(), LayerError>;

    /// Returns the names of the operations that transfers need besides memory, and whose cost does not
    /// depend on its size. An example is `create VI`.
    fn fixed(&self) -> &[&'static str];

    /// Performs the operation at this index of [`Registrar::fixed`], and undoes it. Returns the ticks that
    /// the operation took, without undoing it.
    fn perform(&mut self, nth: usize) -> Result<u64, LayerError>;
}
