//! The LogP signature (Culler et al. 1996, "Small-message performance").
//!
//! * [`data`]: what one launch measured, batch by batch.
//! * [`pattern`]: what one launch runs.
//! * [`extract`]: the parameters read off several launches.
//! * [`doubts`]: why not to take them at their word.
//! * [`ratio`]: layers against each other, paired by launch.

pub mod data;
pub mod doubts;
pub mod extract;
pub mod pattern;
pub mod ratio;
