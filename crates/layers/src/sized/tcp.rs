//! Bare TCP sockets with the system's own buffers, which grow as it sees fit: messages one
//! after the other on a stream. An end that cannot send goes on reading, so that two ends
//! that send more than the buffers hold do not wait for each other.

use super::{ANNOUNCEMENT_LEN, End, FILL, SizedWire, Sizes, is_announcement};
use crate::real::{Patience, Wire};
use crate::socket::{block_on, block_on_either, is_passing};
use crate::tcp::{WINDOW, lost};
use netdyno_host::wait::Wait;
use netdyno_measure::layer::LayerError;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Either end of the wire.
pub(crate) struct SizedTcp {
    stream: TcpStream,
    wait: Wait,
    end: End,
    data: Vec<u8>,
    room: Vec<u8>,
    /// Bytes of a message that came in part.
    have: usize,
    /// Messages that came while nothing could be sent, and are to be taken.
    ready: usize,
}

impl SizedTcp {
    /// On a connected socket that does not block, for messages up to `largest`.
    pub(crate) fn new(stream: TcpStream, wait: Wait, largest: usize, is_requester: bool) -> Self {
        let room = vec![0; largest.max(ANNOUNCEMENT_LEN)];
        let end = End::new(is_requester);
        Self { stream, wait, end, data: vec![FILL; largest], room, have: 0, ready: 0 }
    }

    /// Bytes of the message of which a part is here, or of the next one.
    fn expected(&self) -> usize {
        if self.have > 0 && is_announcement(self.room[0]) { ANNOUNCEMENT_LEN } else { self.end.incoming() }
    }

    /// Reads what is there, to the end of a message at most. Whether that came.
    #[inline(always)]
    fn read(&mut self) -> Result<bool, LayerError> {
        loop {
            let expected = self.expected();
            match self.stream.read(&mut self.room[self.have..expected]) {
                Ok(0) => return Err(LayerError::new("the other process has closed the connection")),
                Ok(read) => self.have += read,
                Err(error) if is_passing(&error) => return Ok(false),
                Err(error) => return Err(lost(&error)),
            }
            if self.have >= self.expected() {
                self.have = 0;
                if !is_announcement(self.room[0]) {
                    return Ok(true);
                }
                let sizes = Sizes::parse(&self.room[..ANNOUNCEMENT_LEN], self.data.len());
                if let Some(confirmation) = self.end.take(sizes)? {
                    self.send_small(&confirmation)?;
                }
                return Ok(false);
            }
        }
    }

    /// Sends a few bytes while nothing is on the way: there is room for them.
    fn send_small(&mut self, bytes: &[u8]) -> Result<(), LayerError> {
        self.stream.write_all(bytes).map_err(|error| lost(&error))
    }
}

impl Wire for SizedTcp {
    #[inline(always)]
    fn send(&mut self) -> Result<(), LayerError> {
        let (mut sent, all) = (0, self.end.outgoing());
        let mut patience = Patience::new(self.wait);
        while sent < all {
            match self.stream.write(&self.data[sent..all]) {
                Ok(written) => sent += written,
                Err(error) if is_passing(&error) => {
                    if self.read()? {
                        self.ready += 1;
                    } else {
                        patience.in_vain(|timeout| block_on_either(&self.stream, timeout))?;
                    }
                }
                Err(error) => return Err(lost(&error)),
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn take(&mut self) -> Result<bool, LayerError> {
        if self.ready > 0 {
            self.ready -= 1;
            return Ok(true);
        }
        self.read()
    }

    fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        block_on(&self.stream, timeout)
    }
}

impl SizedWire for SizedTcp {
    fn largest(&self) -> usize {
        self.data.len()
    }

    fn announce(&mut self, sizes: Sizes) -> Result<(), LayerError> {
        self.end.announce(sizes);
        self.send_small(&sizes.announcement())
    }

    fn is_confirmed(&mut self) -> Result<bool, LayerError> {
        if self.take()? {
            return Err(LayerError::new("a reply came that nothing was asked for"));
        }
        Ok(self.end.is_confirmed())
    }

    fn window(&self) -> usize {
        WINDOW
    }
}
