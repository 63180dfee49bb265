//! How and when a survivor is told of a killed peer.

use crate::WIRE;
use netdyno_stack::am::{Loss, Wire};
use std::time::Duration;

/// The survivor is told within this time, even on a busy machine.
pub const BOUND: Duration = Duration::from_secs(5);
/// Over shared memory the end of a peer is detected directly, and this timeout is too long to be confused
/// with that. Over UDP the end is a silence of this length while requests are outstanding.
pub const PEER_TIMEOUT: Duration = match WIRE {
    Wire::Shm => Duration::from_secs(20),
    _ => Duration::from_millis(1500),
};
/// The reported reason of the loss.
pub const LOSS: Loss = match WIRE {
    Wire::Shm => Loss::Ended,
    _ => Loss::Silent(PEER_TIMEOUT),
};
