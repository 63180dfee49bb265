//! The suite of Virtual Interfaces over UDP, and tests for UDP alone.

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
#[path = "vi/hostile.rs"]
mod hostile;
#[path = "vi/operations.rs"]
mod operations;
#[path = "vi/processes.rs"]
mod processes;
#[path = "vi/protection.rs"]
mod protection;
#[path = "vi/udp.rs"]
mod udp;

use netdyno_stack::vi::{UdpOptions, WireKind};
use std::net::{Ipv4Addr, SocketAddr};

/// Returns the wire that the suite runs over.
fn wire() -> WireKind {
    let bind = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    WireKind::Udp(UdpOptions::new().bind(bind))
}

/// Whether the wire takes a message of any length at once.
const TAKES_ALL: bool = false;
/// Whether the wire loses no message, as long as both sides poll.
const IS_SOUND: bool = true;
/// Whether the provider allocates the memory, so that peers can map it (zero-copy).
const IS_LENT: bool = false;
