//! Active Messages (von Eicken et al. 1992; the Generic Active Messages of Culler et
//! al. 1996): requests and replies that name the handler which consumes them.
//!
//! A message carries a handler index and up to four 64-bit words; a medium one a
//! payload as well. A request handler may reply once; a reply handler sends nothing.
//! Both rules are in the types: [`Request::reply`] consumes the request, and [`Reply`]
//! has nothing to send with. Handlers run inside [`Endpoint::poll`], and inside a
//! request that waits for room.
//!
//! ```
//! use netdyno_stack::am::{Config, Endpoint, Handlers, Wire};
//!
//! const DOUBLE: u8 = 0;
//! const RESULT: u8 = 0;
//!
//! // What handlers work on. Here one type serves both sides.
//! let mut handlers = Handlers::<Vec<u64>>::new();
//! handlers.on_request(DOUBLE, |_, request| {
//!     let [x, ..] = request.words();
//!     request.reply(RESULT, [2 * x]);
//! });
//! handlers.on_reply(RESULT, |results, reply| results.push(reply.words()[0]));
//!
//! // Two endpoints, usually in two processes, exchange the addresses of their ports.
//! let mut a = Endpoint::new(handlers.clone(), Config::default())?;
//! let mut b = Endpoint::new(handlers, Config::default())?;
//! let (port_a, port_b) = (a.open_port(Wire::Shm)?, b.open_port(Wire::Shm)?);
//! let (address_a, address_b) = (port_a.address(), port_b.address());
//! let peer = a.connect(port_a, &address_b)?;
//! b.connect(port_b, &address_a)?;
//!
//! let (mut results, mut nothing) = (Vec::new(), Vec::new());
//! a.request(&mut results, peer, DOUBLE, [21])?;
//! b.poll(&mut nothing)?;
//! a.poll(&mut results)?;
//! assert_eq!(results, [42]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Delivery is exactly once and in order between each pair while both live. A peer that
//! ends, closes, breaks the protocol, or is silent while requests wait for it, is
//! reported by the next call that notices, within [`Config::peer_timeout`] of polling;
//! the report says how many requests are without an answer.

mod config;
mod endpoint;
mod error;
mod handlers;
mod port;
mod shm;
mod udp;

pub use config::{Config, PeerId, Wire};
pub use endpoint::Endpoint;
pub use error::{ConnectError, Loss, OpenError, PeerLost, RequestError, TooLong};
pub use handlers::{Handlers, Reply, Request};
pub use netdyno_host::wait::Wait;
pub use netdyno_protocol::faults::Faults;
pub use netdyno_protocol::frame::datagram::LONGEST_PAYLOAD;
pub use netdyno_protocol::reliability::Counters;
pub use port::Port;
pub use udp::{LINGER, PeerStatistics, Strays};
