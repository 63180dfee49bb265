//! The suite over UDP, and tests for UDP alone.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

#[path = "suite/bulk.rs"]
mod bulk;
#[path = "suite/bulk_refusals.rs"]
mod bulk_refusals;
#[path = "udp/connecting.rs"]
mod connecting;
#[path = "suite/delivery.rs"]
mod delivery;
#[path = "suite/flow.rs"]
mod flow;
#[path = "udp/hostile.rs"]
mod hostile;
#[path = "suite/loss.rs"]
mod loss;
#[path = "udp/network.rs"]
mod network;
#[path = "suite/pauses.rs"]
mod pauses;
#[path = "suite/processes.rs"]
mod processes;
#[path = "udp/relay.rs"]
mod relay;

use netdyno_stack::am::{Dials, Faults, Wire};

/// The wire that the suite runs over.
const WIRE: Wire = Wire::Udp;
/// The faults that are injected on the wire.
const FAULTS: Faults = Faults::NONE;
/// The dials of the link.
const DIALS: Dials = Dials::NONE;
