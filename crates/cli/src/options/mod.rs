//! Options that several verbs share.

pub mod abilities;
pub mod access;
pub mod bench;
pub mod connect;
pub mod headings;
pub mod once;
pub mod output;
pub mod program;
pub mod values;
