//! Connections between hosts, authenticated at both ends and with timeouts.

use crate::greeting::{Greeting, Part, Version};
use crate::handshake::{HandshakeError, shake};
use crate::key::Key;
use netdyno_host::random;
use rustix::net::sockopt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use thiserror::Error;

/// Timeout of a handshake, and of the client's request after it. It covers a link that is down for 3 s,
/// because TCP may then wait for up to twice that time before it retransmits.
pub const SHAKING: Duration = Duration::from_secs(10);
/// Idle time of a connection before the first keepalive probe.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(5);
/// Interval between keepalive probes.
const KEEPALIVE_EACH: Duration = Duration::from_secs(2);
/// Time without an acknowledgement after which a connection is closed. A cable may be unplugged briefly.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(15);
/// Time for which this side reads the remaining data of a rejected peer.
const LINGER: Duration = Duration::from_secs(1);

/// Reports why a connection to another host failed.
#[derive(Debug, Error)]
pub enum DialError {
    /// The host cannot be reached.
    #[error("{}", unreachable_because(.0))]
    Connect(#[source] io::Error),
    /// The handshake failed.
    #[error("{0}")]
    Handshake(#[from] HandshakeError),
}

fn unreachable_because(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "nothing listens there: run `netdyno serve` on that host".into(),
        io::ErrorKind::TimedOut | io::ErrorKind::HostUnreachable => {
            "there is no answer: is the host up, and the port open in its firewall?".into()
        }
        _ => error.to_string(),
    }
}

/// Connects to a served host within `time` and performs the handshake.
///
/// # Errors
/// Returns `DialError` if the host cannot be reached or the handshake fails. Both have timeouts.
pub fn dial(address: SocketAddr, key: Option<&Key>, time: Duration) -> Result<TcpStream, DialError> {
    let stream = TcpStream::connect_timeout(&address, time).map_err(DialError::Connect)?;
    come_together(&stream, Part::Client, key, SHAKING)?;
    Ok(stream)
}

/// Performs the handshake with a client that has connected. After a failure it reads from the client for a
/// moment. If unread data were left, closing the socket would discard the answer to the client.
///
/// # Errors
/// Returns `HandshakeError` if the handshake fails or exceeds its timeout.
pub fn welcome(stream: &TcpStream, key: Option<&Key>) -> Result<(), HandshakeError> {
    welcome_within(stream, key, SHAKING)
}

fn welcome_within(stream: &TcpStream, key: Option<&Key>, time: Duration) -> Result<(), HandshakeError> {
    let result = come_together(stream, Part::Server, key, time);
    if result.is_err() {
        hear_out(stream, LINGER);
    }
    result
}

fn come_together(
    stream: &TcpStream,
    part: Part,
    key: Option<&Key>,
    time: Duration,
) -> Result<(), HandshakeError> {
    stream.set_nodelay(true)?;
    keep_alive(stream)?;
    let nonce = random::bytes().map_err(io::Error::from)?;
    let greeting = Greeting { version: Version::OURS, nonce, part, has_key: key.is_some() };
    shake(&mut Hurried::new(stream, time), &greeting, key)
}

/// Lets the kernel detect that the other host has disappeared.
fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE_AFTER)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE_EACH)?;
    sockopt::set_tcp_user_timeout(stream, GIVEN_UP_AFTER.as_millis() as u32)?;
    Ok(())
}

/// Closes this direction of the stream. Then waits up to `time` until the peer has closed the other
/// direction.
pub fn hear_out(stream: &TcpStream, time: Duration) {
    if stream.shutdown(Shutdown::Write).is_ok() {
        let mut hurried = Hurried::new(stream, time);
        let mut unread = [0; 256];
        while hurried.read(&mut unread).is_ok_and(|len| len > 0) {}
    }
}

/// A stream with a deadline for all reads and writes.
pub struct Hurried<'a> {
    stream: &'a TcpStream,
    until: Instant,
}

impl<'a> Hurried<'a> {
    /// Wraps `stream` with a deadline that is `time` from now.
    pub fn new(stream: &'a TcpStream, time: Duration) -> Self {
        Self { stream, until: Instant::now() + time }
    }

    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl Read for Hurried<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(room)
    }
}

impl Write for Hurried<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

impl Drop for Hurried<'_> {
    /// Removes the timeouts from the stream for its next user.
    fn drop(&mut self) {
        // Succeeds, because the system has accepted timeouts on this stream before.
        let _ = self.stream.set_read_timeout(None);
        let _ = self.stream.set_write_timeout(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    const TIME: Duration = Duration::from_secs(1);

    /// Returns the server's result and its time for a client that behaves like `client`.
    fn welcomed(client: impl FnOnce(TcpStream) + Send + 'static) -> (Result<(), HandshakeError>, Duration) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let knocking = thread::spawn(move || client(TcpStream::connect(address).unwrap()));
        let (stream, _) = listener.accept().unwrap();
        let began = Instant::now();
        let key = Key::new("one that nobody knows").unwrap();
        let result = welcome_within(&stream, Some(&key), TIME);
        let took = began.elapsed();
        drop(stream);
        knocking.join().unwrap();
        (result, took)
    }

    #[test]
    fn who_says_nothing_is_not_waited_for() {
        let (result, took) =
            welcomed(|mut stream| while stream.read(&mut [0; 100]).is_ok_and(|len| len > 0) {});
        assert!(matches!(result, Err(HandshakeError::Silent)), "{result:?}");
        assert!(took < 20 * TIME, "{took:?}");
    }

    #[test]
    fn a_byte_now_and_then_gains_no_time() {
        let (result, took) = welcomed(|mut stream| {
            let nearly = [&crate::greeting::MAGIC[..], &[b'1'; 60]].concat();
            for byte in nearly {
                if stream.write_all(&[byte]).is_err() {
                    break;
                }
                thread::sleep(Duration::from_millis(100));
            }
        });
        assert!(result.is_err());
        assert!(took < 20 * TIME, "{took:?}");
    }

    #[test]
    fn who_speaks_something_else_is_told_off_at_once() {
        let (result, _) = welcomed(|mut stream| {
            stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
            let mut answer = Vec::new();
            // The client receives no data, only the end of the stream.
            stream.read_to_end(&mut answer).unwrap();
            assert!(answer.is_empty());
        });
        assert!(matches!(result, Err(HandshakeError::Foreign)), "{result:?}");
    }

    #[test]
    fn an_address_where_nothing_listens_says_what_to_do() {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let error = dial(address, None, TIME).unwrap_err().to_string();
        assert!(error.contains("netdyno serve"), "{error}");
    }
}
