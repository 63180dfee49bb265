//! Virtual Interfaces over a network that loses, duplicates, reorders and corrupts datagrams.

#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "vi/common.rs"]
mod common;
#[path = "vi/connecting.rs"]
mod connecting;
#[path = "vi/end.rs"]
mod end;
#[path = "vi/ending.rs"]
mod ending;
#[path = "vi/operations.rs"]
mod operations;
#[path = "vi/processes.rs"]
mod processes;
#[path = "vi/protection.rs"]
mod protection;

use netdyno_stack::vi::{Faults, UdpOptions, WireKind};
use std::net::{Ipv4Addr, SocketAddr};

/// The faults that are injected on the wire.
const FAULTS: Faults = Faults { loss: 0.05, duplicate: 0.02, reorder: 0.05, corrupt: 0.01, burst: 0.0 };

/// Seeds with which a test has failed once, with the test.
const KEPT: &[(u64, fn())] = &[
    // A late copy of a rejected request reached the next program that waited.
    (7070276938517440111, connecting::a_request_is_rejected),
];

#[test]
fn seeds_that_failed_once() {
    for (seed, test) in KEPT {
        common::timeout::with_seed(*seed, test);
    }
}

/// Returns the wire that the suite runs over.
fn wire() -> WireKind {
    let bind = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    WireKind::Udp(UdpOptions::new().bind(bind).faults(FAULTS).seed(common::seed()))
}

/// Whether the wire takes a message of any length at once.
const TAKES_ALL: bool = false;
/// Whether the wire loses no message.
const IS_SOUND: bool = false;
/// Whether the provider allocates the memory, so that peers can map it (zero-copy).
const IS_LENT: bool = false;
