//! Runs the handshake against an unknown peer that sends any bytes. A side with a key never trusts the peer.
//! A server never sends it a handshake message. No side reads more bytes than the handshake has.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use netdyno_job::greeting::{self, Greeting, NONCE_LEN, Part, Version};
use netdyno_job::handshake::{HandshakeError, MESSAGE_LEN, shake};
use netdyno_job::key::Key;
use std::io::{self, Read, Write};

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    is_client: bool,
    has_key: bool,
    nonce: [u8; NONCE_LEN],
    says: &'a [u8],
}

fuzz_target!(|input: Input<'_>| {
    if let Some(bytes) = input.says.first_chunk()
        && let Some(greeting) = Greeting::parse(bytes)
    {
        assert_eq!(greeting.encode(), *bytes);
    }
    let part = if input.is_client { Part::Client } else { Part::Server };
    let key = input.has_key.then(|| Key::new("a key that no input knows").expect("long enough"));
    // The version is fixed, so that the inputs of the corpus keep their meaning.
    let version = Version::new(b"0.1.0").expect("it can be one");
    let ours = Greeting { version, nonce: input.nonce, part, has_key: input.has_key };
    let mut stranger = Stranger { says: input.says, said: 0, heard: 0 };
    let end = shake(&mut stranger, &ours, key.as_ref());
    assert!(stranger.said <= greeting::LEN + MESSAGE_LEN);
    match end {
        Ok(_) => {
            // Without a key, a stranger may know the server's nonce and compute a valid message.
            assert!(!input.has_key && !input.is_client, "a stranger was trusted");
            let theirs = input.says.first_chunk().and_then(Greeting::parse).expect("it greeted");
            assert!(theirs.part != part && !theirs.has_key && theirs.version == version);
        }
        // The client sends its message first. The message is valid only for these two greetings.
        Err(HandshakeError::WrongKey | HandshakeError::Unproved) if input.is_client => {
            assert_eq!(stranger.heard, greeting::LEN + MESSAGE_LEN);
        }
        Err(_) => assert!(stranger.heard <= greeting::LEN),
    }
});

/// The unknown peer. It counts the bytes that were read from it and written to it.
struct Stranger<'a> {
    says: &'a [u8],
    said: usize,
    heard: usize,
}

impl Read for Stranger<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let len = self.says.read(room)?;
        self.said += len;
        Ok(len)
    }
}

impl Write for Stranger<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.heard += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
