//! Reads from an encrypted connection after an attacker has changed the bytes on their way. The reader gets
//! what was sent up to the first change, and then an error.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use netdyno_job::connection::Connection;
use snow::{Builder, TransportState};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    sent: [&'a [u8]; 3],
    /// Bytes that the attacker removes at this place.
    at: u16,
    removed: u16,
    inserted: &'a [u8],
}

fuzz_target!(|input: Input<'_>| {
    let [ours, theirs] = keys();
    let (wire, socket) = UnixStream::pair().expect("a socket");
    let mut sender = encrypted(socket, ours);
    for bytes in input.sent {
        sender.write_all(bytes).expect("the socket has room");
    }
    drop(sender);
    let original = all(wire);
    let at = usize::from(input.at).min(original.len());
    let rest = (at + usize::from(input.removed)).min(original.len());
    let changed = [&original[..at], input.inserted, &original[rest..]].concat();

    let (mut wire, socket) = UnixStream::pair().expect("a socket");
    wire.write_all(&changed).expect("the socket has room");
    wire.shutdown(Shutdown::Write).expect("it is open");
    let read = all(encrypted(socket, theirs));
    let sent = input.sent.concat();
    assert!(sent.starts_with(&read), "bytes that nobody sent");
    assert!(changed != original || read == sent, "bytes were lost");
});

fn encrypted(socket: UnixStream, keys: TransportState) -> Connection {
    let mut connection = Connection::plain(socket);
    connection.encrypt(keys);
    connection
}

/// Returns all bytes up to the end or an error.
fn all(mut stream: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    // The bytes before an error are in the vector.
    let _ = stream.read_to_end(&mut bytes);
    bytes
}

/// Returns the keys of both sides of a connection.
fn keys() -> [TransportState; 2] {
    let builder = || Builder::new("Noise_NN_25519_ChaChaPoly_BLAKE2s".parse().expect("a protocol"));
    let mut client = builder().build_initiator().expect("it needs no keys");
    let mut server = builder().build_responder().expect("it needs no keys");
    let mut message = [0; 48];
    let len = client.write_message(&[], &mut message).expect("it fits");
    server.read_message(&message[..len], &mut []).expect("it is the client's");
    let len = server.write_message(&[], &mut message).expect("it fits");
    client.read_message(&message[..len], &mut []).expect("it is the server's");
    [client, server].map(|noise| noise.into_transport_mode().expect("the handshake is over"))
}
