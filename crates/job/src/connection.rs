//! A control connection: a stream socket, which is encrypted if it is between hosts.
//!
//! An encrypted connection carries Noise transport messages. Each has a length of two bytes, big endian, and
//! then the ciphertext with its tag. Every message has a number, so the reader detects a message that was
//! changed, repeated, left out or moved.

use crate::frame::{self, FrameError};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{Shutdown, getpeername, getsockname, shutdown};
use serde::de::DeserializeOwned;
use snow::TransportState;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum length of a Noise message in bytes (Noise specification, section 3).
const LONGEST: usize = 65535;
/// Length of the tag at the end of each message, in bytes.
const TAG_LEN: usize = 16;

/// A control connection.
#[derive(Debug)]
pub struct Connection {
    socket: Socket,
    /// The keys and message numbers of both directions. A local connection has none.
    keys: Option<Arc<Mutex<TransportState>>>,
    /// Decrypted bytes that have not been read.
    unread: VecDeque<u8>,
}

impl Connection {
    /// Takes a stream socket, whose data is not encrypted.
    pub fn plain(socket: impl Into<OwnedFd>) -> Self {
        let socket = Socket { file: File::from(socket.into()), until: None };
        Self { socket, keys: None, unread: VecDeque::new() }
    }

    /// Encrypts all further data with the keys of a handshake.
    pub fn encrypt(&mut self, keys: TransportState) {
        self.keys = Some(Arc::new(Mutex::new(keys)));
    }

    /// Returns a second handle. One thread may then read from one handle while another writes to the other.
    ///
    /// # Errors
    /// Returns an I/O error if the system refuses another file descriptor.
    pub fn try_clone(&self) -> io::Result<Self> {
        let mut clone = Self::plain(self.socket.file.try_clone()?);
        clone.keys.clone_from(&self.keys);
        Ok(clone)
    }

    /// Runs `work`, in which all reads and writes together must end within `time`.
    pub fn within<T>(&mut self, time: Duration, work: impl FnOnce(&mut Self) -> T) -> T {
        self.socket.until = Some(Instant::now() + time);
        let done = work(self);
        self.socket.until = None;
        // Succeeds, because the system accepts timeouts on every socket.
        let _ = self.set_timeout(None);
        done
    }

    /// Receives one message, which must arrive within `time`.
    ///
    /// # Errors
    /// Returns `FrameError` if no valid message arrives in time.
    pub fn receive_within<T: DeserializeOwned>(&mut self, time: Duration) -> Result<T, FrameError> {
        self.within(time, |connection| frame::receive(connection))
    }

    /// Sets the timeout of each read and write.
    ///
    /// # Errors
    /// Returns an I/O error if the system refuses it.
    pub fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        set_socket_timeout(self, Timeout::Recv, timeout)?;
        Ok(set_socket_timeout(self, Timeout::Send, timeout)?)
    }

    /// Reports whether a read returns data that has already been taken from the socket.
    pub fn has_unread(&self) -> bool {
        !self.unread.is_empty()
    }

    /// Closes this direction. Then reads up to `time` until the peer has closed the other direction. If unread
    /// data were left, the system would discard data that the peer has not read yet.
    pub fn hear_out(&mut self, time: Duration) {
        if shutdown(&*self, Shutdown::Write).is_ok() {
            let mut unread = [0; 256];
            self.within(time, |connection| while connection.read(&mut unread).is_ok_and(|len| len > 0) {});
        }
    }

    /// Returns the address of this host on the connection.
    ///
    /// # Errors
    /// Returns an I/O error if the connection is local.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(getsockname(self)?.try_into()?)
    }

    /// Returns the address of the other host on the connection.
    ///
    /// # Errors
    /// Returns an I/O error if the connection is local or has been closed.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(getpeername(self)?.ok_or(io::ErrorKind::NotConnected)?.try_into()?)
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.file.as_fd()
    }
}

impl Read for Connection {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let Some(keys) = &self.keys else { return self.socket.read(room) };
        while self.unread.is_empty() {
            let mut len = [0; 2];
            self.socket.read_exact(&mut len)?;
            let mut message = vec![0; u16::from_be_bytes(len).into()];
            self.socket.read_exact(&mut message)?;
            let mut plain = vec![0; message.len()];
            let len = locked(keys).read_message(&message, &mut plain).map_err(|_| {
                io::Error::new(
                    io::ErrorKind::InvalidData,
                    "it was not encrypted with the keys of this connection",
                )
            })?;
            plain.truncate(len);
            self.unread = plain.into();
        }
        self.unread.read(room)
    }
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(keys) = &self.keys else { return self.socket.write(bytes) };
        let piece = &bytes[..bytes.len().min(LONGEST - TAG_LEN)];
        let mut message = vec![0; 2 + piece.len() + TAG_LEN];
        let (len, ciphertext) = message.split_at_mut(2);
        len.copy_from_slice(&((piece.len() + TAG_LEN) as u16).to_be_bytes());
        locked(keys).write_message(piece, ciphertext).map_err(io::Error::other)?;
        self.socket.write_all(&message)?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn locked(keys: &Mutex<TransportState>) -> MutexGuard<'_, TransportState> {
    keys.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Time for a read or a write, if all of them have a deadline.
