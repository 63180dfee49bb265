//! Parses any bytes as a datagram. They are refused, or encode to the same bytes again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use netdyno_fuzz::datagram::encoded;
use netdyno_protocol::frame::datagram::{Arrived, HEADER_LEN, connection_of, parse, stamp};

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    // Almost all inputs fail the checksum. With a valid one they reach the later checks.
    if let Some(stamped) = stamped(bytes) {
        check(&stamped);
    }
});

fn check(bytes: &[u8]) {
    let Ok(parsed) = parse(bytes) else { return };
    let (words, others) = parsed.words.split_at(parsed.word_count.into());
    assert_eq!(encoded(&parsed.header, words, parsed.payload), bytes);
    assert_eq!(parsed.bytes, bytes);
    assert_eq!(connection_of(bytes), Some(parsed.header.connection));
    assert!(others.iter().all(|&word| word == 0));
    assert!(parsed.header.kind.is_message() || bytes.len() == HEADER_LEN);
}

/// Returns the bytes with a valid checksum.
fn stamped(bytes: &[u8]) -> Option<Vec<u8>> {
    let field = |from: usize, len: usize| {
        bytes[from..from + len].iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
    };
    if bytes.len() < HEADER_LEN {
        return None;
    }
    let arrived = Arrived {
        expected: field(20, 4) as u32,
        selective: field(24, 8),
        latest: field(36, 2) as u16,
        is_stale: field(38, 1) & 1 != 0,
        granted: field(38, 1) as u8 >> 1,
    };
    let mut stamped = bytes.to_vec();
    stamp(&mut stamped, field(16, 4) as u32, field(34, 2) as u16, arrived);
    assert_eq!(stamped[4..], bytes[4..]);
    Some(stamped)
}
