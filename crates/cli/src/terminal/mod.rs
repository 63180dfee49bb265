//! The messages of the command besides its results: errors, notes, progress; and the signals that end it.

pub mod fault;
pub mod interrupt;
pub mod progress;
pub mod voice;