const STEP: Duration = Duration::from_secs(10);

/// A stream socket that may have a deadline for all reads and writes.
#[derive(Debug)]
struct Socket {
    file: File,
    until: Option<Instant>,
}

impl Socket {
    /// Gives the next read or write the time that is left, and no more than [`STEP`].
    fn limit(&self, direction: Timeout) -> io::Result<()> {
        let Some(until) = self.until else { return Ok(()) };
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(set_socket_timeout(&self.file, direction, Some(left.min(STEP)))?)
    }
}

impl Read for Socket {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.limit(Timeout::Recv)?;
        self.file.read(room)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.limit(Timeout::Send)?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::net::UnixStream;
    use std::thread;

    /// Returns the keys of both sides of a connection.
    pub(crate) fn keys() -> [TransportState; 2] {
        let builder = || snow::Builder::new("Noise_NN_25519_ChaChaPoly_BLAKE2s".parse().unwrap());
        let [mut a, mut b] = [builder().build_initiator().unwrap(), builder().build_responder().unwrap()];
        let mut message = [0; 48];
        let len = a.write_message(&[], &mut message).unwrap();
        b.read_message(&message[..len], &mut []).unwrap();
        let len = b.write_message(&[], &mut message).unwrap();
        a.read_message(&message[..len], &mut []).unwrap();
        [a, b].map(|noise| noise.into_transport_mode().unwrap())
    }

    fn encrypted(socket: UnixStream, keys: TransportState) -> Connection {
        let mut connection = Connection::plain(socket);
        connection.encrypt(keys);
        connection
    }

    /// Sends the messages over an encrypted connection. Returns the bytes of each on the wire, and the keys of
    /// the receiver.
    fn sent(messages: &[&str]) -> (Vec<Vec<u8>>, TransportState) {
        let [ours, theirs] = keys();
        let (here, mut there) = UnixStream::pair().unwrap();
        let mut connection = encrypted(here, ours);
        let wires = messages.iter().map(|message| {
            frame::send(&mut connection, message).unwrap();
            let mut wire = vec![0; 1 << 16];
            let len = there.read(&mut wire).unwrap();
            wire.truncate(len);
            wire
        });
        (wires.collect(), theirs)
    }

    /// Returns the messages that a receiver accepts from the wire, and the error at their end.
    fn received(wire: &[u8], keys: TransportState) -> (Vec<String>, FrameError) {
        let (mut there, here) = UnixStream::pair().unwrap();
        there.write_all(wire).unwrap();
        drop(there);
        let mut connection = encrypted(here, keys);
        let mut messages = Vec::new();
        loop {
            match frame::receive(&mut connection) {
                Ok(message) => messages.push(message),
                Err(error) => return (messages, error),
            }
        }
    }

    #[test]
    fn a_message_of_every_length_arrives() {
        let [ours, theirs] = keys();
        let (here, there) = UnixStream::pair().unwrap();
        let lengths = [0, 1, LONGEST - TAG_LEN - 6, LONGEST - TAG_LEN - 5, LONGEST, 1 << 20];
        let sender = thread::spawn(move || {
            let mut connection = encrypted(here, ours);
            lengths.map(|len| frame::send(&mut connection, &"x".repeat(len)).unwrap())
        });
        let mut connection = encrypted(there, theirs);
        for len in lengths {
            let message: String = connection.receive_within(Duration::from_secs(60)).unwrap();
            assert_eq!(message, "x".repeat(len));
            assert!(!connection.has_unread());
        }
        sender.join().unwrap();
    }

    #[test]
    fn messages_out_of_order_are_refused() {
        for (order, accepted) in [([0, 1, 2], 3), ([0, 0, 1], 1), ([1, 0, 2], 0), ([0, 2, 1], 1)] {
            let (wires, keys) = sent(&["a", "b", "c"]);
            let (messages, error) = received(&order.map(|nth| &wires[nth][..]).concat(), keys);
            assert_eq!(messages, ["a", "b", "c"][..accepted]);
            assert_eq!(matches!(error, FrameError::Malformed(_)), accepted < 3, "{error}");
        }
    }

    #[test]
    fn nothing_can_be_read_on_the_way() {
        let (wires, _) = sent(&["a secret"]);
        assert!(!wires.concat().windows(6).any(|bytes| bytes == b"secret"));
    }

    proptest! {
        #[test]
        fn a_changed_byte_ends_the_connection(at in any::<prop::sample::Index>(), change in 1u8..) {
            let (wires, keys) = sent(&["a", "b", "c"]);
            let mut wire = wires.concat();
            let at = at.index(wire.len());
            wire[at] ^= change;
            let (messages, error) = received(&wire, keys);
            prop_assert_eq!(&messages[..], &["a", "b", "c"][..at / wires[0].len()]);
            prop_assert!(matches!(error, FrameError::Malformed(_) | FrameError::Closed));
        }

        #[test]
        fn bytes_of_a_stranger_are_no_message(wire in prop::collection::vec(any::<u8>(), 0..200)) {
            let [_, keys] = keys();
            prop_assert_eq!(received(&wire, keys).0, Vec::<String>::new());
        }
    }
}
