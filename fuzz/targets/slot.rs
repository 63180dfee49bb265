//! Parses any word as the header of a slot. It is refused for a reason, or packs to the same bits again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use netdyno_protocol::frame::slot::{Header, MAX_WORDS, sequence_of};

fuzz_target!(|raw: u64| {
    let (kind, words) = (raw >> 56 & 0xf, raw >> 60);
    match Header::parse(raw) {
        Ok(header) => {
            assert_eq!(header.pack(), raw);
            assert_eq!(header.sequence, sequence_of(raw));
            assert!(usize::from(header.words) <= MAX_WORDS);
        }
        Err(_) => assert!(kind > 12 || words > MAX_WORDS as u64),
    }
});
