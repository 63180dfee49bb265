//! Tests of the whole provider, on hosts in one process and over a simulated wire.

#![allow(clippy::unwrap_used, reason = "a test")]

mod conformance;
mod model;
mod over_connection;
mod programs;
mod world;
