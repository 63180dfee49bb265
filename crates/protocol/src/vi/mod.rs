//! The rules of a VI provider in software, independent of any wire and of any memory (VIA 1.0; Speight,
//! Abdel-Shafi and Bennett 1999, section 2).
//!
//! ```text
//!   program          post, done, connect, register            reads and writes its own memory
//!                       |        ^                                      ^
//!   ====================|========|======================================|==================
//!   decides: Nic        v        | completions, errors                  |
//!       queues -> next ----> head | gather        arrive <---- head     | (address, length)
//!       tags, regions   |        | progress       places, arrived       | of checked places
//!   ====================|========|==================^===================|==================
//!   transports:         v        |                  |                   v
//!       bytes from this host to the peer, in order or not, and reports of progress
//! ```
//!
//! A [`Nic`] makes every decision. It holds the states of VIs, the posted descriptors and the access
//! rights of memory. It decides the order of completions and the errors that break a VI. It never
//! accesses the memory that it decides about: an address is a number to it.
//!
//! A transport drives the [`Nic`], copies bytes and sends them. Over shared memory the bytes pass
//! through rings that both processes map. Over UDP they travel in frames, which depend on the
//! reliability level:
//!
//! - The messages of an unreliable VI travel in [fragments](crate::frame::vi_fragment).
//! - The messages of a reliable VI travel on a
//!   [`reliability::Connection`](crate::reliability::Connection). The connection delivers once and in
//!   order, acknowledges, answers, and gives up a silent peer. It asks for the place of each piece, as
//!   a VI does. The head of a VI message travels in the words of a connection message
//!   ([`vi_message`](crate::frame::vi_message)):
//!
//! | VI | on the connection | outcome |
//! | --- | --- | --- |
//! | send, RDMA write | a request: the head in its words, the bytes as its payload | a reply: a verdict |
//! | longer send or write | the same without payload, then a store of the bytes | refused, or a reply |
//! | RDMA read | a get: the handle names the memory, the address is the offset | fetched, or refused |
//! | disconnect | a goodbye, after all messages that were sent | [`Nic::left`] |
//! | silent peer | | [`Nic::lost`] |
//!
//! A transport drives the [`Nic`] in these steps, at any time `now_ns`:
//! 1. It passes in signals ([`Nic::signal`]) and messages ([`Nic::arrive`], [`Nic::places`],
//!    [`Nic::arrived`]).
//! 2. It passes in the time when a deadline has passed ([`Nic::on_time`]), and the progress of messages
//!    ([`Nic::progress`]).
//! 3. It takes the messages that VIs send ([`Nic::next`], [`Nic::bytes_of`]) until there are none left.
//! 4. It sends the signals ([`Nic::next_signal`]) and carries out the events ([`Nic::next_event`]). The
//!    event of a completion asks it to write the completion into the descriptor.
//! 5. It comes back at [`Nic::deadline`] at the latest.
//!
//! For short messages a transport may try the fast path first, which has the same effect
//! ([`Nic::send_at_once`], [`Nic::take_at_once`]).
//!
//! The modules:
//! - [`descriptor`] parses the descriptors that programs post; `work` is what they ask for.
//! - `memory` holds protection tags and registered memory.
//! - `state` and `connecting` connect and disconnect VIs; `settled` remembers old connection requests.
//! - `queue` and `completion` keep the order of completions.
//! - `posting` sends messages, `arriving` receives them, `at_once` is the fast path of both.
//! - `fragments` reassembles messages from their pieces.
//! - `nic` owns all of these.
//! - [`codes`] has the numbers that C programs see.

mod arriving;
mod at_once;
pub mod attributes;
pub mod codes;
mod completion;
mod connecting;
mod connections;
pub mod descriptor;
mod fragments;
mod handles;
mod memory;
mod nic;
mod posting;
mod queue;
mod return_codes;
mod settled;
mod state;
mod table;
mod work;

pub use arriving::Arrival;
pub use at_once::Taken;
pub use attributes::{Conflict, NicAttributes, Offer, Unsupported, ViAttributes};
pub use codes::{AsyncError, Level, Resource, Status};
pub use completion::{CqError, CqHandle, Done};
pub use connections::{ConnHandle, ConnectError, WaitHandle};
pub use descriptor::{Completion, DescriptorAt, View};
pub use handles::ViHandle;
pub use memory::{Access, Denied, Limits, MemAttributes, MemHandle, MemoryError, Ptag, Region};
pub use nic::{Event, Failure, Link, Nic, Parting, ResourceError, ViQuery};
pub use posting::{Outgoing, PostError, Progress};
pub use queue::Completed;
pub use return_codes::ReturnCode;
pub use state::{Change, State};
pub use work::{Operation, Remote, Segment, Segments, Short, Side, Work};
