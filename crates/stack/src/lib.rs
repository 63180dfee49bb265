//! netdyno's own communication stack: Active Messages endpoints over its wires.
//!
//! See [`am`] for the interface and an example.

pub mod am;
