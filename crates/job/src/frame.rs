//! Messages on a control connection. Each has a length of four bytes, little endian, and then JSON.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read, Write};
use thiserror::Error;

/// Maximum length of a message in bytes. A launch request with all its batches has some hundred kilobytes.
const LONGEST: usize = 64 << 20;

/// Reports why a message could not be sent or received.
#[derive(Debug, Error)]
pub enum FrameError {
    /// The peer has closed the connection, or its host no longer replies.
    #[error("the connection was closed")]
    Closed,
    /// Nothing has passed for too long, or nothing more of a message.
    #[error("no whole message has passed in time")]
    Silent,
    /// The connection failed.
    #[error("the connection failed: {0}")]
    Io(#[source] io::Error),
    /// The received bytes are not a message, or the message to be sent is too long.
    #[error("what came is not a message: {0}")]
    Malformed(String),
}

/// Sends one message.
pub fn send<T: Serialize>(stream: &mut impl Write, message: &T) -> Result<(), FrameError> {
    let body = serde_json::to_vec(message).map_err(|error| FrameError::Malformed(error.to_string()))?;
    let len = u32::try_from(body.len())
        .ok()
        .filter(|&len| len as usize <= LONGEST)
        .ok_or_else(|| FrameError::Malformed(format!("{} bytes are too long", body.len())))?;
    let mut frame = len.to_le_bytes().to_vec();
    frame.extend(body);
    stream.write_all(&frame).map_err(closed_or_failed)
}

/// Receives one message.
pub fn receive<T: DeserializeOwned>(stream: &mut impl Read) -> Result<T, FrameError> {
    let mut len = [0; 4];
    stream.read_exact(&mut len).map_err(closed_or_failed)?;
    let len = u32::from_le_bytes(len) as usize;
    if len > LONGEST {
        return Err(FrameError::Malformed(format!("it claims {len} bytes")));
    }
    let mut body = Vec::new();
    // The buffer grows as bytes arrive, so that a false length allocates no memory.
    stream.take(len as u64).read_to_end(&mut body).map_err(closed_or_failed)?;
    if body.len() < len {
        return Err(FrameError::Closed);
    }
    serde_json::from_slice(&body).map_err(|error| FrameError::Malformed(error.to_string()))
}

fn closed_or_failed(error: io::Error) -> FrameError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::ConnectionReset
        // The kernel has given up on the other host.
        | io::ErrorKind::TimedOut
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable => FrameError::Closed,
        io::ErrorKind::WouldBlock => FrameError::Silent,
        io::ErrorKind::InvalidData => FrameError::Malformed(error.to_string()),
        _ => FrameError::Io(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_comes_as_it_went() {
        let mut wire = Vec::new();
        send(&mut wire, &("a", 1.5)).unwrap();
        let (text, number): (String, f64) = receive(&mut &wire[..]).unwrap();
        assert_eq!((text.as_str(), number), ("a", 1.5));
    }

    #[test]
    fn what_is_cut_short_or_absurd_is_refused() {
        let mut wire = Vec::new();
        send(&mut wire, &"hello").unwrap();
        for len in 0..wire.len() {
            assert!(matches!(receive::<String>(&mut &wire[..len]), Err(FrameError::Closed)));
        }
        assert!(matches!(receive::<String>(&mut &[0xff; 8][..]), Err(FrameError::Malformed(_))));
        assert!(matches!(receive::<String>(&mut &[1, 0, 0, 0, b'x'][..]), Err(FrameError::Malformed(_))));
    }
}
