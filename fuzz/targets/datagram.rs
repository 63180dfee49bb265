//! Any bytes as a datagram: refused, or encoded back to the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use netdyno_protocol::frame::datagram::{
    self, Datagram, HEADER_LEN, Header, Kind, LONGEST, connection_of, parse,
};

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    // Nearly all bytes end at the checksum; what comes behind it is to be seen as well.
    if let Some(stamped) = stamped(bytes) {
        check(&stamped);
    }
});

fn check(bytes: &[u8]) {
    let Ok(parsed) = parse(bytes) else { return };
    assert_eq!(encoded(&parsed), bytes);
    assert_eq!(connection_of(bytes), Some(parsed.header.connection));
    let sent = usize::from(parsed.word_count);
    assert!(parsed.words[sent..].iter().all(|&word| word == 0));
    assert!(parsed.header.kind.is_message() || bytes.len() == HEADER_LEN);
}

fn encoded(parsed: &Datagram<'_>) -> Vec<u8> {
    let mut out = [0xee; LONGEST];
    let words = &parsed.words[..usize::from(parsed.word_count)];
    let len = datagram::encode(&parsed.header, words, parsed.payload, &mut out);
    out[..len].to_vec()
}

/// The same bytes with the checksum that they should have.
fn stamped(bytes: &[u8]) -> Option<Vec<u8>> {
    let field = |from: usize, len: usize| {
        bytes[from..from + len].iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
    };
    if bytes.len() < HEADER_LEN {
        return None;
    }
    let header = Header {
        // Neither is written by what follows.
        kind: Kind::Request,
        handler: 0,
        connection: field(8, 8),
        sequence: field(16, 4) as u32,
        acknowledged: field(20, 4) as u32,
        selective: field(24, 8),
        completed: field(32, 2) as u16,
    };
    let mut stamped = bytes.to_vec();
    datagram::restamp(&header, &mut stamped);
    assert_eq!(stamped[4..], bytes[4..]);
    Some(stamped)
}
