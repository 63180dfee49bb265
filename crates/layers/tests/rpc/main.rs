//! Remote procedure calls against clients and servers that were not written with the layers' code: bytes that
//! are written out by hand from RFC 5531, and a program in C over libtirpc.

#![allow(clippy::unwrap_used, reason = "a test")]

mod client;
mod common;
mod libtirpc;
mod server;
