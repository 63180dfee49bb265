//! Exactly-once, in-order delivery over a network that loses, duplicates, reorders and damages datagrams.
//!
//! A [`Connection`] is a state machine. Its inputs are datagrams, messages and the time. Its outputs are
//! datagrams, deliveries and the next deadline. It has no clock, no socket and no random source. So a seeded
//! simulator and a real transport drive the same code.
//!
//! The caller drives a connection as follows, at any time `now_ns`:
//! 1. It passes each datagram that arrived to [`Connection::receive`]. On [`Delivery::Now`] it handles that
//!    message, and then the messages that [`Connection::buffered`] returns. A message that belongs to a bulk
//!    transfer goes to [`Connection::transfer`].
//! 2. It calls [`Connection::on_time`] when a deadline has passed.
//! 3. It sends the datagrams of [`Connection::transmit`], which lends the bytes. It continues until there are
//!    no more, and [`Connection::feed`] has nothing to add from bulk transfers.
//! 4. It comes back at [`Connection::deadline`] at the latest.
//!
//! A caller with several connections shares the room for arriving bulk transfers among them with [`Grants`].
//!
//! On a dialled link ([`Connection::hold_messages`]) the caller puts each message aside with the time at
//! which it is due ([`Connection::hold`]). It delivers the message later ([`Connection::release`]). The
//! message is acknowledged as it arrives, because the network is not dialled. The completions that the
//! message carries wait for its release, and so does its own completion.
//!
//! The protocol follows von Eicken et al. 1994 ("SSAM implementation: flow control"). It has a sliding
//! window, keeps copies until they are acknowledged, and lets replies carry acknowledgements. Explicit
//! acknowledgements are sent only where nothing flows back. The receiver grants the messages of bulk
//! transfers. Beyond the paper it has selective acknowledgement, timeouts from measured round trips, tail loss
//! probes, congestion control ([`Controller`]), and a peer timeout.
//!
//! Inside, `sending` keeps unacknowledged messages and selects the next datagram. `receiving` puts arriving
//! messages in order. `transfers` knows where the bytes of bulk transfers come from and belong. `holding` has
//! the messages that are not due on a dialled link. The connection joins them.

mod buffers;
mod congestion;
mod connection;
mod grants;
mod holding;
mod receiving;
mod recovery;
mod round_trip;
mod sending;
mod transfers;

pub use congestion::{Controller, Relentless};
pub use connection::{Config, Connection, Counters, Delivery, Full, Loss};
pub use grants::Grants;
pub use holding::Released;
pub use recovery::Recovery;
pub use transfers::{Event, Memories, Stored};
