//! A provider of Virtual Interfaces in software (VIA 1.0; Speight, Abdel-Shafi and Bennett 1999,
//! section 2): the rules, apart from any wire and any memory.
//!
//! ```text
//!   program          post, done, connect, register            reads and writes its own memory
//!                       |        ^                                      ^
//!   ====================|========|======================================|==================
//!   decides: Nic        v        | completions, errors                  |
//!       queues -> next ----> head | gather        arrive <---- head     | (address, length)
//!       tags, regions   |        | progress       places, arrived       | of checked places
//!   ====================|========|==================^===================|==================
//!   carries:            v        |                  |                   v
//!       bytes from here to there, in order or not, and news of how far they have come
//! ```
//!
//! A [`Nic`] decides. It has the states of VIs, the descriptors that are posted, who may use which
//! memory, what completes and in which order, what breaks. It never touches the memory it speaks
//! about: addresses are numbers to it.
//!
//! A carrier copies and sends. Over shared memory it copies from one process's registered memory into
//! the other's and rings; over UDP it sends frames, for a VI that promises nothing in
//! [fragments](crate::frame::vi_fragment), for the others over a
//! [`reliability::Connection`](crate::reliability::Connection): that delivers once and in order,
//! acknowledges, answers, and gives up, and asks with each piece where it belongs, just as a VI
//! does. What is a VI's goes into the words of its messages
//! ([`vi_message`](crate::frame::vi_message)):
//!
//! | | on the connection | and then |
//! | --- | --- | --- |
//! | send, RDMA write | request, the head its words, the bytes its payload | reply: a verdict |
//! | one that is longer | the same without bytes, and a store of them behind it | refused, or a reply |
//! | RDMA read | get, from the handle as memory and the address as offset | fetched, or refused |
//! | disconnect | goodbye, behind all that was sent | [`Nic::left`] |
//! | silence | | [`Nic::lost`] |
//!
//! The driving contract, for a carrier at any time `now_ns`:
//! 1. hand in signals ([`Nic::signal`]) and messages ([`Nic::arrive`], [`Nic::places`],
//!    [`Nic::arrived`]);
//! 2. hand in the time when a deadline has passed ([`Nic::on_time`]), and how far messages have
//!    come ([`Nic::progress`]);
//! 3. take what VIs send ([`Nic::next`], [`Nic::bytes_of`]) until there is nothing more;
//! 4. say what is to be said ([`Nic::next_signal`]), and do what is told ([`Nic::next_event`]):
//!    completions are written into descriptors there;
//! 5. come back at [`Nic::deadline`] at the latest.
//!
//! A carrier that moves short messages by itself may try the short way first, which comes to the same
//! ([`Nic::send_at_once`], [`Nic::take_at_once`]).
//!
//! Within, [`descriptor`] reads what programs post, `memory` knows who may use what, `state` and
//! `connecting` bring VIs together and part them, `settled` knows old requests, `queue` and `completion` keep the order, `posting`
//! and `arriving` are the two ends of a message, `at_once` both for short ones, `fragments` makes whole ones of pieces, `nic` has
//! them all. [`codes`] are the numbers that C programs see.

mod arriving;
mod at_once;
pub mod attributes;
pub mod codes;
mod completion;
mod connecting;
pub mod descriptor;
mod fragments;
mod memory;
mod nic;
mod posting;
mod queue;
mod settled;
mod state;
mod table;

pub use arriving::Arrival;
pub use at_once::Taken;
pub use attributes::{Conflict, NicAttributes, Offer, Unsupported, ViAttributes};
pub use codes::{AsyncError, Level, Resource, ReturnCode, Status};
pub use completion::{CqError, CqHandle, Done};
pub use connecting::{ConnHandle, ConnectError, WaitHandle};
pub use descriptor::{Completion, DescriptorAt, Operation, Remote, Segment, Side, View, Work};
pub use memory::{Access, Denied, Limits, MemAttributes, MemHandle, MemoryError, Ptag, Region};
pub use nic::{Event, Failure, Link, Nic, Parting, ResourceError, ViHandle, ViQuery};
pub use posting::{Outgoing, PostError, Progress};
pub use queue::Completed;
pub use state::{Change, State};
