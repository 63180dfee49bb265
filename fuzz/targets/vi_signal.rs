//! Parses any bytes as a signal between providers. A signal encodes to the same bytes again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use netdyno_protocol::frame::vi_fragment;
use netdyno_protocol::frame::vi_signal::{HEADER_LEN, Signal};

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    if bytes.len() >= HEADER_LEN {
        // The same bytes with a valid checksum, which signals and fragments have in common.
        let mut sealed = bytes.to_vec();
        vi_fragment::seal(&mut sealed);
        check(&sealed);
    }
});

fn check(bytes: &[u8]) {
    if let Ok(signal) = Signal::parse(bytes) {
        assert_eq!(signal.encode(), bytes);
    }
}
