//! The overlap of computation and messages, and its costs: COMB (Brightwell et al. 2003), and the most work
//! that is free.

mod cells;
pub mod data;
pub mod doubts;
pub mod extract;
mod finding;
mod knee;
mod launches;
pub mod pattern;
pub mod plan;
mod progress;
pub mod record;
mod worker;
