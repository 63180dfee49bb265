//! `libvipl.so`: the programming interface of the Virtual Interface Architecture (VIPL 1.0) for C
//! programs, over the software provider of [`netdyno_stack::vi`].
//!
//! ```text
//!   program's threads                                attendant: one thread a NIC
//!        |  VipPostSend, VipRecvDone, ...                 |  looks where the program does not call
//!        v                                                v
//!   skin: checks arguments ----> one lock a NIC: Provider <---- handlers are called from here,
//!        |                            ^                          with the lock released
//!        v                            |
//!   waiting: spins, then sleeps ------+  who sleeps is woken by the wire, and by whoever has
//!                                        done something for him
//! ```
//!
//! What the functions mean is decided in the provider; here are the C side's types (`abi`), handles
//! that can be checked (`handle`), the NICs of the process (`nic`), waiting (`waiting`, `bell`), the
//! `attendant`, the `callbacks` that it makes, what becomes of NICs when the `process` ends or forks, and
//! names of hosts (`names`). `skin` has the functions.
//! docs/vipl.md has the choices.

mod abi;
mod attendant;
mod bell;
mod callbacks;
mod handle;
mod names;
mod nic;
mod process;
mod settings;
mod skin;
mod waiting;
