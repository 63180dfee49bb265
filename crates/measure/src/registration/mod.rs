//! Registration: the cost of registering memory with a layer, over the size of the region. The cost of
//! locking it with the operating system serves as a comparison (Speight et al. 1999, sections 2.2 and 5.5,
//! figure 10).
//!
//! * [`pattern`]: the procedure of one launch. [`data`]: its measurements.
//! * [`extract`]: figures computed from several launches. [`record`]: the record of the verb.
//! * [`doubts`]: warnings about the figures.

pub mod data;
pub mod doubts;
pub mod extract;
pub mod pattern;
pub mod record;
