//! Completion: latency and bandwidth by size, by the layer's way to wait (Speight et al. 1999, section 4).
//!
//! * [`pattern`]: the procedure of one launch. [`data`]: its measurements.
//! * [`extract`]: figures computed from several launches. [`record`]: the record of the verb.
//! * [`peak`]: the peak that bandwidth is compared with. `copy`: the peak of layers within a host.
//! * [`doubts`]: warnings about the figures. [`ways`]: the ways to wait of one layer against each other.
//! * [`spin_time`]: the best time to spin before blocking.

mod copy;
pub mod data;
pub mod doubts;
pub mod extract;
pub mod pattern;
pub mod peak;
pub mod record;
pub mod spin_time;
pub mod ways;
