//! Connections between hosts, authenticated at both ends, encrypted and with timeouts.

use crate::connection::Connection;
use crate::greeting::{Greeting, Part, Version};
use crate::handshake::{HandshakeError, shake};
use crate::keepalive::KeepAlive;
use crate::key::Key;
use netdyno_host::random;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use thiserror::Error;

/// Timeout of a handshake, and of the client's request after it. It covers a link that is down for 3 s,
/// because TCP may then wait for up to twice that time before it retransmits.
pub const SHAKING: Duration = Duration::from_secs(10);
/// The life of a connection without its host. A cable may be unplugged briefly.
const KEEP_ALIVE: KeepAlive = KeepAlive {
    after: Duration::from_secs(5),
    each: Duration::from_secs(2),
    given_up_after: Duration::from_secs(15),
};
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
        io::ErrorKind::ConnectionRefused => "nothing listens there".into(),
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
pub fn dial(address: SocketAddr, key: Option<&Key>, time: Duration) -> Result<Connection, DialError> {
    let stream = TcpStream::connect_timeout(&address, time).map_err(DialError::Connect)?;
    let mut connection = Connection::plain(stream);
    come_together(&mut connection, Part::Client, key, SHAKING)?;
    Ok(connection)
}

/// Performs the handshake with a client that has connected. After a failure it reads from the client for a
/// moment. If unread data were left, closing the socket would discard the answer to the client.
///
/// # Errors
/// Returns `HandshakeError` if the handshake fails or exceeds its timeout.
pub fn welcome(stream: TcpStream, key: Option<&Key>) -> Result<Connection, HandshakeError> {
    welcome_within(stream, key, SHAKING)
}

fn welcome_within(
    stream: TcpStream,
    key: Option<&Key>,
    time: Duration,
) -> Result<Connection, HandshakeError> {
    let mut connection = Connection::plain(stream);
    let result = come_together(&mut connection, Part::Server, key, time);
    if result.is_err() {
        connection.hear_out(LINGER);
    }
    result.map(|()| connection)
}

fn come_together(
    connection: &mut Connection,
    part: Part,
    key: Option<&Key>,
    time: Duration,
) -> Result<(), HandshakeError> {
    KEEP_ALIVE.set(&*connection)?;
    let nonce = random::bytes().map_err(io::Error::from)?;
    let greeting = Greeting { version: Version::OURS, nonce, part, has_key: key.is_some() };
    let keys = connection.within(time, |connection| shake(connection, &greeting, key))?;
    connection.encrypt(keys);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;
    use std::time::Instant;

    const TIME: Duration = Duration::from_secs(1);

    /// Returns the server's result and its time for a client that behaves like `client`.
    fn welcomed(client: impl FnOnce(TcpStream) + Send + 'static) -> (Result<(), HandshakeError>, Duration) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let knocking = thread::spawn(move || client(TcpStream::connect(address).unwrap()));
        let (stream, _) = listener.accept().unwrap();
        let began = Instant::now();
        let key = Key::new("one that nobody knows").unwrap();
        let result = welcome_within(stream, Some(&key), TIME).map(drop);
        let took = began.elapsed();
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
    fn an_address_where_nothing_listens_is_told() {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let error = dial(address, None, TIME).unwrap_err().to_string();
        assert_eq!(error, "nothing listens there");
    }
}
