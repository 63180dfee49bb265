//! Launching processes and talking to them: a crew of own children and of workers on other
//! hosts, each with a control connection on its standard input.
//!
//! * [`frame`]: messages on a control connection.
//! * [`crew`]: the side that launches.
//! * [`member`]: the side that is launched.
//! * [`key`], [`greeting`], [`handshake`], [`remote`]: control connections between hosts.
//!
//! Nothing outlives the side that launches: its end closes the connections, and the
//! kernel kills its children.
#![forbid(unsafe_code)]

pub mod crew;
pub mod frame;
pub mod greeting;
pub mod handshake;
pub mod key;
pub mod member;
pub mod remote;
