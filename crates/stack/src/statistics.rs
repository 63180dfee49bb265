//! What is counted of the way to a peer over UDP.

use netdyno_protocol::reliability::{Connection, Counters};

/// What happened between this process and one peer, and what their connection holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerStatistics {
    /// Messages and acknowledgements, one by one.
    pub counters: Counters,
    /// Memory that the connection holds now, in bytes.
    pub memory_bytes: usize,
}

impl PeerStatistics {
    pub(crate) fn of(connection: &Connection) -> Self {
        Self { counters: connection.counters(), memory_bytes: connection.memory_bytes() }
    }
}

/// Datagrams that came and were not taken as any peer's, and those that never left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Strays {
    /// Damaged, cut, or not ours at all: they have the number of a connection and not the
    /// form, the checksum or the meaning.
    pub malformed: u64,
    /// Of no connection, or from another address than its peer's.
    pub foreign: u64,
    /// Those of our own that the system would not send.
    pub refused: u64,
}
