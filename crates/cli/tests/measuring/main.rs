//! The command measures. Some of these tests have the processors for themselves (`alone`).

#![allow(clippy::unwrap_used, reason = "a test")]

mod across;
mod apparatus;
mod breakdown;
mod browser;
mod calls;
#[path = "../common/mod.rs"]
mod common;
mod completion;
mod crashes;
mod growth;
mod hosts;
mod jobs;
mod killed_ranks;
mod launchers;
mod layers;
mod leftovers;
mod libraries;
mod memory;
mod mpi;
mod namespaces;
mod plugin;
mod progress;
