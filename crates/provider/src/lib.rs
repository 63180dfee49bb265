//! A libfabric provider over the stack's Virtual Interfaces: an unmodified MPI program runs over shared memory within a
//! host and over UDP between hosts.
//!
//! ```text
//! skin      the objects and functions of libfabric; a lock around each domain
//! engine    the message protocol: eager and rendezvous, RDMA, flow control, completions
//!  matching which receive takes which message
//! links     Virtual Interfaces, made when a peer is first used; copies between processes
//! ```
//!
//! The engine does no I/O. Its tests connect two engines in one process.

mod engine;
mod frame;
mod links;
mod matching;
mod memory;
mod skin;

use netdyno_libfabric as abi;

pub use skin::fi_prov_ini;
