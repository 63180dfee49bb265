//! One-sided operations: a process puts bytes into the memory of another one and gets bytes from there
//! (Speight et al. 1999, section 2; Culler et al. 1996, "Bulk transfers").
//!
//! * [`pattern`]: the procedure of one launch. [`data`]: its measurements.
//! * [`extract`]: figures computed from several launches. [`record`]: the record of the verb.
//! * [`doubts`]: warnings about the figures. `missing`: the warning about operations that the layer does not have.

pub mod data;
pub mod doubts;
pub mod extract;
pub(crate) mod missing;
pub mod pattern;
pub mod record;
