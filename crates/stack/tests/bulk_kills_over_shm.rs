//! Kills during transfers over shared memory. They run in a process of their own, because they count the
//! descriptors and mappings of the process.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

#[path = "suite/bulk_kills.rs"]
mod bulk_kills;

use netdyno_stack::am::{Dials, Faults, Wire};

/// The wire that the suite runs over.
const WIRE: Wire = Wire::Shm;
/// The faults that are injected on the wire.
const FAULTS: Faults = Faults::NONE;
/// The dials of the link.
const DIALS: Dials = Dials::NONE;
