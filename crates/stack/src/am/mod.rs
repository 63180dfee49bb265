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
//!
//! # Bulk transfers
//!
//! `store` and `get` move any number of bytes between memory here and registered memory of a
//! peer (von Eicken et al. 1992, section 2; Culler et al. 1996, "bulk transfers").
//!
//! ```
//! use netdyno_stack::am::{Config, Endpoint, Handlers, Wire};
//!
//! const PLACED: u8 = 0;
//! const FETCHED: u8 = 0;
//!
//! // What handlers work on: the bytes that were seen.
//! let mut handlers = Handlers::<Vec<u8>>::new();
//! handlers.on_store(PLACED, |seen, stored| {
//!     seen.resize(stored.bytes().len(), 0);
//!     stored.bytes().read(seen);
//!     // It may reply, like the handler of any request.
//! });
//! handlers.on_fetched(FETCHED, |seen, fetched| {
//!     seen.resize(fetched.bytes().len(), 0);
//!     fetched.bytes().read(seen);
//! });
//! handlers.on_refused(|_, refused| eprintln!("{refused}"));
//! let mut a = Endpoint::new(handlers.clone(), Config::default())?;
//! let mut b = Endpoint::new(handlers, Config::default())?;
//! let (port_a, port_b) = (a.open_port(Wire::Shm)?, b.open_port(Wire::Shm)?);
//! let (address_a, address_b) = (port_a.address(), port_b.address());
//! let to_b = a.connect(port_a, &address_b)?;
//! b.connect(port_b, &address_a)?;
//! let (mut seen_by_a, mut seen_by_b) = (Vec::new(), Vec::new());
//!
//! // b has memory, a its key: usually it came in a message.
//! let memory = b.allocate(4096)?;
//! let remote = a.attach(&mut seen_by_a, to_b, &memory.key())?;
//!
//! // Bytes of a into the memory of b, where the handler then fires.
//! a.store(&mut seen_by_a, remote, 100, b"hello", PLACED, [])?;
//! b.poll(&mut seen_by_b)?;
//! assert_eq!(seen_by_b, b"hello");
//!
//! // Bytes of b into memory of a, where the handler then fires.
//! let local = a.register(vec![0; 16].into())?;
//! a.get(&mut seen_by_a, remote, 102, 3, &local, 0, FETCHED, [])?;
//! while seen_by_a.is_empty() {
//!     a.poll(&mut seen_by_a)?;
//!     b.poll(&mut seen_by_b)?;
//! }
//! assert_eq!(seen_by_a, b"llo");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A transfer that cannot be is refused, and nothing is written: at once, by an error of the
//! call, where the range is outside of the memory; later, by the handler of refusals (without
//! which no transfer is begun), where the memory was deregistered meanwhile. What had landed
//! before it was deregistered has landed; nothing does afterwards.
//!
//! Both are asynchronous, and any number may be under way: each is a request in the window
//! of its peer. Between a store and other requests there is no order but that of their
//! answers: who wants a message to be handled after a store waits for the reply to that, or
//! counts its handlers. A `get` brings the bytes that are in the memory at some time between
//! the call and its handler.

mod bulk;
mod config;
mod dial;
mod endpoint;
mod error;
mod handlers;
mod port;
mod shm;
mod udp;

pub use crate::statistics::{PeerStatistics, Strays};
pub use bulk::{Fetched, Memory, Placed, Refused, Remote, Shared, Stored, Transfer};
pub use config::{Config, PeerId, Wire};
pub use dial::Turning;
pub use endpoint::Endpoint;
pub use error::{
    AttachError, ConnectError, Loss, MemoryError, NotRegistered, OpenError, OutOfBounds, PeerLost,
    RequestError, TooLong, TransferError,
};
pub use handlers::{Handlers, Reply, Request};
pub use netdyno_host::shared_word::{SharedWord, SharedWordError};
pub use netdyno_host::wait::Wait;
pub use netdyno_protocol::dial::course::CourseError;
pub use netdyno_protocol::dial::profile::{Profile, ProfileError};
pub use netdyno_protocol::dial::setting::{Dial, Setting, SettingError};
pub use netdyno_protocol::dial::spread::{Shape, Spread, Turned};
pub use netdyno_protocol::dial::terms::{Dials, TermsError};
pub use netdyno_protocol::faults::Faults;
pub use netdyno_protocol::frame::datagram::{LONGEST_PAYLOAD, STAMP_LEN};
pub use netdyno_protocol::reliability::Counters;
pub use port::Port;
pub use udp::LINGER;
