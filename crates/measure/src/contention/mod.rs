//! Contention (Culler et al. 1996, "Validation of communication scaling" and table 5): the round trip,
//! overheads and gap of a pair while other pairs communicate.
//!
//! * [`step`]: the joint activity of several processes: assignments and counts.
//! * [`member`]: the trait of a requester with several peers.
//! * [`performer`]: a requester in a step, one call at a time. [`cues`]: a step from beginning to end.
//! * [`places`]: the order of the processes by host and processor.
//! * [`direct`]: the steps of one launch. [`data`]: its measurements.
//! * [`extract`]: figures and parameters computed from several launches. [`doubts`]: warnings about them.
//! * [`record`]: the record of the verb.

pub mod cues;
pub mod data;
pub mod direct;
pub mod doubts;
pub mod extract;
pub mod member;
pub mod performer;
pub mod places;
pub mod record;
pub mod step;
