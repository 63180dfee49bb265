//! Options that several verbs share.

pub mod bench;
pub mod help;
pub mod output;
pub mod program;
pub mod values;
