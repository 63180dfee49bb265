//! Kills, with Virtual Interfaces over UDP. They run in a process of their own, because they count what
//! the process holds.

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

/// The end of a peer is noticed after a silence of this length.
const PEER_TIMEOUT: Duration = Duration::from_millis(1500);

/// Returns the wire that the suite runs over.
fn wire() -> WireKind {
    let bind = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    WireKind::Udp(UdpOptions::new().bind(bind).peer_timeout(PEER_TIMEOUT))
}
/// Whether the provider allocates the memory, so that peers can map it (zero-copy).
const IS_LENT: bool = false;
