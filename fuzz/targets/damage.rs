//! Encodes a valid datagram. It parses to the same content, and is refused after it was damaged.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use netdyno_fuzz::datagram::{Fields, encoded};
use netdyno_protocol::frame::datagram::{HEADER_LEN, LONGEST, STAMP_LEN, parse};
use netdyno_protocol::frame::slot::MAX_WORDS;

#[derive(Arbitrary, Debug)]
struct Message {
    fields: Fields,
    words: Vec<u64>,
    payload: Vec<u8>,
}

#[derive(Arbitrary, Debug)]
struct Damage {
    flips: Vec<(u16, u8)>,
    cut: Option<u16>,
    tail: Vec<u8>,
}

fuzz_target!(|input: (u64, Message, Damage)| {
    let (connection, message, damage) = input;
    // By chance a checksum of 32 bits misses damage once in 2^32 times, and this target runs often. Damage
    // that is missed for three connections is not missed by chance.
    let others = [connection, !connection, connection.wrapping_add(0x0123_4567_89ab_cdef)];
    let unnoticed = others.map(|connection| {
        let whole = message.encoded(connection);
        let damaged = damage.done_to(&whole);
        damaged != whole && parse(&damaged).is_ok()
    });
    assert_ne!(unnoticed, [true; 3]);
});

impl Message {
    /// Returns the message as a datagram. Checks that the datagram parses to the same content.
    fn encoded(&self, connection: u64) -> Vec<u8> {
        let header = self.fields.header(connection);
        let (words, payload) = if header.kind.is_message() {
            let words = &self.words[..self.words.len().min(MAX_WORDS)];
            let stamp = if header.departed.is_some() { STAMP_LEN } else { 0 };
            let room = LONGEST - HEADER_LEN - stamp - 8 * words.len();
            (words, &self.payload[..self.payload.len().min(room)])
        } else {
            Default::default()
        };
        let bytes = encoded(&header, words, payload);
        let parsed = parse(&bytes).expect("a datagram of ours");
        assert_eq!(parsed.header, header);
        assert_eq!(&parsed.words[..usize::from(parsed.word_count)], words);
        assert_eq!(parsed.payload, payload);
        bytes
    }
}

impl Damage {
    fn done_to(&self, whole: &[u8]) -> Vec<u8> {
        let mut bytes = whole.to_vec();
        for &(at, bits) in &self.flips {
            bytes[usize::from(at) % whole.len()] ^= bits;
        }
        if let Some(len) = self.cut {
            bytes.truncate(len.into());
        }
        bytes.extend(&self.tail);
        bytes
    }
}
