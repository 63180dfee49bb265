//! How and when a survivor is told of a killed peer.

use netdyno_stack::am::{Loss, Wire};
use std::time::Duration;

/// The survivor is told within this time, even on a busy machine.
pub const BOUND: Duration = Duration::from_secs(5);

/// Returns the peer timeout. Over shared memory the end of a peer is detected directly, and the timeout is
/// too long to be confused with that. Over UDP the end is a silence of this length while requests are
/// outstanding.
pub fn peer_timeout(wire: Wire) -> Duration {
    match wire {
        Wire::Shm => Duration::from_secs(20),
        _ => Duration::from_millis(1500),
    }
}

/// Returns the reported reason of the loss.
pub fn loss(wire: Wire) -> Loss {
    match wire {
        Wire::Shm => Loss::Ended,
        _ => Loss::Silent(peer_timeout(wire)),
    }
}
