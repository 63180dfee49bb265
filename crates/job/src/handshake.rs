//! The handshake of two sides on different hosts. It compares their versions, checks that both have the same
//! key, and agrees on keys for the encryption of the connection.
//!
//! Each side sends a [`Greeting`], the client first. Then both perform the handshake NNpsk0 of the Noise
//! protocol, with both greetings as its prologue. First the client and then the server sends an ephemeral
//! public key, with a tag that only a holder of the pre-shared key can compute:
//!
//! * The pre-shared key is never sent.
//! * A tag is valid only for this connection, because both greetings contain nonces, and only for one role.
//! * An attacker in the middle cannot change a greeting without detection.
//! * A later theft of the pre-shared key does not decrypt the connection, because the ephemeral keys are lost.

use crate::greeting::{self, Greeting, MAGIC, PREAMBLE_LEN, Part, Version};
use crate::key::Key;
use snow::TransportState;
use std::io::{self, Read, Write};
use thiserror::Error;

/// Length of a handshake message in bytes: an ephemeral public key and a tag.
pub const MESSAGE_LEN: usize = 48;
/// The Noise protocol, as its specification names it.
const PROTOCOL: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
/// Stands for the pre-shared key on a connection within a host, if there is none.
const NO_KEY: [u8; 32] = [0; 32];

/// Reports why a handshake failed.
#[derive(Debug, Error)]
pub enum HandshakeError {
    /// The peer speaks another protocol.
    #[error("what speaks there is not netdyno")]
    Foreign,
    /// The versions differ, so the same bytes may have different meanings.
    #[error("this is netdyno {ours}, the other side {theirs}: install the same version")]
    Version {
        /// The version of this side.
        ours: Version,
        /// The version of the peer.
        theirs: Version,
    },
    /// The peer has the same role. Either it reflected this side's greeting, or both ends were started in one
    /// role.
    #[error("the other side plays the same part as this one")]
    SamePart,
    /// The peer has a key and this side has none.
    #[error("the other side asks for a key")]
    OnlyTheyHaveKey,
    /// This side has a key and the peer has none.
    #[error("the other side has no key")]
    OnlyWeHaveKey,
    /// The keys of client and server differ.
    #[error("wrong key")]
    WrongKey,
    /// The server accepted the client's proof, but its own proof is invalid.
    #[error("the other side has not proved that it knows the key")]
    Unproved,
    /// The peer has closed the connection.
    #[error("the other side has closed the connection")]
    Closed,
    /// The peer has sent nothing within the timeout.
    #[error("the other side says nothing")]
    Silent,
    /// The connection failed.
    #[error("the connection failed: {0}")]
    Io(#[source] io::Error),
}

impl From<io::Error> for HandshakeError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe => Self::Closed,
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Self::Silent,
            _ => Self::Io(error),
        }
    }
}

/// An error that the peer cannot cause, such as a lack of random bytes.
impl From<snow::Error> for HandshakeError {
    fn from(error: snow::Error) -> Self {
        Self::Io(io::Error::other(error))
    }
}

/// Performs the handshake on `stream` and sends `greeting`. It reads at most a greeting and one handshake
/// message. The stream itself must limit the time. Returns the keys of the connection.
///
/// # Errors
/// Returns `HandshakeError` if the peer is incompatible, has another key, or does not answer.
pub fn shake<S: Read + Write>(
    stream: &mut S,
    greeting: &Greeting,
    key: Option<&Key>,
) -> Result<TransportState, HandshakeError> {
    let theirs = exchange(stream, greeting)?;
    match (key.is_some(), theirs.has_key) {
        (false, true) => Err(HandshakeError::OnlyTheyHaveKey),
        (true, false) => Err(HandshakeError::OnlyWeHaveKey),
        _ => agree(stream, greeting, &theirs, key.map_or(&NO_KEY, Key::bytes)),
    }
}

/// Exchanges the greetings, and returns that of a peer with the same version and the other role.
fn exchange<S: Read + Write>(stream: &mut S, greeting: &Greeting) -> Result<Greeting, HandshakeError> {
    let ours = greeting.encode();
    if greeting.part == Part::Client {
        stream.write_all(&ours)?;
    }
    let mut theirs = [0; greeting::LEN];
    stream.read_exact(&mut theirs[..MAGIC.len()])?;
    if !theirs.starts_with(&MAGIC) {
        return Err(HandshakeError::Foreign);
    }
    if greeting.part == Part::Server {
        // The greeting is sent before any check, so that the peer can compare versions too.
        stream.write_all(&ours)?;
    }
    stream.read_exact(&mut theirs[MAGIC.len()..PREAMBLE_LEN])?;
    let version = theirs.first_chunk().and_then(Version::parse).ok_or(HandshakeError::Foreign)?;
    if version != greeting.version {
        return Err(HandshakeError::Version { ours: greeting.version, theirs: version });
    }
    stream.read_exact(&mut theirs[PREAMBLE_LEN..])?;
    let theirs = Greeting::parse(&theirs).ok_or(HandshakeError::Foreign)?;
    if theirs.part == greeting.part { Err(HandshakeError::SamePart) } else { Ok(theirs) }
}

