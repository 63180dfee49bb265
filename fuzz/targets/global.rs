//! Parses any words and payload as the messages of global memory. They are refused, or encode to the same words again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use netdyno_protocol::global::message::{LONGEST_VALUE, Reply, Request, SEGMENTS, TreeMessage};

fuzz_target!(|input: ([u64; 4], Vec<u8>)| {
    let (words, payload) = (input.0, &input.1[..]);
    if let Ok(request) = Request::parse(words, payload) {
        assert!(request.segment < SEGMENTS);
        assert_eq!(request.encode(), (words, payload));
    }
    if let Ok(reply) = Reply::parse(words, payload) {
        assert_eq!(reply.encode(), (words, payload));
    }
    if let Ok(message) = TreeMessage::parse(words, payload) {
        let ([first, second], value) = message.encode();
        assert_eq!(([first, second, 0, 0], value), (words, payload));
        assert!(value.len() <= LONGEST_VALUE);
    }
});
