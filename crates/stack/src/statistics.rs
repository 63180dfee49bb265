//! Counters of the traffic with peers over UDP.

use netdyno_protocol::reliability::{Connection, Counters};

/// The traffic between this process and one peer over UDP, and the memory of their connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerStatistics {
    /// Counts of messages and acknowledgements.
    pub counters: Counters,
    /// Memory that the connection holds now, in bytes.
    pub memory_bytes: usize,
}

impl PeerStatistics {
    pub(crate) fn of(connection: &Connection) -> Self {
        Self { counters: connection.counters(), memory_bytes: connection.memory_bytes() }
    }
}

/// Counts of received datagrams that belong to no peer, and of own datagrams that were never sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Strays {
    /// Received datagrams that carry the number of a connection, but whose format, checksum or content
    /// is wrong.
    pub malformed: u64,
    /// Received datagrams that belong to no connection, or come from another address than the peer's.
    pub foreign: u64,
    /// Datagrams of this process that the system refused to send.
    pub refused: u64,
    /// Datagrams of this process that the kernel's protocols have sent, though the wire is AF_XDP.
    pub by_kernel: u64,
}

impl Strays {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            malformed: self.malformed + other.malformed,
            foreign: self.foreign + other.foreign,
            refused: self.refused + other.refused,
            by_kernel: self.by_kernel + other.by_kernel,
        }
    }
}
