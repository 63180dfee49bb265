//! Parses any bytes as a fragment of a message between unreliable VIs. A fragment encodes to the same bytes
//! again, and lies within its message.
#![no_main]

use libfuzzer_sys::fuzz_target;
use netdyno_protocol::frame::vi_fragment::{self, Fragment, HEADER_LEN};

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    if bytes.len() >= HEADER_LEN {
        // The same bytes with a valid checksum.
        let mut sealed = bytes.to_vec();
        vi_fragment::seal(&mut sealed);
        check(&sealed);
    }
});

fn check(bytes: &[u8]) {
    let Ok(Fragment { connection, head, at, payload }) = vi_fragment::parse(bytes) else { return };
    let end = u64::from(at) + payload.len() as u64;
    assert!(end <= head.len.into(), "behind the end of its message");
    let mut again = Vec::new();
    vi_fragment::write(connection, &head, at, &mut again);
    again.extend_from_slice(payload);
    vi_fragment::seal(&mut again);
    assert_eq!(again, bytes);
}
