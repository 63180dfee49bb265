//! The functions that C programs call, by the parts of the interface. Each one checks its arguments, calls the rest of the
//! library and returns a code.
//!
//! A C library cannot check everything. A pointer that is not NULL is trusted to be what `am2.h` says.

mod bundle;
mod endpoint;
mod message;
mod spmd;
mod statistics;
mod translation;
