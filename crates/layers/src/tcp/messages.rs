//! Messages between two processes on a stream, each behind its length. The system sizes the socket buffers.
//! Later calls send the bytes that do not fit into them. Bytes that arrive are read straight into the buffer
//! of the posted receive.

use super::connection::{closed, lost};
use crate::messages::exchange::{MessageWire, Posted, Progress};
use crate::messages::slots::DEPTH;
use crate::payload::FILL;
use crate::socket::{block_on_events, is_passing};
use netdyno_measure::layer::LayerError;
use netdyno_measure::order::Order;
use rustix::event::PollFlags;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Bytes of the header in front of a message: its length.
const HEADER: usize = 4;

/// Either end of the wire. In every buffer the message stands behind its header.
pub(super) struct TcpMessages {
    stream: TcpStream,
    sends: Vec<Vec<u8>>,
    receives: Vec<Vec<u8>>,
    /// Bytes of the first send that were sent.
    gone: usize,
    /// Bytes of the first receive that have arrived.
    here: usize,
    /// The size of the last message, in bytes. The first read of a message asks for as many bytes, so that
    /// messages of one size take one call each.
    usual: usize,
    /// Bytes that were read beyond the end of a message, where messages became shorter.
    ahead: Vec<u8>,
}

impl TcpMessages {
    /// Returns the wire over a connection that does not block, for messages of up to `largest` bytes.
    pub(super) fn new(stream: TcpStream, largest: usize) -> Self {
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

    /// Returns where the message of this receive ends in the buffer, if its header has arrived.
    fn end(&self, receive: Posted) -> Result<Option<usize>, LayerError> {
        let Some(header) = self.receives[receive.slot][..self.here].first_chunk() else { return Ok(None) };
        let len = u32::from_le_bytes(*header) as usize;
        receive.check(len)?;
        Ok(Some(HEADER + len))
    }

    /// Moves the bytes that were read too far into the buffer of the receive that they belong to.
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
    fn send(&mut self, Posted { slot, bytes }: Posted) -> Result<Progress, LayerError> {
        let (before, end) = (self.gone, HEADER + bytes);
        while self.gone < end {
            match self.stream.write(&self.sends[slot][self.gone..end]) {
                Ok(written) => self.gone += written,
                Err(error) if is_passing(&error) && self.gone == before => return Ok(Progress::None),
                Err(error) if is_passing(&error) => return Ok(Progress::Partial),
                Err(error) => return Err(lost(&error)),
            }
        }
        self.gone = 0;
        Ok(Progress::Complete)
    }

    #[inline(always)]
    fn receive(&mut self, receive: Posted) -> Result<Progress, LayerError> {
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
                return Ok(Progress::Complete);
            }
            let until = end.unwrap_or(HEADER + self.usual.min(bytes));
            match self.stream.read(&mut self.receives[slot][self.here..until]) {
                Ok(0) => return Err(closed()),
                Ok(read) => self.here += read,
                Err(error) if is_passing(&error) && self.here == before => return Ok(Progress::None),
                Err(error) if is_passing(&error) => return Ok(Progress::Partial),
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
