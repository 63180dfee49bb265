//! Requests and replies of any size between two processes: messages one after the other on a stream. The
//! system sizes the socket buffers. An end that cannot send continues to read, so that two ends that send
//! more than the buffers hold do not wait for each other.

use super::WINDOW;
use super::connection::{closed, lost};
use crate::payload::FILL;
use crate::peer_wait::PeerWait;
use crate::requests::Wire;
use crate::sized::{ANNOUNCEMENT_LEN, SizedEnd, SizedWire, Sizes, is_announcement};
use crate::socket::{block_on, block_on_either, is_passing};
use netdyno_host::wait::Wait;
use netdyno_measure::layer::LayerError;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Either end of the wire.
pub(super) struct SizedTcp {
    stream: TcpStream,
    wait: Wait,
    end: SizedEnd,
    data: Vec<u8>,
    room: Vec<u8>,
    /// Bytes of the next message that have arrived.
    have: usize,
    /// Messages that arrived while this end could not send, and that were not taken.
    ready: usize,
    /// Whether bytes have arrived since [`Wire::has_moved`] was asked.
    has_moved: bool,
}

impl SizedTcp {
    /// Returns the wire over a connection that does not block, for messages of up to `largest` bytes.
    pub(super) fn new(stream: TcpStream, wait: Wait, largest: usize, is_requester: bool) -> Self {
        let room = vec![0; largest.max(ANNOUNCEMENT_LEN)];
        let end = SizedEnd::new(is_requester);
        Self { stream, wait, end, data: vec![FILL; largest], room, have: 0, ready: 0, has_moved: false }
    }

    /// Returns the size of the message that arrives, or of the next one, in bytes.
    fn expected(&self) -> usize {
        if self.have > 0 && is_announcement(self.room[0]) { ANNOUNCEMENT_LEN } else { self.end.incoming() }
    }

    /// Reads up to the end of a message. Returns whether a message with data is complete.
    #[inline(always)]
    fn read(&mut self) -> Result<bool, LayerError> {
        loop {
            let expected = self.expected();
            match self.stream.read(&mut self.room[self.have..expected]) {
                Ok(0) => return Err(closed()),
                Ok(read) => {
                    self.have += read;
                    self.has_moved = true;
                }
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

    /// Sends a few bytes while nothing is in flight, so that there is room for them.
    fn send_small(&mut self, bytes: &[u8]) -> Result<(), LayerError> {
        self.stream.write_all(bytes).map_err(|error| lost(&error))
    }
}

impl Wire for SizedTcp {
    #[inline(always)]
    fn send(&mut self) -> Result<(), LayerError> {
        let (mut sent, all) = (0, self.end.outgoing());
        let mut wait = PeerWait::new(self.wait);
        while sent < all {
            match self.stream.write(&self.data[sent..all]) {
                Ok(written) => {
                    sent += written;
                    // The other process takes bytes, so it is there.
                    wait.note_moved();
                }
                Err(error) if is_passing(&error) => {
                    if self.read()? {
                        self.ready += 1;
                    } else {
                        wait.after_empty_poll(|timeout| block_on_either(&self.stream, timeout))?;
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

    fn has_moved(&mut self) -> bool {
        std::mem::take(&mut self.has_moved)
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

    fn is_confirmed(&self) -> bool {
        self.end.is_confirmed()
    }

    fn window(&self) -> usize {
        WINDOW
    }
}
