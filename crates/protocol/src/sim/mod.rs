//! Worlds in virtual time.
//!
//! * [`Interface`]: an interface whose parameters are known, the truth that the instrument
//!   must recover.
//! * [`Messages`]: two processes that exchange messages, where it is known who moves the data.
//! * [`memory`]: memory of which it is known what registering costs.
//! * [`Crowd`]: many such interfaces, between any two of them.
//! * [`network`]: a network that fails in every way. * [`soak`]: what must hold on it.
//! * [`switch`]: a switch with finite queues between many hosts.

mod crowd;
mod interface;
pub mod memory;
mod messages;
pub mod network;
mod noise;
pub mod random;
pub mod soak;
pub mod switch;
mod truth;

pub use crowd::Crowd;
pub use interface::{Interface, Stuck};
pub use messages::{Message, Messages};
pub use noise::{Noise, Shape};
pub use truth::{Change, Truth, TruthError};
