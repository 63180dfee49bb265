//! An interface whose parameters are known, in virtual time: the truth that the
//! instrument must recover.

mod interface;
mod random;
mod truth;

pub use interface::{Interface, Stuck};
pub use truth::{Truth, TruthError};
