//! Feeds any bytes as a stream of records, in pieces of two lengths. The records are the same, and none is
//! longer than the receiver takes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use netdyno_protocol::frame::rpc_record::{Records, TooLong};

/// The most bytes of a record.
const MOST: usize = 100;

/// Returns the records before the end of the stream, or before a record that is too long.
fn records(mut stream: &[u8], piece: usize) -> (Vec<Vec<u8>>, Option<TooLong>) {
    let mut records = Records::new(MOST);
    let mut taken = Vec::new();
    loop {
        loop {
            match records.advance() {
                Ok(true) => taken.push(records.record().to_vec()),
                Ok(false) => break,
                Err(error) => return (taken, Some(error)),
            }
        }
        if stream.is_empty() {
            return (taken, None);
        }
        let spare = records.spare();
        assert!(!spare.is_empty());
        let len = piece.min(spare.len()).min(stream.len());
        spare[..len].copy_from_slice(&stream[..len]);
        records.note_read(len);
        stream = &stream[len..];
    }
}

fuzz_target!(|input: (u8, &[u8])| {
    let (piece, stream) = input;
    let taken = records(stream, usize::from(piece) + 1);
    assert_eq!(taken, records(stream, usize::MAX));
    assert!(taken.0.iter().all(|record| record.len() <= MOST));
});
