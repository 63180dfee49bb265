//! Virtual Interfaces over UDP: the suite, and what is special about that.

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

/// The wire that the suite runs over.
fn wire() -> WireKind {
    let bind = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    WireKind::Udp(UdpOptions { bind, ..UdpOptions::default() })
}

/// A long message is not on it at once.
const TAKES_ALL: bool = false;
/// Nothing is lost on it, as long as both sides look.
const IS_SOUND: bool = true;
/// Memory is the program's own.
const IS_LENT: bool = false;
