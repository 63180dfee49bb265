//! `libvipl.so`: the programming interface of the Virtual Interface Architecture (VIPL 1.0) for C
//! programs, over the software provider of [`netdyno_stack::vi`].
//!
//! ```text
//!   program's threads                                progress thread, one for each NIC
//!        |  VipPostSend, VipRecvDone, ...                 |  makes progress when the program does not call
//!        v                                                v
//!   skin: checks arguments ----> a lock for each NIC: Provider <---- handlers are called from here,
//!        |                            ^                               without the lock
//!        v                            |
//!   waiting: spins, then sleeps ------+  a sleeper is woken by the wire, and by a thread that
//!                                        has done something the sleeper waits for
//! ```
//!
//! The provider implements the functions. This crate adds the C side:
//!
//! * `abi`: the structures of C. `handle`: handles that can be checked.
//! * `nic`: the NICs of the process, their progress threads, and the handlers that these call.
//! * `waiting`, `wakeup`: waiting for a completion. `signals`: signals belong to the program.
//! * `process`: closes NICs when the process exits, and disowns them in a child after a fork.
//! * `names`: host names. `settings`: environment variables and device names.
//! * `skin`: the functions of `vipl.h`.
//!
//! docs/vipl.md lists the choices where the specification leaves some.

mod abi;
mod handle;
mod names;
mod nic;
mod process;
mod settings;
mod skin;
mod waiting;
mod wakeup;
