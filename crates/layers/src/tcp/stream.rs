//! Requests and replies of one size on a stream.

use super::connection;
use crate::payload::FILL;
use crate::peer_wait::PeerWait;
use crate::requests::Wire;
use crate::socket::{block_on, is_passing};
use netdyno_host::wait::Wait;
use netdyno_measure::layer::LayerError;
use rustix::net::sockopt;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// The socket buffers that a connection asks for, in bytes. The system may give less, but not less than a
/// full window needs.
const BUFFER: usize = 1 << 20;

/// One end of a connection that carries messages of one size.
pub(super) struct FixedSizeStream {
    stream: TcpStream,
    /// The rank of the peer in a group; `None` between two processes.
    peer: Option<usize>,
    room: Vec<u8>,
    /// Bytes of the next message that have arrived.
    have: usize,
}

impl FixedSizeStream {
    /// Returns the end of a connection for messages of `size_bytes`, with buffers that hold a full window.
    pub(super) fn new(stream: TcpStream, peer: Option<usize>, size_bytes: usize) -> Result<Self, LayerError> {
        widen(&stream)?;
        Ok(Self { stream, peer, room: vec![0; size_bytes], have: 0 })
    }

    /// Sends a message.
    #[inline(always)]
    pub(super) fn send(&mut self, mut rest: &[u8]) -> Result<(), LayerError> {
        let mut wait = PeerWait::new(Wait::Spin);
        while !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(written) => rest = &rest[written..],
                // A full window fits into the buffers, so the peer need not wait for a read of this process.
                Err(error) if is_passing(&error) => wait.after_empty_poll(|_| Ok(()))?,
                Err(error) => return Err(self.lost(&error)),
            }
        }
        Ok(())
    }

    /// Takes a message, if all of it has arrived. Returns whether it had.
    #[inline(always)]
    pub(super) fn take(&mut self) -> Result<bool, LayerError> {
        match self.stream.read(&mut self.room[self.have..]) {
            Ok(0) => Err(self.closed()),
            Ok(read) => {
                self.have = (self.have + read) % self.room.len();
                Ok(self.have == 0)
            }
            Err(error) if is_passing(&error) => Ok(false),
            Err(error) => Err(self.lost(&error)),
        }
    }

    pub(super) fn socket(&self) -> &TcpStream {
        &self.stream
    }

    #[cold]
    fn lost(&self, error: &io::Error) -> LayerError {
        match self.peer {
            Some(peer) => LayerError(format!("the connection to rank {peer} failed: {error}")),
            None => connection::lost(error),
        }
    }

    #[cold]
    fn closed(&self) -> LayerError {
        match self.peer {
            Some(peer) => LayerError(format!("rank {peer} has closed the connection")),
            None => connection::closed(),
        }
    }
}

/// Asks for socket buffers that hold a full window.
pub(crate) fn widen(stream: &TcpStream) -> Result<(), LayerError> {
    let error = |error| LayerError(format!("cannot set up a connection: {error}"));
    sockopt::set_socket_send_buffer_size(stream, BUFFER).map_err(error)?;
    sockopt::set_socket_recv_buffer_size(stream, BUFFER).map_err(error)
}

/// Either end of the wire between two processes.
pub(super) struct TcpWire {
    stream: FixedSizeStream,
    data: Vec<u8>,
}

impl TcpWire {
    /// Returns the wire over a connection, for messages of `size_bytes`.
    pub(super) fn new(stream: TcpStream, size_bytes: usize) -> Result<Self, LayerError> {
        Ok(Self { stream: FixedSizeStream::new(stream, None, size_bytes)?, data: vec![FILL; size_bytes] })
    }
}

impl Wire for TcpWire {
    #[inline(always)]
    fn send(&mut self) -> Result<(), LayerError> {
        self.stream.send(&self.data)
    }

    #[inline(always)]
    fn take(&mut self) -> Result<bool, LayerError> {
        self.stream.take()
    }

    fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        block_on(self.stream.socket(), timeout)
    }
}
