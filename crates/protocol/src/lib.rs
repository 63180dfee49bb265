//! The pure rules of netdyno: what bytes mean, who may send when, and how an
//! interface with known parameters behaves.
//!
//! Nothing here reads a clock, a socket or a random source: time, randomness and
//! input are arguments. That is what lets one code be driven by a seeded simulator
//! in virtual time and by a real wire.
//!
//! * [`frame`]: the byte formats, one file a format, strict in what they accept.
//! * [`am`]: the request/reply rules of Active Messages: credits and completion.
//! * [`reliability`]: exactly once over a network that loses.
//! * [`dial`]: what the dials of a link do to a message.
//! * [`faults`]: what a bad network does to datagrams.
//! * [`vi`]: Virtual Interfaces: states, descriptors, protection, completion.
//! * [`sim`]: an interface of known `o_s`, `o_r`, `g`, `L` in virtual time.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod am;
pub mod dial;
pub mod faults;
pub mod frame;
mod quantity;
pub mod reliability;
pub mod sim;
pub mod vi;
