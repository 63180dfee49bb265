//! Records on their way to files and back.

pub mod output;
pub mod saved;
