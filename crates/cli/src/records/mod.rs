//! Writes records to files and reads them back.

pub mod output;
pub mod saved;
