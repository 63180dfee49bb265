//! Parses any words as the head of a message between VIs, and as a verdict on a message. Both pack to the
//! same words again. The number of a message is found from its low 32 bits.
#![no_main]

use libfuzzer_sys::fuzz_target;
use netdyno_protocol::frame::vi_message::{Head, Verdict, WORDS, number_of};

fuzz_target!(|input: ([u64; WORDS], u64)| {
    let (words, last) = input;
    if let Ok(head) = Head::parse(words) {
        assert_eq!(head.pack(), words);
        assert!(Verdict::parse(words[0]).is_err(), "both a head and a verdict");
    }
    if let Ok(verdict) = Verdict::parse(words[0]) {
        assert_eq!(verdict.pack(), words[0]);
        if let Some(number) = number_of(last, verdict.number) {
            assert!(number <= last && number as u32 == verdict.number);
        }
    }
});
