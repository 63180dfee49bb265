//! Exactly once, in order, over a network that loses, repeats, reorders and damages.
//!
//! A [`Connection`] is a state machine: datagrams, messages and the time go in; datagrams,
//! deliveries and the next deadline come out. It has no clock, no socket and no random
//! source, so that a seeded simulator drives the code that runs on a real wire.
//!
//! The driving contract, for a caller at any time `now_ns`:
//! 1. hand in what arrived ([`Connection::receive`]) and handle what that made
//!    deliverable ([`Connection::buffered`]), with [`Connection::transfer`] where it belongs to
//!    a bulk transfer;
//! 2. hand in the time when a deadline has passed ([`Connection::on_time`]);
//! 3. send what is to be sent ([`Connection::transmit`], which lends the bytes) until there is
//!    nothing more, nor anything to be had of bulk transfers ([`Connection::feed`]);
//! 4. come back at [`Connection::deadline`] at the latest.
//!
//! On a dialled link ([`Connection::hold_messages`]) what arrives is put aside with the time at which
//! it is due ([`Connection::hold`]), and delivered when the caller lets it
//! ([`Connection::release`]). It is acknowledged as it arrives, for the network is not dialled; what it
//! completes, and what is completed by handling it, waits with it.
//!
//! As in von Eicken et al. 1994 ("SSAM implementation: flow control"), a sliding window
//! with copies kept until they are acknowledged, and acknowledgements carried by
//! replies, with explicit ones only where nothing flows back. Beyond the paper:
//! selective acknowledgement, timeouts from measured round trips, probes of the tail,
//! a response to congestion, and death by silence.
//!
//! Within, `sending` keeps what is not acknowledged and decides what goes out next,
//! `receiving` puts in order what comes in, `transfers` knows which bytes of bulk transfers go
//! where, `holding` has what is not due on a dialled link, and the connection joins them.

mod buffers;
mod congestion;
mod connection;
mod holding;
mod receiving;
mod round_trip;
mod sending;
mod transfers;

pub use connection::{Config, Connection, Counters, Delivery, Full, Loss};
pub use holding::Released;
pub use transfers::{Event, Memories, Stored};