/// Performs the Noise handshake.
fn agree<S: Read + Write>(
    stream: &mut S,
    ours: &Greeting,
    theirs: &Greeting,
    key: &[u8; 32],
) -> Result<TransportState, HandshakeError> {
    let (client, server) = if ours.part == Part::Client { (ours, theirs) } else { (theirs, ours) };
    let prologue = [client.encode(), server.encode()].concat();
    let builder = snow::Builder::new(PROTOCOL.parse()?).prologue(&prologue)?.psk(0, key)?;
    let mut message = [0; MESSAGE_LEN];
    let mut noise;
    if ours.part == Part::Client {
        noise = builder.build_initiator()?;
        noise.write_message(&[], &mut message)?;
        stream.write_all(&message)?;
        stream.read_exact(&mut message).map_err(|error| match error.into() {
            // A server closes the connection without an answer after an invalid message.
            HandshakeError::Closed => HandshakeError::WrongKey,
            other => other,
        })?;
        noise.read_message(&message, &mut []).map_err(|_| HandshakeError::Unproved)?;
    } else {
        noise = builder.build_responder()?;
        stream.read_exact(&mut message)?;
        noise.read_message(&message, &mut []).map_err(|_| HandshakeError::WrongKey)?;
        noise.write_message(&[], &mut message)?;
        stream.write_all(&message)?;
    }
    Ok(noise.into_transport_mode()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::net::UnixStream;
    use std::thread;

    fn key(text: &str) -> Option<Key> {
        Some(Key::new(text).unwrap())
    }

    fn greeting(part: Part, key: Option<&Key>) -> Greeting {
        Greeting {
            version: Version::OURS,
            nonce: netdyno_host::random::bytes().unwrap(),
            part,
            has_key: key.is_some(),
        }
    }

    type End = Result<TransportState, HandshakeError>;

    /// Runs a handshake and returns the results of the client and the server. An attacker in the middle may
    /// change the bytes: the client's greeting is number 0, the server's 1, and their messages 2 and 3.
    fn meet(
        client: (Greeting, Option<Key>),
        server: (Greeting, Option<Key>),
        mut change: impl FnMut(usize, &mut Vec<u8>),
    ) -> (End, End) {
        let [(near_client, client), (near_server, server)] = [client, server].map(|(greeting, key)| {
            let (near, mut far) = UnixStream::pair().unwrap();
            (near, thread::spawn(move || shake(&mut far, &greeting, key.as_ref())))
        });
        for (number, len) in [greeting::LEN, greeting::LEN, MESSAGE_LEN, MESSAGE_LEN].into_iter().enumerate()
        {
            let ends = (&near_client, &near_server);
            let (mut from, mut to) = if number % 2 == 0 { ends } else { (ends.1, ends.0) };
            let mut bytes = vec![0; len];
            if from.read_exact(&mut bytes).is_err() {
                break;
            }
            change(number, &mut bytes);
            // A side may have failed and closed its connection.
            let _ = to.write_all(&bytes);
        }
        drop((near_client, near_server));
        (client.join().unwrap(), server.join().unwrap())
    }

    fn meet_with_keys(client: Option<Key>, server: Option<Key>) -> (End, End) {
        let greetings = (greeting(Part::Client, client.as_ref()), greeting(Part::Server, server.as_ref()));
        meet((greetings.0, client), (greetings.1, server), |_, _| {})
    }

    /// Runs a handshake of two sides with one key.
    fn meet_attacked(change: impl FnMut(usize, &mut Vec<u8>)) -> (End, End) {
        let [client, server] =
            [Part::Client, Part::Server].map(|part| (greeting(part, key(RIGHT).as_ref()), key(RIGHT)));
        meet(client, server, change)
    }

    const RIGHT: &str = "the right key, of course";
    const WRONG: &str = "a wrong key, unfortunately";

    #[test]
    fn who_has_the_same_key_or_none_comes_together() {
        for both in [key(RIGHT), None] {
            let (Ok(mut client), Ok(mut server)) = meet_with_keys(both.clone(), both) else { panic!() };
            let (mut message, mut plain) = ([0; 100], [0; 100]);
            let len = client.write_message(b"hello", &mut message).unwrap();
            let len = server.read_message(&message[..len], &mut plain).unwrap();
            assert_eq!(&plain[..len], b"hello");
        }
    }

    #[test]
    fn any_other_key_is_refused_by_both() {
        use HandshakeError::{Closed, OnlyTheyHaveKey, OnlyWeHaveKey, WrongKey};
        let ends = meet_with_keys(key(WRONG), key(RIGHT));
        assert!(matches!(ends, (Err(WrongKey), Err(WrongKey))), "{ends:?}");
        let ends = meet_with_keys(None, key(RIGHT));
        assert!(matches!(ends, (Err(OnlyTheyHaveKey), Err(OnlyWeHaveKey))), "{ends:?}");
        // The client detects the mismatch first. The server sees the closed connection, or the client's
        // greeting.
        let ends = meet_with_keys(key(RIGHT), None);
        assert!(matches!(ends, (Err(OnlyWeHaveKey), Err(OnlyTheyHaveKey | Closed))), "{ends:?}");
    }

    #[test]
    fn another_version_is_seen_by_both_before_the_key() {
        let theirs = Version::new(b"99.0.0").unwrap();
        let mut client = greeting(Part::Client, None);
        client.version = theirs;
        let right = key(RIGHT);
        let ends = meet((client, None), (greeting(Part::Server, right.as_ref()), right), |_, _| {});
        let (Err(seen_by_client), Err(seen_by_server)) = ends else { panic!("{ends:?}") };
        let ours = Version::OURS;
        assert_eq!(
            seen_by_client.to_string(),
            format!("this is netdyno 99.0.0, the other side {ours}: install the same version")
        );
        assert_eq!(
            seen_by_server.to_string(),
            format!("this is netdyno {ours}, the other side 99.0.0: install the same version")
        );
    }

    /// A stream that returns prepared bytes, and records the bytes written to it.
    struct Scripted<'a> {
        says: &'a [u8],
        heard: Vec<u8>,
    }

    impl Read for Scripted<'_> {
        fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            self.says.read(room)
        }
    }

    impl Write for Scripted<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.heard.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn hear(says: &[u8], part: Part) -> (End, Vec<u8>) {
        let key = key(RIGHT);
        let mut stream = Scripted { says, heard: Vec::new() };
        let end = shake(&mut stream, &greeting(part, key.as_ref()), key.as_ref());
        (end, stream.heard)
    }

    #[test]
    fn own_words_sent_back_convince_nobody() {
        // The client sends only its greeting. It does not prove the key to its own reflection.
        let key = key(RIGHT);
        let ours = greeting(Part::Client, key.as_ref());
        let mut stream = Scripted { says: &ours.encode(), heard: Vec::new() };
        let end = shake(&mut stream, &ours, key.as_ref());
        assert!(matches!(end, Err(HandshakeError::SamePart)), "{end:?}");
        assert_eq!(stream.heard, ours.encode());
    }

    #[test]
    fn a_message_does_not_serve_for_the_other_part_nor_twice() {
        let mut sent: [Vec<u8>; 2] = Default::default();
        // The attacker reflects the client's message, which is not the server's.
        let ends = meet_attacked(|number, bytes| {
            if number == 3 {
                bytes.copy_from_slice(&sent[0][greeting::LEN..]);
            } else {
                sent[number % 2].extend_from_slice(bytes);
            }
        });
        assert!(matches!(ends, (Err(HandshakeError::Unproved), Ok(_))), "{ends:?}");
        let mut sent: [Vec<u8>; 2] = Default::default();
        let ends = meet_attacked(|number, bytes| sent[number % 2].extend_from_slice(bytes));
        assert!(matches!(ends, (Ok(_), Ok(_))), "{ends:?}");
        // The attacker replays a recorded side. The nonce of the other side is now a different one.
        let (end, heard) = hear(&sent[0], Part::Server);
        assert!(matches!(end, Err(HandshakeError::WrongKey)), "{end:?}");
        assert_eq!(heard.len(), greeting::LEN, "it has proved nothing to a stranger");
        let (end, _) = hear(&sent[1], Part::Client);
        assert!(matches!(end, Err(HandshakeError::Unproved)), "{end:?}");
    }

    proptest! {
        #[test]
        fn a_stranger_learns_no_more_than_a_greeting(
            says in prop::collection::vec(any::<u8>(), 0..200), knows_magic: bool, is_client: bool,
        ) {
            let part = if is_client { Part::Client } else { Part::Server };
            let says = if knows_magic { [&MAGIC, &says[..]].concat() } else { says };
            let (end, heard) = hear(&says, part);
            prop_assert!(end.is_err());
            let most = if is_client { greeting::LEN + MESSAGE_LEN } else { greeting::LEN };
            prop_assert!(heard.len() <= most);
        }

        /// An attacker in the middle that changes a byte is detected.
        #[test]
        fn no_byte_can_be_changed_on_the_way(number in 0..4_usize, at in any::<prop::sample::Index>(), change in 1u8..) {
            let (client, server) = meet_attacked(|nth, bytes| {
                if nth == number {
                    let at = at.index(bytes.len());
                    bytes[at] ^= change;
                }
            });
            prop_assert!(client.is_err());
            // The server sends the last message. It waits for no answer, but it has no keys in common with
            // the client.
            prop_assert_eq!(server.is_err(), number < 3);
        }
    }
}
