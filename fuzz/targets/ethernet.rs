//! Parses any bytes as an Ethernet frame, and what it carries as a datagram of Active Messages and as a fragment and a
//! signal of Virtual Interfaces. A frame is refused, or its headers carry the same datagram again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use netdyno_protocol::frame::ethernet::{Carried, Headers, LinkEnd, parse};
use netdyno_protocol::frame::{datagram, vi_fragment, vi_signal};

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    // Almost all inputs fail the checksum. With a valid one they reach the later checks.
    if let Some(stamped) = stamped(bytes) {
        check(&stamped);
    }
});

fn check(bytes: &[u8]) {
    let Ok(Carried { from, to, payload }) = parse(bytes) else { return };
    let end = |socket| LinkEnd { hardware: [2; 6], socket };
    let headers = Headers::new(end(from), end(to)).of(payload.len()).expect("a length that IP carries");
    let again = [&headers[..], payload].concat();
    assert_eq!(parse(&again), Ok(Carried { from, to, payload }));
    let _ = (datagram::parse(payload), vi_fragment::parse(payload), vi_signal::Signal::parse(payload));
}

/// Returns the frame with a valid checksum of its IP header.
fn stamped(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = bytes.to_vec();
    let header = bytes.get_mut(14..34)?;
    header[10..12].fill(0);
    let sum: u32 = header.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !(((folded & 0xffff) + (folded >> 16)) as u16);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    Some(bytes)
}
