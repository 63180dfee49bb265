//! The whole provider, on hosts in one process and over a wire that does as it is told.

#![allow(clippy::unwrap_used, reason = "a test")]

mod conformance;
mod model;
mod over_connection;
mod programs;
mod world;
