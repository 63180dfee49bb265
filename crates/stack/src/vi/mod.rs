//! Virtual Interfaces of this process (VIA 1.0; Speight, Abdel-Shafi and Bennett 1999): protected
//! communication at user level, without a call of the kernel on the way of the data.
//!
//! A [`Provider`] is what the architecture calls a VI provider: a NIC, and the agent that connects
//! VIs and registers memory. The rules are those of [`netdyno_protocol::vi`]; here is what moves the
//! bytes, one wire or the other ([`WireKind`]):
//!
//! * **Shared memory**: posting writes a line of memory that the peer's process maps, and nothing
//!   enters the kernel. The agent is a Unix socket, and sees to it that only processes of this user
//!   take part.
//! * **UDP**: a NIC in software, which whoever calls the provider drives.
//!
//! A provider does nothing by itself. It makes progress when it is asked for what is done
//! ([`Provider::done`], [`Provider::cq_done`]) or told to ([`Provider::progress`]).
//!
//! A program that has memory of its own sees to it that this stays for as long as it is registered. One
//! that lets a [`Consumer`] have it need not.

mod agent;
mod consumer;
mod local;
mod provider;
mod shm;
mod udp;
mod wire;

pub use crate::statistics::{PeerStatistics, Strays};
pub use consumer::{Consumer, ConsumerError, Finished, PieceId};
pub use netdyno_host::loan::Loan;
pub use netdyno_protocol::faults::Faults;
pub use netdyno_protocol::frame::vi_signal::{Address, Request};
pub use netdyno_protocol::reliability::Counters;
pub use netdyno_protocol::vi::{
    AsyncError, Completed, Completion, ConnHandle, ConnectError, CqError, CqHandle, DescriptorAt, Done,
    Failure, Level, Limits, MemAttributes, MemHandle, MemoryError, NicAttributes, Offer, Operation,
    PostError, Ptag, Region, Remote, Resource, ResourceError, ReturnCode, Segment, Side, State, Status,
    ViAttributes, ViHandle, ViQuery, View, WaitHandle, Work, descriptor,
};
pub use provider::{Config, News, OpenError, Provider, WireKind};
pub use udp::{UDP_PORT, UdpOptions};
