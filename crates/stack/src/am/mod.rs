//! Active Messages (von Eicken et al. 1992; the Generic Active Messages of Culler et al. 1996): each
//! request and each reply names the handler that consumes it.
//!
//! A short message carries a handler index and up to four 64-bit words; a medium message also carries a
//! payload. A request handler may reply once; a reply handler sends nothing. The types enforce both
//! rules: [`Request::reply`] consumes the request, and [`Reply`] has no method that sends. Handlers run
//! inside [`Endpoint::poll`], and inside a request call that waits for room in the window.
//!
//! ```
//! use netdyno_stack::am::{Config, Endpoint, Handlers, Wire};
//!
//! const DOUBLE: u8 = 0;
//! const RESULT: u8 = 0;
//!
//! // The state that handlers work on. Here one type serves both sides.
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
//! Messages between two endpoints are delivered exactly once and in order while both live. The endpoint
//! reports a peer that ends, closes, breaks the protocol, or is silent while requests to it are
//! outstanding or a store of it arrives. The next call that notices the loss reports it, within [`Config::peer_timeout`] of
//! polling. The report gives the number of unanswered requests.
//!
//! # Bulk transfers
//!
//! `store` and `get` move any number of bytes between local memory and registered memory of a peer (von
//! Eicken et al. 1992, section 2; Culler et al. 1996, "bulk transfers").
//!
//! ```
//! use netdyno_stack::am::{Config, Endpoint, Handlers, Wire};
//!
//! const PLACED: u8 = 0;
//! const FETCHED: u8 = 0;
//!
//! // The state that handlers work on: the bytes that they saw.
//! let mut handlers = Handlers::<Vec<u8>>::new();
//! handlers.on_store(PLACED, |seen, stored| {
//!     seen.resize(stored.bytes().len(), 0);
//!     stored.bytes().read(seen);
//!     // The handler may reply, like the handler of any request.
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
//! // b has memory, a has its key: usually b sends the key in a message.
//! let memory = b.allocate(4096)?;
//! let remote = a.attach(&mut seen_by_a, to_b, &memory.key())?;
//!
//! // Copies bytes of a into the memory of b; the store handler then runs at b.
//! a.store(&mut seen_by_a, remote.at(100), b"hello", PLACED, [])?;
//! b.poll(&mut seen_by_b)?;
//! assert_eq!(seen_by_b, b"hello");
//!
//! // Copies bytes of b into memory of a; the get handler then runs at a.
//! let local = a.register(vec![0; 16].into())?;
//! a.get(&mut seen_by_a, remote.at(102), local.range(0, 3), FETCHED, [])?;
//! while seen_by_a.is_empty() {
//!     a.poll(&mut seen_by_a)?;
//!     b.poll(&mut seen_by_b)?;
//! }
//! assert_eq!(seen_by_a, b"llo");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A refused transfer writes nothing. If the range is outside of the memory, the call returns an error.
//! If the memory was deregistered meanwhile, the handler of refusals runs later; without such a handler
//! no transfer starts. Bytes that landed before the deregistration stay; no byte lands after it.
//!
//! Both are asynchronous, and any number may be under way: each is a request in the window of its peer.
//! A store is not ordered with respect to other requests. A program that needs a message to be handled
//! after a store waits for the store's reply, or counts its handlers. A `get` returns bytes that were in
//! the memory at some time between the call and its handler.

mod bulk;
mod call;
mod config;
mod dial;
mod endpoint;
mod error;
mod handlers;
mod others;
mod peer_id;
mod port;
mod progress;
mod shm;
mod transport;
mod udp;

pub use crate::statistics::{PeerStatistics, Strays};
pub use bulk::{Fetched, Memory, MemoryRange, Placed, Refused, Remote, Shared, Stored, Target, Transfer};
pub use config::Config;
pub use dial::DialSettings;
pub use endpoint::Endpoint;
pub use error::{
    AttachError, ConnectError, Loss, MemoryError, NotRegistered, OpenError, OutOfBounds, PeerLost,
    RequestError, TooLong, TransferError,
};
pub use handlers::{Handlers, Reply, ReplySlot, Request};
pub use netdyno_host::datagram::{SocketError, XdpError};
pub use netdyno_host::segment::SegmentError;
pub use netdyno_host::shared_word::{SharedWord, SharedWordError};
pub use netdyno_host::wait::Wait;
pub use netdyno_protocol::dial::parameters::{Dials, DialsError};
pub use netdyno_protocol::dial::profile::{Profile, ProfileError};
pub use netdyno_protocol::dial::setting::{Setting, SettingError};
pub use netdyno_protocol::dial::spread::{Shape, Spread, VaryingSetting};
pub use netdyno_protocol::dial::table::Dial;
pub use netdyno_protocol::dial::time_profile::TimeProfileError;
pub use netdyno_protocol::faults::Faults;
pub use netdyno_protocol::frame::datagram::{LONGEST_PAYLOAD, STAMP_LEN};
pub use netdyno_protocol::reliability::Counters;
pub use peer_id::{PeerId, Wire};
pub use port::Port;
pub use progress::{Driven, ProgressThread};
pub use udp::LINGER;
