//! Registration: what it costs to have a layer know memory, against the size of the region, beside
//! what it costs to have the system lock it (Speight et al. 1999, sections 2.2 and 5.5, figure 10).
//!
//! * [`pattern`]: what one launch runs. * [`data`]: what it measured.
//! * [`extract`]: what is read off launches. * [`record`]: what is found.
//! * [`doubts`]: why not to take it at its word.

pub mod data;
pub mod doubts;
pub mod extract;
pub mod pattern;
pub mod record;
