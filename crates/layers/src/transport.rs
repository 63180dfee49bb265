//! The counters of netdyno's own stack, as a record has them.

use netdyno_measure::logp::data::Transport;
use netdyno_stack::am::{PeerStatistics, Strays};

/// Returns the counters of a connection, and of the datagrams that belong to no connection.
pub(crate) fn counters(peer: PeerStatistics, strays: Strays) -> Transport {
    let PeerStatistics { counters, memory_bytes, .. } = peer;
    let Strays { malformed, foreign, refused, by_kernel, .. } = strays;
    Transport {
        sent: counters.sent,
        retransmitted: counters.retransmitted,
        acknowledgements: counters.acknowledgements,
        duplicates: counters.duplicates,
        malformed,
        foreign,
        refused,
        by_kernel,
        memory_bytes,
    }
}
