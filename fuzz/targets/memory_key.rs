//! Any bytes as the key of a memory: refused, or encoded back to the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use netdyno_protocol::frame::memory_key::{LONGEST, MemoryKey};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(key) = MemoryKey::parse(bytes) {
        assert_eq!(key.encode(), bytes);
        // Bounds are checked by sums that must not overflow.
        assert!(key.len <= LONGEST);
    }
});
