//! Simulators in virtual time.
//!
//! * [`Interface`]: two processors with network interfaces of known parameters. The instrument must
//!   recover these parameters.
//! * [`Messages`]: two processes that exchange messages. It is known which part of the host moves the
//!   data.
//! * [`memory`]: memory with known costs of registration.
//! * [`OneSided`]: a processor that reads and writes the memory of another one.
//! * [`Crowd`]: many processors with such interfaces, each connected to every other.
//! * [`network`]: a network that loses, duplicates, delays, reorders and damages datagrams.
//! * [`soak`]: the properties that must hold on that network, as a test for one seed at a time.
//! * [`switch`]: a switch with finite queues between many hosts.
//!
//! All of them but `memory` and `OneSided` take their events from one queue (`events`), so ties are broken alike
//! everywhere.

mod crowd;
mod events;
mod interface;
pub mod memory;
mod messages;
pub mod network;
mod noise;
mod one_sided;
mod registration;
pub mod soak;
pub mod switch;
mod truth;
mod values;

pub use crowd::Crowd;
pub use interface::{Interface, ProcessorTime, Stuck};
pub use messages::{Message, Messages};
pub use noise::{Noise, Shape};
pub use one_sided::{Access, OneSided};
pub use registration::Memory;
pub use truth::{Change, Truth};
pub use values::TruthError;
