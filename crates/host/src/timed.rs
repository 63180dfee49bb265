//! A connection that is read until a time, however slowly the bytes come.

use std::io::{self, Read};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Reads a connection until a time. Sets the read timeout of the connection.
#[derive(Debug)]
pub struct Timed<'a> {
    stream: &'a TcpStream,
    until: Instant,
}

impl<'a> Timed<'a> {
    /// Reads for `time` from now on.
    pub fn new(stream: &'a TcpStream, time: Duration) -> Self {
        Self::until(stream, Instant::now() + time)
    }

    /// Reads until this time.
    pub fn until(stream: &'a TcpStream, until: Instant) -> Self {
        Self { stream, until }
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::TcpListener;
    use std::thread;

    #[test]
    fn a_peer_that_sends_byte_by_byte_is_read_no_longer_than_the_time() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut slow = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        let sending = thread::spawn(move || {
            while slow.write_all(&[0]).is_ok() {
                thread::sleep(Duration::from_millis(5));
            }
        });
        let mut room = [0; 1 << 16];
        let read = Timed::new(&stream, Duration::from_millis(100)).read_exact(&mut room);
        // The system's timeout is WouldBlock, and that between two reads is TimedOut.
        assert!(matches!(read.unwrap_err().kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock));
        drop(stream);
        sending.join().unwrap();
    }

    #[test]
    fn what_has_come_in_time_is_read() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        peer.write_all(b"word").unwrap();
        let mut room = [0; 4];
        Timed::new(&stream, Duration::from_secs(60)).read_exact(&mut room).unwrap();
        assert_eq!(room, *b"word");
    }
}
