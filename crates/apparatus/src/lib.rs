//! The apparatus (León et al. 2002, section 4): dials L, o_s, o_r, g_s, g_r and G under a program
//! that knows nothing of it.
//!
//! The library is a hook of libfabric. libfabric loads it (`FI_PROVIDER_PATH`) and gives it every
//! fabric that the program opens (`FI_HOOK=netdyno`). The fabric stays what it is; the hook lets its
//! tables of functions lead here, and those of the domains, endpoints, completion queues and counters
//! that come of it:
//!
//! ```text
//! fabric ──► domain ──► endpoint: send, inject, read, write: overhead, departure, stamp
//!                  └──► completion queue: a message is held until it is due
//! ```
//!
//! What the dials mean is [`netdyno_protocol::dial`]; here is only where messages pass by. All
//! endpoints of a process share one interface.
//!
//! * `abi`: libfabric's structures. * `patch`: exchanging tables. * `hook`: the process's page,
//!   account and interface. * `fabric`: from the fabric to its endpoints. * `endpoint`: sending;
//!   `onesided`: reading and writing the peer's memory. * `queue`: receiving; `looks`: since when a
//!   message may be here; `counter`: what is counted.
//! * `guard`: no panic of the hook's leaves a function that C calls; [`fault`]: panics that are
//!   injected.
//! * [`page`]: what the command asks for. * [`between`]: which ranks that is for; `peers`: where these
//!   are. * [`account`]: what a rank has done.

mod abi;
pub mod account;
pub mod between;
mod counter;
mod endpoint;
mod fabric;
#[cfg(test)]
mod fakes;
pub mod fault;
mod guard;
mod hook;
mod looks;
mod onesided;
pub mod page;
mod patch;
mod peers;
mod queue;
