//! The suite over a network that loses, duplicates, reorders and corrupts datagrams.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

#[path = "suite/bulk.rs"]
mod bulk;
#[path = "suite/bulk_refusals.rs"]
mod bulk_refusals;
#[path = "suite/delivery.rs"]
mod delivery;
#[path = "suite/flow.rs"]
mod flow;
#[path = "suite/loss.rs"]
mod loss;
#[path = "suite/pauses.rs"]
mod pauses;
#[path = "suite/processes.rs"]
mod processes;

use netdyno_stack::am::{Dials, Faults, Wire};

/// The wire that the suite runs over.
const WIRE: Wire = Wire::Udp;
/// The faults that are injected on the wire.
const FAULTS: Faults = Faults { loss: 0.05, duplicate: 0.02, reorder: 0.05, corrupt: 0.01, burst: 0.0 };
/// The dials of the link.
const DIALS: Dials = Dials::NONE;
