//! Programs of which a test kills a rank, for the tests of more than one crate.

#![allow(dead_code, reason = "each test binary uses a part")]

pub mod installed;
pub mod launched;
pub mod shared_memory;
pub mod work;
