//! Contention (Culler et al. 1996, "Validation of communication scaling" and table 5): what
//! becomes of a pair's round trip, overheads and gap where others communicate as well.
//!
//! * [`step`]: what processes are asked to do together, and what they answer.
//! * [`member`]: the face that a process with many peers shows.
//! * [`performer`]: what one process does in a step, one call at a time.
//! * [`direct`]: the steps of one launch.
//! * [`data`]: what one launch measured.
//! * [`extract`]: figures and parameters read off several launches.
//! * [`doubts`]: why not to take them at their word.
//! * [`found`]: what the record says.

pub mod data;
pub mod direct;
pub mod doubts;
pub mod extract;
pub mod found;
pub mod member;
pub mod performer;
pub mod step;
