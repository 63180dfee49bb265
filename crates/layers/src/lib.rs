//! The layers that netdyno measures, as subjects of `netdyno_measure::layer`.
//!
//! * [`catalogue`] names the layers, says what each can do, and opens them. No other module knows which
//!   layers there are.
//! * [`sim`] and [`plugin`] are layers, as are the private modules `am`, `vi`, `udp`, `tcp`, `oncrpc`,
//!   `grpc` and `global`. Each has a
//!   file for each way in which it is measured: requests of one size, requests of any size, messages,
//!   a group of processes, registration of memory.
//! * [`accounts`] adds the accounts of processor time to a half of any layer.
//! * The other modules know no layer. They hold what layers have in common: [`options`], [`half`] (a
//!   connection of two processes), [`group`] (many processes), `requests`, `sized`, `messages`,
//!   [`registrar`], operations in parts ([`parts`]), the clock (`time`), waiting
//!   ([`peer_wait`]), sockets (`socket`), the content of messages (`payload`) and the counters of the stack
//!   (`transport`).
#![forbid(unsafe_code)]

pub mod accounts;
mod am;
pub mod catalogue;
mod global;
pub mod group;
mod grpc;
pub mod half;
mod idle;
mod messages;
mod oncrpc;
pub mod options;
pub mod parts;
mod payload;
pub mod peer_wait;
pub mod plugin;
pub mod registrar;
mod requests;
pub mod sim;
mod sized;
mod socket;
mod tcp;
mod time;
mod transport;
mod udp;
mod vi;
mod xdp;
