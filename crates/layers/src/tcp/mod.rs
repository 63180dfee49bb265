//! Bare TCP sockets with TCP_NODELAY: messages on a stream.
//!
//! * [`half`]: two processes. * [`group`]: many processes.
//!
//! [`connection`] makes connections. [`stream`] has requests of one size. `sized` and `messages` are the
//! other wires between two processes.

pub(crate) mod connection;
pub(crate) mod group;
pub(crate) mod half;
mod messages;
mod sized;
pub(crate) mod stream;

/// The largest message of a fixed size, in bytes: a full window of them fits into the socket buffers.
pub(crate) const MAX_SIZE: usize = 4 << 10;
/// Most requests in flight to one peer.
pub(crate) const WINDOW: usize = 64;
