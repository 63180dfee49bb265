//! Bulk transfers: the parameters as functions of the message's size (Culler et al. 1996,
//! "Bulk-transfer microbenchmark"; LogGP, Alexandrov et al. 1995).
//!
//! * [`pattern`]: what one launch runs. * [`search`]: at which sizes.
//! * [`data`]: what it measured. * [`extract`]: what is read off launches.
//! * [`record`]: what is found. * [`doubts`]: why not to take it at its word.

pub mod data;
pub mod doubts;
pub mod extract;
mod fit;
pub mod pattern;
pub mod record;
pub mod search;
