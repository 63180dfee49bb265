//! Any bytes as a port's address: refused, or encoded back to the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use netdyno_protocol::frame::port::{PortAddress, medium_is_valid, window_is_valid};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(address) = PortAddress::parse(bytes) {
        assert_eq!(address.encode(), bytes);
        // What is laid out by these neither divides by zero nor takes all memory.
        assert!(window_is_valid(address.window) && medium_is_valid(address.medium_bytes));
    }
});
