//! Requests and replies of one size between two processes, a datagram each.

use super::port::{lost, send_by, wrong_size};
use crate::payload::FILL;
use crate::requests::Wire;
use crate::socket::{block_on, is_passing};
use netdyno_measure::layer::LayerError;
use std::net::UdpSocket;
use std::time::Duration;

/// Either end of the wire.
pub(super) struct UdpWire {
    socket: UdpSocket,
    data: Vec<u8>,
    /// The receive buffer. It is one byte longer than a datagram, so that a longer one is noticed.
    room: Vec<u8>,
}

impl UdpWire {
    /// Returns the wire over a connected socket, for messages of `size_bytes`.
    pub(super) fn new(socket: UdpSocket, size_bytes: usize) -> Self {
        Self { socket, data: vec![FILL; size_bytes], room: vec![0; size_bytes + 1] }
    }
}

impl Wire for UdpWire {
    #[inline(always)]
    fn send(&mut self) -> Result<(), LayerError> {
        send_by(|| self.socket.send(&self.data), lost)
    }

    #[inline(always)]
    fn take(&mut self) -> Result<bool, LayerError> {
        match self.socket.recv(&mut self.room) {
            Ok(len) if len == self.data.len() => Ok(true),
            Ok(len) => Err(wrong_size(len, self.data.len())),
            Err(error) if is_passing(&error) => Ok(false),
            Err(error) => Err(lost(&error)),
        }
    }

    fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        block_on(&self.socket, timeout)
    }
}
