//! The apparatus (León et al. 2002, section 4): dials L, o_s, o_r, g_s, g_r and G under an unmodified
//! program.
//!
//! The library is a hooking provider of libfabric. libfabric loads it (`FI_PROVIDER_PATH`) and passes it
//! every fabric that the program opens (`FI_HOOK=ofi_hook_netdyno`). The fabric object stays the provider's. The
//! hook replaces functions in its tables, and in the tables of the domains, endpoints, completion queues
//! and counters that are opened from it:
//!
//! ```text
//! fabric ──► domain ──► endpoint: send, inject, read, write: overhead, departure, stamp
//!                  └──► completion queue: a message is held until it is due
//! ```
//!
//! [`netdyno_protocol::dial`] defines what the dials mean. This crate only calls it for each message. All
//! endpoints of a process share one emulated network interface.
//!
//! * `patch`: copies and replaces tables of functions.
//! * `hook`: the state of the process: control block, statistics, emulated interface.
//! * `fabric`: hooks fabrics, domains and the objects that they open.
//! * `endpoint`: sends. `onesided`: RMA and atomic operations.
//! * `queue`: receives. `looks`: bounds on when a message arrived. `counter`: counters.
//! * `guard`: keeps panics from leaving functions that C calls. [`fault`]: injected panics.
//! * [`page`]: the control block, written by the command. [`between`]: the ranks that are dialled.
//!   `peers`: the addresses of these ranks. [`account`]: the statistics of a rank.

pub mod account;
pub mod between;
mod counter;
mod endpoint;
mod fabric;
#[cfg(test)]
mod fake_calls;
#[cfg(test)]
mod fakes;
pub mod fault;
mod guard;
mod hook;
mod looks;
pub mod page;
mod patch;
mod peers;
mod queue;

use netdyno_libfabric as abi;
