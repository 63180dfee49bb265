//! The command without a layer of this machine: simulated measurements, saved records, help, bad input.

#![allow(clippy::unwrap_used, reason = "a test")]

mod breakdown;
mod bulk;
#[path = "../common/mod.rs"]
mod common;
mod compare;
mod completion;
mod contention;
mod export;
mod found;
mod memory;
mod onesided;
mod overlap;
mod registration;
mod results;
mod schemas;
mod signals;
mod usage;
mod utilisation;
