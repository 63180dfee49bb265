//! The handshake of two sides on different hosts. It compares their versions and then checks that both have
//! the same key. Before it succeeds, neither side trusts any other data of its peer.
//!
//! Each side sends a [`Greeting`], the client first. If both have a key, first the client and then the server
//! proves that it knows the key. A proof is the HMAC-SHA256 of a label for the role and of both greetings:
//!
//! * The key is never sent.
//! * A proof is valid only for this connection, because both greetings contain nonces, and only for one role.
//! * An attacker in the middle cannot change a greeting without detection.

use crate::greeting::{self, Greeting, MAGIC, PREAMBLE_LEN, Part, Version};
use crate::key::{Key, PROOF_LEN};
use std::io::{self, Read, Write};
use thiserror::Error;

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

/// Performs the handshake on `stream` and sends `greeting`. It reads at most a greeting and a proof. The
/// stream itself must limit the time.
///
/// # Errors
/// Returns `HandshakeError` if the peer is incompatible, has another key, or does not answer.
pub fn shake<S: Read + Write>(
    stream: &mut S,
    greeting: &Greeting,
    key: Option<&Key>,
) -> Result<(), HandshakeError> {
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
    let parsed = Greeting::parse(&theirs).ok_or(HandshakeError::Foreign)?;
    if parsed.part == greeting.part {
        return Err(HandshakeError::SamePart);
    }
    match (key, parsed.has_key) {
        (None, false) => Ok(()),
        (None, true) => Err(HandshakeError::OnlyTheyHaveKey),
        (Some(_), false) => Err(HandshakeError::OnlyWeHaveKey),
        (Some(key), true) => match greeting.part {
            Part::Client => Proofs { key, client: &ours, server: &theirs }.as_client(stream),
            Part::Server => Proofs { key, client: &theirs, server: &ours }.as_server(stream),
        },
    }
}

/// A key together with the bytes of both greetings.
struct Proofs<'a> {
    key: &'a Key,
    client: &'a [u8; greeting::LEN],
    server: &'a [u8; greeting::LEN],
}

impl Proofs<'_> {
    fn of(&self, part: Part) -> [&[u8]; 3] {
        let label: &[u8] = match part {
            Part::Client => b"netdyno client knows the key\n",
            Part::Server => b"netdyno server knows the key\n",
        };
        [label, self.client, self.server]
    }

    fn as_client<S: Read + Write>(&self, stream: &mut S) -> Result<(), HandshakeError> {
        stream.write_all(&self.key.prove(&self.of(Part::Client)))?;
        let shown = read_proof(stream).map_err(|error| match error {
            // A server closes the connection without an answer after a wrong proof.
            HandshakeError::Closed => HandshakeError::WrongKey,
            other => other,
        })?;
        if self.key.verify(&self.of(Part::Server), &shown) { Ok(()) } else { Err(HandshakeError::Unproved) }
    }

    fn as_server<S: Read + Write>(&self, stream: &mut S) -> Result<(), HandshakeError> {
        let shown = read_proof(stream)?;
        if !self.key.verify(&self.of(Part::Client), &shown) {
            return Err(HandshakeError::WrongKey);
        }
        Ok(stream.write_all(&self.key.prove(&self.of(Part::Server)))?)
    }
}

fn read_proof(stream: &mut impl Read) -> Result<[u8; PROOF_LEN], HandshakeError> {
    let mut shown = [0; PROOF_LEN];
    stream.read_exact(&mut shown)?;
    Ok(shown)
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

    type End = Result<(), HandshakeError>;

    /// Runs a handshake and returns the results of the client and the server.
    fn meet(client: (Greeting, Option<Key>), server: (Greeting, Option<Key>)) -> (End, End) {
        let (mut a, mut b) = UnixStream::pair().unwrap();
        let serving = thread::spawn(move || shake(&mut b, &server.0, server.1.as_ref()));
        let end = shake(&mut a, &client.0, client.1.as_ref());
        drop(a);
        (end, serving.join().unwrap())
    }

    fn meet_with_keys(client: Option<Key>, server: Option<Key>) -> (End, End) {
        let greetings = (greeting(Part::Client, client.as_ref()), greeting(Part::Server, server.as_ref()));
        meet((greetings.0, client), (greetings.1, server))
    }

    const RIGHT: &str = "the right key, of course";
    const WRONG: &str = "a wrong key, unfortunately";

    #[test]
    fn who_has_the_same_key_or_none_comes_together() {
        assert!(matches!(meet_with_keys(key(RIGHT), key(RIGHT)), (Ok(()), Ok(()))));
        assert!(matches!(meet_with_keys(None, None), (Ok(()), Ok(()))));
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
        let ends = meet((client, None), (greeting(Part::Server, right.as_ref()), right));
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
    fn a_proof_does_not_serve_for_the_other_part_nor_twice() {
        let key = Key::new(RIGHT).unwrap();
        let [client, server] = [Part::Client, Part::Server].map(|part| greeting(part, Some(&key)).encode());
        let proofs = Proofs { key: &key, client: &client, server: &server };
        let [of_client, of_server] = [Part::Client, Part::Server].map(|part| key.prove(&proofs.of(part)));
        assert_ne!(of_client, of_server);
        // An impostor reflects the client's proof, which is not the server's.
        let mut stream = Scripted { says: &of_client, heard: Vec::new() };
        assert!(matches!(proofs.as_client(&mut stream), Err(HandshakeError::Unproved)));
        // An attacker replays a recorded client. The server's nonce is now a different one.
        let recorded = [&client[..], &of_client].concat();
        let (end, heard) = hear(&recorded, Part::Server);
        assert!(matches!(end, Err(HandshakeError::WrongKey)), "{end:?}");
        assert_eq!(heard.len(), greeting::LEN, "it has proved nothing to a stranger");
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
            prop_assert!(heard.len() <= greeting::LEN);
        }

        /// An attacker in the middle that changes a greeting is detected.
        #[test]
        fn no_byte_of_a_greeting_can_be_changed_on_the_way(at in 0..greeting::LEN, change in 1u8..) {
            let key = Key::new(RIGHT).unwrap();
            let [client, server] = [Part::Client, Part::Server].map(|part| greeting(part, Some(&key)));
            let mut changed = client.encode();
            changed[at] ^= change;
            let proofs = Proofs { key: &key, client: &client.encode(), server: &server.encode() };
            let proof = key.prove(&proofs.of(Part::Client));
            let mut stream = Scripted { says: &[&changed[..], &proof].concat(), heard: Vec::new() };
            prop_assert!(shake(&mut stream, &server, Some(&key)).is_err());
        }
    }
}
