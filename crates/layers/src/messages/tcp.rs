//! Messages on a stream, each behind its length, with the system's own buffers. What does not
//! fit into those is sent by later calls; what comes is read straight into the buffer of the
//! receive that was posted for it.

use super::{DEPTH, MessageWire, Posted, Step};
use crate::sized::FILL;
use crate::socket::{block_on_events, is_passing};
use crate::tcp::lost;
use netdyno_measure::layer::LayerError;
use netdyno_measure::order::Order;
use rustix::event::PollFlags;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Bytes in front of a message: how many it has.
const HEADER: usize = 4;

/// Either end of the wire. In every buffer the message stands behind its header.
pub(crate) struct TcpMessages {
    stream: TcpStream,
    sends: Vec<Vec<u8>>,
    receives: Vec<Vec<u8>>,
    /// Bytes of the first send that are gone.
    gone: usize,
    /// Bytes of the first receive that are here.
    here: usize,
    /// Bytes of the last message that came. As many are asked for first, so that of messages of
    /// one size each takes one call.
    usual: usize,
    /// Where messages became shorter: what was read beyond the end of one.
    ahead: Vec<u8>,
}

impl TcpMessages {
    /// On a connected socket that does not block, for messages up to `largest`.
    pub(crate) fn new(stream: TcpStream, largest: usize) -> Self {
        let buffers = |byte| vec![vec![byte; HEADER + largest]; DEPTH];
        Self {
            stream,
            sends: buffers(FILL),
            receives: buffers(0),
            gone: 0,
            here: 0,
            usual: Order::LEN,
            ahead: Vec::new(),
        }
    }

    /// Where the message ends that comes into that buffer, if so much of it is here.
    fn end(&self, Posted { slot, bytes }: Posted) -> Result<Option<usize>, LayerError> {
        let Some(header) = self.receives[slot][..self.here].first_chunk() else { return Ok(None) };
        let len = u32::from_le_bytes(*header) as usize;
        if !(Order::LEN..=bytes).contains(&len) {
            return Err(LayerError(format!(
                "a message of {len} bytes came, {} to {bytes} were expected",
                Order::LEN
            )));
        }
        Ok(Some(HEADER + len))
    }

    /// Puts what was read too far into the buffer that it belongs to.
    fn catch_up(&mut self, slot: usize) {
        self.here = self.ahead.len();
        self.receives[slot][..self.here].copy_from_slice(&self.ahead);
        self.ahead.clear();
    }
}

impl MessageWire for TcpMessages {
    #[inline(always)]
    fn prepare(&mut self, Posted { slot, bytes }: Posted, order: Order) -> Result<(), LayerError> {
        let buffer = &mut self.sends[slot];
        buffer[..HEADER].copy_from_slice(&(bytes as u32).to_le_bytes());
        buffer[HEADER..HEADER + Order::LEN].copy_from_slice(&order.to_bytes());
        Ok(())
    }

    #[inline(always)]
    fn send(&mut self, Posted { slot, bytes }: Posted) -> Result<Step, LayerError> {
        let (before, end) = (self.gone, HEADER + bytes);
        while self.gone < end {
            match self.stream.write(&self.sends[slot][self.gone..end]) {
                Ok(written) => self.gone += written,
                Err(error) if is_passing(&error) && self.gone == before => return Ok(Step::Nowhere),
                Err(error) if is_passing(&error) => return Ok(Step::Further),
                Err(error) => return Err(lost(&error)),
            }
        }
        self.gone = 0;
        Ok(Step::Complete)
    }

    #[inline(always)]
    fn receive(&mut self, receive: Posted) -> Result<Step, LayerError> {
        let Posted { slot, bytes } = receive;
        if !self.ahead.is_empty() {
            self.catch_up(slot);
        }
        let before = self.here;
        loop {
            let end = self.end(receive)?;
            if let Some(end) = end.filter(|&end| end <= self.here) {
                self.ahead.extend_from_slice(&self.receives[slot][end..self.here]);
                (self.usual, self.here) = (end - HEADER, 0);
                return Ok(Step::Complete);
            }
            let until = end.unwrap_or(HEADER + self.usual.min(bytes));
            match self.stream.read(&mut self.receives[slot][self.here..until]) {
                Ok(0) => return Err(LayerError::new("the other process has closed the connection")),
                Ok(read) => self.here += read,
                Err(error) if is_passing(&error) && self.here == before => return Ok(Step::Nowhere),
                Err(error) if is_passing(&error) => return Ok(Step::Further),
                Err(error) => return Err(lost(&error)),
            }
        }
    }

    fn beginning(&self, slot: usize) -> Result<[u8; Order::LEN], LayerError> {
        let message = self.receives[slot][HEADER..].first_chunk();
        message.copied().ok_or_else(|| LayerError::new("the buffers are too short for messages"))
    }

    fn block(&mut self, events: PollFlags, timeout: Duration) -> Result<(), LayerError> {
        block_on_events(&self.stream, events, timeout)
    }
}
