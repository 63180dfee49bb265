//! Layers in C, such as MPI: `netdyno_plugin` with the traits of `netdyno_measure`.
//!
//! Receives are posted before their messages are sent, as in programs that know which messages come. A
//! receive is posted again when its message is taken, which belongs to the overhead of receiving. A send is
//! completed when its slot is needed again, which belongs to the overhead of sending.
//!
//! * [`extension`] names the layers of this process's environment, and opens their channels.
//! * [`half`]: two processes. * [`bootstrap`]: the processes of a launcher. `group`: many processes.
//!   `memory`: registration of memory.
//!
//! `address` connects channels. `queues` has the receives that are posted in advance, and the sends.
//! `one_sided` has one-sided operations that need no target, and `epochs` those in epochs. `requests` has requests
//! over messages, `own_requests` those of a layer with requests of its own, and `messages` has messages. [`parameter`]
//! is what a layer is opened with.

mod address;
pub mod bootstrap;
mod epochs;
pub mod extension;
pub(crate) mod group;
pub mod half;
pub(crate) mod memory;
mod messages;
mod one_sided;
mod own_requests;
pub mod parameter;
mod queues;
mod requests;

/// The largest message of a fixed size, in bytes.
pub const MAX_SIZE: usize = 1 << 20;
