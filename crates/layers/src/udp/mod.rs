//! Bare UDP sockets: the cost of the kernel's path, with nothing on top. A datagram that the kernel drops
//! ends the run with an error. The window is smaller than what the receive buffer holds, so that the kernel
//! has no reason to drop one.
//!
//! * [`half`]: two processes. * [`group`]: many processes.
//!
//! [`port`] opens sockets and knows what their receive buffers hold. `requests`, `sized` and `messages` are the
//! wires between two processes.

pub(crate) mod group;
pub(crate) mod half;
pub(crate) mod messages;
pub(crate) mod port;
mod requests;
pub(crate) mod sized;

/// The largest datagram of a fixed size, in bytes: what one packet of the loopback interface carries, with
/// room to spare.
pub(crate) const MAX_SIZE: usize = 32 << 10;
