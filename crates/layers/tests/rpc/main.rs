//! Remote procedure calls against clients and servers that were not written with the layers' code: bytes that
//! are written out by hand from RFC 5531, a program in C over libtirpc, and programs in Python over grpcio.

#![allow(clippy::unwrap_used, reason = "a test")]

mod client;
mod common;
#[cfg(feature = "grpc")]
mod grpc;
mod libtirpc;
mod lossy;
mod server;
