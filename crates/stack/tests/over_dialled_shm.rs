//! The suite over shared memory, with dials that make it a slow link.

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

use netdyno_stack::am::{Dial, Dials, Faults, Setting, Wire};

/// The wire that the suite runs over.
const WIRE: Wire = Wire::Shm;
/// The faults that are injected on the wire.
const FAULTS: Faults = Faults::NONE;
/// The dials of the link.
const DIALS: Dials = Dials::NONE
    .with(Dial::Latency, Setting::Add(3_000.0))
    .with(Dial::SendOverhead, Setting::Add(100.0))
    .with(Dial::RecvOverhead, Setting::Add(100.0))
    .with(Dial::SendGap, Setting::Set(400.0))
    .with(Dial::RecvGap, Setting::Set(300.0))
    .with(Dial::GapPerByte, Setting::Set(0.05));
