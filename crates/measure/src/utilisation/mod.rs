//! Utilisation: the processor time that messages cost on each side, by size and by the layer's way to wait
//! (Speight et al. 1999, section 4.3 and figure 6).
//!
//! * [`pattern`]: the procedure of one launch. [`data`]: its measurements.
//! * [`extract`]: figures computed from several launches. [`record`]: the record of the verb.
//! * [`doubts`]: warnings about the figures.

pub mod data;
pub mod doubts;
pub mod extract;
pub mod pattern;
pub mod record;
mod resolution;
