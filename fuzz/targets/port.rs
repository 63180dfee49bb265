//! Parses any bytes as the address of a port. They are refused, or encode to the same bytes again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use netdyno_protocol::frame::port::{PortAddress, medium_is_valid, window_is_valid};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(address) = PortAddress::parse(bytes) {
        assert_eq!(address.encode(), bytes);
        // These values determine a memory layout. It must not divide by zero, nor take all memory.
        assert!(window_is_valid(address.window) && medium_is_valid(address.medium_bytes));
    }
});
