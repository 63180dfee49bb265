//! Virtual Interfaces over shared memory: the suite, with memory that peers may be let read.

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
#[path = "vi/lent.rs"]
mod lent;
#[path = "vi/operations.rs"]
mod operations;
#[path = "vi/processes.rs"]
mod processes;

use netdyno_stack::vi::WireKind;

/// The wire that the suite runs over.
fn wire() -> WireKind {
    WireKind::Shm
}

/// A message of any length is on it at once.
const TAKES_ALL: bool = true;
/// Nothing is lost on it.
const IS_SOUND: bool = true;
/// Memory is the provider's.
const IS_LENT: bool = true;
