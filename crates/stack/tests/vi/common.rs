//! Modules shared with the tests of Active Messages.

#![allow(dead_code, reason = "each test file uses its part")]

#[path = "../common/process.rs"]
pub mod process;
#[path = "../common/timeout.rs"]
pub mod timeout;

pub use timeout::{Deadline, TIMEOUT, seed, until};
