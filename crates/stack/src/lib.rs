//! netdyno's own communication stack: Active Messages endpoints ([`am`]) and Virtual Interfaces
//! ([`vi`]) over its wires.

pub mod am;
mod clock;
mod statistics;
pub mod vi;
