//! What can be measured: each layer behind the faces of `netdyno_measure::layer`.
//!
//! * [`catalogue`]: the layers by name, what each can do, whether it is available here.
//! * [`parameter`]: what some of them are opened with. * [`half`]: how two processes come to share a layer.
//! * [`group`]: how many processes come to share one.
//! * [`real`]: what layers in real time have in common.
//! * `time`: the clock of all of them. * `sized`: layers whose messages can have any size.
//! * `messages`: layers whose processes exchange messages.
//! * [`registrar`]: layers that register memory.
//! * [`crowd`]: many simulated interfaces in one virtual time.
//! * [`am`], `vi`, [`udp`], [`tcp`], [`sim`]: the layers. * [`plugin`]: those written in C, such as MPI.
#![forbid(unsafe_code)]

pub mod am;
pub mod catalogue;
pub mod crowd;
mod exposed;
pub mod group;
pub mod half;
mod messages;
pub mod parameter;
pub mod plugin;
pub mod real;
pub mod registrar;
pub mod sim;
mod sized;
mod socket;
pub mod tcp;
mod time;
pub mod udp;
mod vi;
