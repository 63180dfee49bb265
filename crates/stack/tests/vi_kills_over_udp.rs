//! Kills, with Virtual Interfaces over UDP: in a process of their own, to count what it holds.

#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "vi/common.rs"]
mod common;
#[path = "vi/end.rs"]
mod end;
#[path = "vi/kills.rs"]
mod kills;

use netdyno_stack::vi::{UdpOptions, WireKind};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// The end of a peer is a silence for so long.
const PEER_TIMEOUT: Duration = Duration::from_millis(1500);

/// The wire that the suite runs over.
fn wire() -> WireKind {
    let bind = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    WireKind::Udp(UdpOptions { bind, peer_timeout: PEER_TIMEOUT, ..UdpOptions::default() })
}
/// Memory is the program's own.
const IS_LENT: bool = false;
