//! Worlds in virtual time.
//!
//! * [`Interface`]: an interface whose parameters are known, the truth that the instrument
//!   must recover.
//! * [`Crowd`]: many such interfaces, between any two of them.
//! * [`network`]: a network that fails in every way. * [`soak`]: what must hold on it.
//! * [`switch`]: a switch with finite queues between many hosts.

mod crowd;
mod interface;
pub mod network;
pub mod random;
pub mod soak;
pub mod switch;
mod truth;

pub use crowd::Crowd;
pub use interface::{Interface, Stuck};
pub use truth::{Change, Truth, TruthError};
