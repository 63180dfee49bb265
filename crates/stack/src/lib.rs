//! netdyno's own communication stack: Active Messages endpoints ([`am`]) and Virtual Interfaces
//! ([`vi`]), each over shared memory and over UDP.

pub mod am;
mod statistics;
mod udp;
pub mod vi;
