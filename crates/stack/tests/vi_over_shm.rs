//! The suite of Virtual Interfaces over shared memory.

#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "vi/common.rs"]
mod common;
#[path = "vi/connecting.rs"]
mod connecting;
#[path = "vi/end.rs"]
mod end;
#[path = "vi/ending.rs"]
mod ending;
#[path = "vi/flags.rs"]
mod flags;
#[path = "vi/operations.rs"]
mod operations;
#[path = "vi/processes.rs"]
mod processes;
#[path = "vi/protection.rs"]
mod protection;
#[path = "vi/shm.rs"]
mod shm;
#[path = "vi/stranger.rs"]
mod stranger;
#[path = "vi/strangers.rs"]
mod strangers;

use netdyno_stack::vi::WireKind;

/// Returns the wire that the suite runs over.
fn wire() -> WireKind {
    WireKind::Shm
}

/// Whether the wire takes a message of any length at once.
const TAKES_ALL: bool = true;
/// Whether the wire loses no message.
const IS_SOUND: bool = true;
/// Whether the provider allocates the memory, so that peers can map it (zero-copy).
const IS_LENT: bool = false;
