//! The LogP signature (Culler et al. 1996, "Small-message performance").
//!
//! * [`pattern`]: the procedure of one launch. [`data`]: its measurements, batch by batch.
//! * `send_overhead`: o_s from bursts of requests alone. `estimate`: the parameters of one launch.
//! * `launches`: several launches. [`extract`]: the parameters over all of them.
//! * [`doubts`]: warnings about the parameters.
//! * [`record`]: the record of the verb.
//! * [`ratio`]: ratios of two layers, paired by launch.

pub mod data;
pub mod doubts;
mod estimate;
pub mod extract;
mod launches;
pub mod pattern;
pub mod ratio;
pub mod record;
pub(crate) mod send_overhead;
