//! Parses any bytes as a memory key. They are refused, or encode to the same bytes again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use netdyno_protocol::frame::memory_key::{LONGEST, MemoryKey};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(key) = MemoryKey::parse(bytes) {
        assert_eq!(key.encode(), bytes);
        // Bounds checks add to the length, and these sums must not overflow.
        assert!(key.len <= LONGEST);
    }
});
