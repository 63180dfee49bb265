//! Virtual Interfaces of this process (VIA 1.0; Speight, Abdel-Shafi and Bennett 1999): protected
//! user-level communication, without a system call on the data path.
//!
//! A [`Provider`] is the VI provider of the architecture: a NIC, and the kernel agent that connects VIs
//! and registers memory. [`netdyno_protocol::vi`] implements the rules; this module moves the bytes over
//! one of two transports ([`WireKind`]):
//!
//! * **Shared memory**: a post writes a cache line that the peer's process maps, without a system call.
//!   The agent is a Unix socket, and admits only processes of this user.
//! * **UDP**: a NIC in software, driven by the calls to the provider.
//!
//! A provider has no thread. It makes progress when the program asks for completions
//! ([`Provider::done`], [`Provider::cq_done`]) or calls [`Provider::progress`].
//!
//! A program that registers memory of its own must keep it valid for as long as it is registered. A
//! program that uses a [`Consumer`] need not, because the consumer owns the memory.

mod agent;
mod config;
mod consumer;
mod error;
mod local;
mod provider;
mod shm;
mod udp;
mod wire;

pub use crate::statistics::{PeerStatistics, Strays};
pub use config::{Config, UDP_PORT, UdpOptions, WireKind};
pub use consumer::{Consumer, ConsumerError, Finished, PieceId};
pub use error::OpenError;
pub use netdyno_host::datagram::SocketError;
pub use netdyno_host::loan::Loan;
pub use netdyno_host::segment::SegmentError;
pub use netdyno_protocol::faults::{Faults, FaultsError};
pub use netdyno_protocol::frame::vi_signal::{Address, Request};
pub use netdyno_protocol::reliability::Counters;
pub use netdyno_protocol::vi::{
    AsyncError, Completed, Completion, ConnHandle, ConnectError, CqError, CqHandle, DescriptorAt, Done,
    Failure, Level, Limits, MemAttributes, MemHandle, MemoryError, NicAttributes, Offer, Operation,
    PostError, Ptag, Region, Remote, Resource, ResourceError, ReturnCode, Segment, Side, State, Status,
    ViAttributes, ViHandle, ViQuery, View, WaitHandle, Work, descriptor,
};
pub use provider::{News, Provider};
pub use udp::host::{encode as encode_host, parse as parse_host};
