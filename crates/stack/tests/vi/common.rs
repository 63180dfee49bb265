//! Modules shared with the tests of Active Messages.

#![allow(dead_code, reason = "each test file uses its part")]

#[path = "../common/patience.rs"]
pub mod patience;
#[path = "../common/process.rs"]
pub mod process;

pub use patience::{Deadline, PATIENCE, seed, until};
