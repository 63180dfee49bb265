//! What a survivor is to know of a killed peer, and when.

use crate::WIRE;
use netdyno_stack::am::{Loss, Wire};
use std::time::Duration;

/// The survivor knows within this time, whatever the machine does besides.
pub const BOUND: Duration = Duration::from_secs(5);
/// Over shared memory an end is seen, and is not to be taken for a silence. Over UDP it is
/// one, after this time, while something is waited for.
pub const PEER_TIMEOUT: Duration = match WIRE {
    Wire::Shm => Duration::from_secs(20),
    Wire::Udp => Duration::from_millis(1500),
};
/// As what it is reported.
pub const LOSS: Loss = match WIRE {
    Wire::Shm => Loss::Ended,
    Wire::Udp => Loss::Silent(PEER_TIMEOUT),
};
