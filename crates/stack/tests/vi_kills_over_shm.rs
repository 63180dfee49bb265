//! Kills, with Virtual Interfaces over shared memory: in a process of their own, to count what it
//! holds.

#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "vi/common.rs"]
mod common;
#[path = "vi/end.rs"]
mod end;
#[path = "vi/kills.rs"]
mod kills;

use netdyno_stack::vi::WireKind;
use std::time::Duration;

/// The kernel tells of the end of a peer at once.
const PEER_TIMEOUT: Duration = Duration::from_secs(1);

/// The wire that the suite runs over.
fn wire() -> WireKind {
    WireKind::Shm
}
/// Memory is the provider's, so that long messages are copied by whoever they are sent to.
const IS_LENT: bool = true;
