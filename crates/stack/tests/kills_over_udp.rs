//! Kills, over UDP: in a process of their own, to count what it holds.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

#[path = "suite/kills.rs"]
mod kills;

use netdyno_stack::am::{Dials, Faults, Wire};

/// The wire that the suite runs over.
const WIRE: Wire = Wire::Udp;
/// What goes wrong on it.
const FAULTS: Faults = Faults::NONE;
/// What it is made to be like.
const DIALS: Dials = Dials::NONE;
