//! Kills, with Virtual Interfaces over shared memory. They run in a process of their own, because they
//! count what the process holds.

#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "vi/common.rs"]
mod common;
#[path = "vi/end.rs"]
mod end;
#[path = "vi/kills.rs"]
mod kills;

use netdyno_stack::vi::WireKind;
use std::time::Duration;

/// The kernel reports the end of a peer at once.
const PEER_TIMEOUT: Duration = Duration::from_secs(1);

/// Returns the wire that the suite runs over.
fn wire() -> WireKind {
    WireKind::Shm
}
/// Whether the provider allocates the memory, so that peers can map it (zero-copy). Receivers then copy long
/// messages themselves.
const IS_LENT: bool = true;
