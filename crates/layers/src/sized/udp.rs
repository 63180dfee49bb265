//! Bare UDP sockets, a datagram a message. As many datagrams are allowed without a reply as
//! the receive buffer holds of their size.

use super::{ANNOUNCEMENT_LEN, End, FILL, SizedWire, Sizes, is_announcement};
use crate::real::{Patience, Wire};
use crate::socket::{block_on, is_passing};
use crate::udp::{lost, window};
use netdyno_host::wait::Wait;
use netdyno_measure::layer::LayerError;
use std::net::UdpSocket;
use std::time::Duration;

/// The largest datagram: 64 KiB but for the headers of IP and UDP, and a byte.
pub(crate) const MAX_SIZE: usize = 65_507;

/// Either end of the wire.
pub(crate) struct SizedUdp {
    socket: UdpSocket,
    /// Bytes that its receive buffer holds.
    buffer: usize,
    end: End,
    data: Vec<u8>,
    /// One byte longer than a datagram, to see one that is too long.
    room: Vec<u8>,
}

impl SizedUdp {
    /// On a connected socket, for messages up to `largest`.
    pub(crate) fn new(socket: UdpSocket, buffer: usize, largest: usize, is_requester: bool) -> Self {
        let end = End::new(is_requester);
        let room = vec![0; largest.max(ANNOUNCEMENT_LEN) + 1];
        Self { socket, buffer, end, data: vec![FILL; largest], room }
    }

    fn send_bytes(&self, bytes: &[u8]) -> Result<(), LayerError> {
        let mut patience = Patience::new(Wait::Spin);
        loop {
            match self.socket.send(bytes) {
                Ok(_) => return Ok(()),
                // The send buffer is emptied by the kernel without our help.
                Err(error) if is_passing(&error) => patience.in_vain(|_| Ok(()))?,
                Err(error) => return Err(lost(&error)),
            }
        }
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
            Ok(len) => Err(LayerError(format!(
                "a datagram of {len} bytes came, {} were expected",
                self.end.incoming()
            ))),
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

    fn is_confirmed(&mut self) -> Result<bool, LayerError> {
        if self.take()? {
            return Err(LayerError::new("a reply came that nothing was asked for"));
        }
        Ok(self.end.is_confirmed())
    }

    fn window(&self) -> usize {
        window(self.buffer, self.end.outgoing().max(self.end.incoming()))
    }
}
