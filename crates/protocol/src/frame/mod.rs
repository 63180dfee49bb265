//! The byte formats, one per file. Every parser takes bytes from outside and returns a value or an error. No
//! parser panics.

pub mod datagram;
pub mod ethernet;
pub mod memory_key;
pub mod port;
pub mod rpc_message;
pub mod rpc_record;
pub mod slot;
pub mod transfer;
pub mod udp_port;
pub mod vi_fragment;
pub mod vi_lending;
pub mod vi_message;
pub mod vi_signal;
pub mod xdr;
