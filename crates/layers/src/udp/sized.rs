//! Requests and replies of any size between two processes, a datagram each. The window is the number of
//! datagrams of their size that the receive buffer holds.

use super::port::{lost, send_by, window, wrong_size};
use crate::payload::FILL;
use crate::requests::Wire;
use crate::sized::{ANNOUNCEMENT_LEN, SizedEnd, SizedWire, Sizes, is_announcement};
use crate::socket::{block_on, is_passing};
use netdyno_measure::layer::LayerError;
use std::net::UdpSocket;
use std::time::Duration;

/// The largest datagram, in bytes: 64 KiB without the headers of IP and UDP and one byte.
pub(crate) const MAX_SIZE: usize = 65_507;

/// Either end of the wire.
pub(super) struct SizedUdp {
    socket: UdpSocket,
    /// The size of the receive buffer as the system states it, in bytes.
    buffer: usize,
    end: SizedEnd,
    data: Vec<u8>,
    /// The receive buffer. It is one byte longer than a datagram, so that a longer one is noticed.
    room: Vec<u8>,
}

impl SizedUdp {
    /// Returns the wire over a connected socket, for messages of up to `largest` bytes.
    pub(super) fn new(socket: UdpSocket, buffer: usize, largest: usize, is_requester: bool) -> Self {
        let end = SizedEnd::new(is_requester);
        let room = vec![0; largest.max(ANNOUNCEMENT_LEN) + 1];
        Self { socket, buffer, end, data: vec![FILL; largest], room }
    }

    fn send_bytes(&self, bytes: &[u8]) -> Result<(), LayerError> {
        send_by(|| self.socket.send(bytes), lost)
    }
}

impl Wire for SizedUdp {
    #[inline(always)]
    fn send(&mut self) -> Result<(), LayerError> {
        self.send_bytes(&self.data[..self.end.outgoing()])
    }

    #[inline(always)]
    fn take(&mut self) -> Result<bool, LayerError> {
        match self.socket.recv(&mut self.room) {
            Ok(len) if len > 0 && is_announcement(self.room[0]) => {
                let sizes = Sizes::parse(&self.room[..len], self.data.len());
                if let Some(confirmation) = self.end.take(sizes)? {
                    self.send_bytes(&confirmation)?;
                }
                Ok(false)
            }
            Ok(len) if len == self.end.incoming() => Ok(true),
            Ok(len) => Err(wrong_size(len, self.end.incoming())),
            Err(error) if is_passing(&error) => Ok(false),
            Err(error) => Err(lost(&error)),
        }
    }

    fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        block_on(&self.socket, timeout)
    }
}

impl SizedWire for SizedUdp {
    fn largest(&self) -> usize {
        self.data.len()
    }

    fn announce(&mut self, sizes: Sizes) -> Result<(), LayerError> {
        self.end.announce(sizes);
        self.send_bytes(&sizes.announcement())
    }

    fn is_confirmed(&self) -> bool {
        self.end.is_confirmed()
    }

    fn window(&self) -> usize {
        window(self.buffer, self.end.outgoing().max(self.end.incoming()))
    }
}
