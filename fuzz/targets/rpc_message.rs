//! Parses any bytes as a call and as a reply of ONC RPC. They are refused, or encode to the same bytes again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use netdyno_protocol::frame::rpc_message::{Call, MOST_AUTH_BYTES, Reply};

fuzz_target!(|bytes: &[u8]| {
    let mut out = Vec::new();
    if let Ok(call) = Call::parse(bytes) {
        call.encode(&mut out);
        assert_eq!(out, bytes);
        assert!(call.credential.body.len() <= MOST_AUTH_BYTES && call.verifier.body.len() <= MOST_AUTH_BYTES);
        assert!(Reply::parse(bytes).is_err(), "a message is a call or a reply");
    }
    if let Ok(reply) = Reply::parse(bytes) {
        reply.encode(&mut out);
        assert_eq!(out, bytes);
    }
});
