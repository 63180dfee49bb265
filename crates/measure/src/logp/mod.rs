//! The LogP signature (Culler et al. 1996, "Small-message performance").
//!
//! * [`data`]: what one launch measured, batch by batch.
//! * [`pattern`]: what one launch runs.
//! * [`extract`]: the parameters and doubts read off several launches.

pub mod data;
pub mod extract;
pub mod pattern;
