//! The rules of netdyno as pure functions: byte formats, protocol rules, and a model of a network interface.
//!
//! Nothing in this crate reads a clock, a socket or a random source. Time, randomness and input are
//! arguments. So a seeded simulator in virtual time and a real transport run the same code.
//!
//! * [`frame`]: the byte formats, one per file. Each parser is strict.
//! * [`am`]: the request/reply rules of Active Messages: credits and completion.
//! * [`global`]: split-phase memory of many ranks over Active Messages.
//! * [`reliability`]: exactly-once delivery over a network that loses datagrams.
//! * [`dial`]: how the dials of a link change the times of a message.
//! * [`faults`]: the fault injector for datagrams.
//! * [`random`]: the seeded random number generator of the fault injector, the dials and the simulators.
//! * [`vi`]: Virtual Interfaces: states, descriptors, protection, completion.
//! * [`sim`]: a simulated interface of known `o_s`, `o_r`, `g` and `L`, in virtual time.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod am;
pub mod dial;
pub mod faults;
pub mod frame;
pub mod global;
pub mod quantity;
pub mod random;
pub mod reliability;
pub mod sim;
pub mod vi;
