//! The breakdown of a message: the cost of each step of an operation, the operation as a whole, and the part that no
//! step explains (von Eicken et al. 1994, section 3 and its tables of costs).
//!
//! * [`anatomy`]: what a layer can do in parts, and how the steps follow. [`pattern`]: the procedure of one launch.
//!   [`data`]: its measurements.
//! * [`extract`]: figures computed from several launches. [`record`]: the record of the verb.
//! * [`doubts`]: warnings about the figures.

pub mod anatomy;
pub mod data;
pub mod doubts;
pub mod extract;
pub mod pattern;
pub mod record;
