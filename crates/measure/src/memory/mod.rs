//! Remote memory: read, write and fetch-and-add, blocking and pipelined, of several layers side by side.
//!
//! The launches are those of [`crate::onesided`] at chosen sizes.
//!
//! * [`pattern`]: the procedure of one launch. [`data`]: its measurements.
//! * [`extract`]: figures computed from several launches. [`record`]: the record of the verb.
//! * [`ratio`]: the ratios of layers. [`doubts`]: warnings about the figures.

pub mod data;
pub mod doubts;
pub mod extract;
pub mod pattern;
pub mod ratio;
pub mod record;
