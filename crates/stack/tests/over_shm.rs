//! The suite over shared memory, and tests for shared memory alone.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

#[path = "suite/bulk.rs"]
mod bulk;
#[path = "suite/bulk_refusals.rs"]
mod bulk_refusals;
#[path = "shm/connecting.rs"]
mod connecting;
#[path = "suite/delivery.rs"]
mod delivery;
#[path = "suite/flow.rs"]
mod flow;
#[path = "shm/hostile.rs"]
mod hostile;
#[path = "shm/hostile_bulk.rs"]
mod hostile_bulk;
#[path = "suite/loss.rs"]
mod loss;
#[path = "suite/pauses.rs"]
mod pauses;
#[path = "suite/processes.rs"]
mod processes;

use netdyno_stack::am::{Dials, Faults, Wire};

/// The wire that the suite runs over.
const WIRE: Wire = Wire::Shm;
/// The faults that are injected on the wire.
const FAULTS: Faults = Faults::NONE;
/// The dials of the link.
const DIALS: Dials = Dials::NONE;
