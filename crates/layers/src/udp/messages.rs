//! Messages between two processes, a datagram each. No datagram is retransmitted, so no datagram must be
//! lost: the sender never has more datagrams in flight than surely fit into the receive buffer. Every
//! datagram acknowledges the messages that its sender has taken; an acknowledgement travels alone where no
//! message goes that way. A datagram that the network loses ends the run with an error.

use super::port::{charge, lost, surely_held};
use crate::messages::exchange::{MessageWire, Posted, Progress};
use crate::messages::slots::DEPTH;
use crate::payload::FILL;
use crate::socket::{block_on_events, is_passing};
use netdyno_measure::layer::LayerError;
use netdyno_measure::order::Order;
use rustix::event::PollFlags;
use std::collections::VecDeque;
use std::net::UdpSocket;
use std::time::Duration;

/// Bytes of the header in front of a message: its sequence number, and the number of messages that its sender
/// has taken.
const HEADER: usize = 8;
/// The largest message, in bytes: a datagram without the header.
pub(crate) const MAX_SIZE: usize = super::sized::MAX_SIZE - HEADER;
/// Empty polls after which an acknowledgement travels alone.
const EMPTY_POLLS: u32 = 8;

/// Either end of the wire. In every buffer the message stands behind its header.
pub(super) struct UdpMessages {
    socket: UdpSocket,
    sends: Vec<Vec<u8>>,
    receives: Vec<Vec<u8>>,
    /// The buffer that datagrams come into. It is one byte longer than the largest datagram, so that a longer
    /// one is noticed.
    room: Vec<u8>,
    /// Bytes of the message in `room`, if one waits there for its receive.
    waiting: Option<usize>,
    sent: SentMessages,
    taken: TakenMessages,
}

/// The messages that this end has sent.
struct SentMessages {
    /// Messages so far.
    count: u32,
    /// Messages that the peer has acknowledged.
    acknowledged: u32,
    /// The charges of the messages in flight to the peer's receive buffer, in bytes.
    in_flight: VecDeque<usize>,
    /// The sum of these charges.
    sum: usize,
    /// The largest sum that the peer's receive buffer surely holds. It is assumed to be as large as the
    /// buffer of this end.
    most: usize,
    /// Whether the system has refused the last message, because the send buffer was full.
    is_full: bool,
}

impl SentMessages {
    fn has_room(&self, charge: usize) -> bool {
        self.in_flight.is_empty() || self.sum + charge <= self.most
    }

    fn add(&mut self, charge: usize) {
        self.count = self.count.wrapping_add(1);
        self.in_flight.push_back(charge);
        self.sum += charge;
    }

    /// Takes the acknowledgement of `count` messages in all. A number that is out of range is an old one,
    /// which was overtaken.
    fn acknowledge(&mut self, count: u32) {
        let news = count.wrapping_sub(self.acknowledged) as usize;
        if news <= self.in_flight.len() {
            self.acknowledged = count;
            self.sum -= self.in_flight.drain(..news).sum::<usize>();
        }
    }
}

/// The messages that this end has taken.
#[derive(Default)]
struct TakenMessages {
    /// Messages so far.
    count: u32,
    /// Messages that this end has not acknowledged.
    unacknowledged: u32,
    /// The sum of their charges, in bytes.
    unacknowledged_sum: usize,
    /// Empty polls since the last message.
    empty_polls: u32,
}

impl TakenMessages {
    fn add(&mut self, charge: usize) {
        self.count = self.count.wrapping_add(1);
        self.unacknowledged += 1;
        self.unacknowledged_sum += charge;
        self.empty_polls = 0;
    }

    /// Counts an empty poll. Returns whether an acknowledgement is due.
    fn is_due(&mut self) -> bool {
        self.empty_polls = (self.empty_polls + 1).min(EMPTY_POLLS);
        self.unacknowledged > 0 && self.empty_polls == EMPTY_POLLS
    }

    fn note_acknowledged(&mut self) {
        *self = Self { count: self.count, ..Self::default() };
    }
}

impl UdpMessages {
    /// Returns the wire over a connected socket, for messages of up to `largest` bytes. The receive buffer
    /// has `buffer` bytes, as the system states its size.
    pub(super) fn new(socket: UdpSocket, buffer: usize, largest: usize) -> Self {
        let room = HEADER + largest + 1;
        Self {
            socket,
            sends: vec![vec![FILL; HEADER + largest]; DEPTH],
            receives: vec![vec![0; room]; DEPTH],
            room: vec![0; room],
            waiting: None,
            sent: SentMessages {
                count: 0,
                acknowledged: 0,
                in_flight: VecDeque::new(),
                sum: 0,
                most: surely_held(buffer),
                is_full: false,
            },
            taken: TakenMessages::default(),
        }
    }

    /// Returns the header of the next datagram.
    fn header(&self) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[..4].copy_from_slice(&self.sent.count.to_le_bytes());
        header[4..].copy_from_slice(&self.taken.count.to_le_bytes());
        header
    }

    /// Takes datagrams until a message waits for its receive, or no datagram is left.
    #[inline(always)]
    fn take_datagrams(&mut self) -> Result<(), LayerError> {
        while self.waiting.is_none() {
            match self.socket.recv(&mut self.room) {
                Ok(len) => self.take(len)?,
                Err(error) if is_passing(&error) => break,
                Err(error) => return Err(lost(&error)),
            }
        }
        Ok(())
    }

    /// Takes the datagram of `len` bytes in `room`.
    fn take(&mut self, len: usize) -> Result<(), LayerError> {
        let Some(&[a, b, c, d, acknowledged @ ..]) = self.room[..len].first_chunk::<HEADER>() else {
            return Err(match len {
                0 => LayerError::new("the other process has closed its socket"),
                _ => LayerError(format!("a datagram of {len} bytes came, which is no message")),
            });
        };
        self.sent.acknowledge(u32::from_le_bytes(acknowledged));
        if len == HEADER {
            return Ok(());
        }
        if u32::from_le_bytes([a, b, c, d]) != self.taken.count {
            return Err(LayerError::new(
                "a datagram was lost or overtaken, which bare UDP does not make good: use smaller or fewer messages, or another layer",
            ));
        }
        self.taken.add(charge(len));
        self.waiting = Some(len - HEADER);
        Ok(())
    }

    /// Sends an acknowledgement in a datagram of its own. If the system refuses it now, it is due again after
    /// the next poll.
    fn send_acknowledgement(&mut self) -> Result<(), LayerError> {
        match self.socket.send(&self.header()) {
            Ok(_) => self.taken.note_acknowledged(),
            Err(error) if is_passing(&error) => {}
            Err(error) => return Err(lost(&error)),
        }
        Ok(())
    }
}

impl MessageWire for UdpMessages {
    #[inline(always)]
    fn prepare(&mut self, Posted { slot, .. }: Posted, order: Order) -> Result<(), LayerError> {
        self.sends[slot][HEADER..HEADER + Order::LEN].copy_from_slice(&order.to_bytes());
        Ok(())
    }

    #[inline(always)]
    fn send(&mut self, Posted { slot, bytes }: Posted) -> Result<Progress, LayerError> {
        let len = HEADER + bytes;
        if !self.sent.has_room(charge(len)) {
            self.take_datagrams()?;
            if !self.sent.has_room(charge(len)) {
                return Ok(Progress::None);
            }
        }
        let header = self.header();
        self.sends[slot][..HEADER].copy_from_slice(&header);
        let sent = self.socket.send(&self.sends[slot][..len]);
        self.sent.is_full = sent.as_ref().is_err_and(is_passing);
        match sent {
            Ok(_) => {
                self.sent.add(charge(len));
                self.taken.note_acknowledged();
                Ok(Progress::Complete)
            }
            Err(error) if is_passing(&error) => Ok(Progress::None),
            Err(error) => Err(lost(&error)),
        }
    }

    #[inline(always)]
    fn receive(&mut self, receive: Posted) -> Result<Progress, LayerError> {
        self.take_datagrams()?;
        let Some(len) = self.waiting.take() else {
            if self.taken.is_due() {
                self.send_acknowledgement()?;
            }
            return Ok(Progress::None);
        };
        receive.check(len)?;
        std::mem::swap(&mut self.room, &mut self.receives[receive.slot]);
        // A sequence of messages must not stall until the peer learns that there is room again.
        if self.taken.unacknowledged > 1 && 2 * self.taken.unacknowledged_sum >= self.sent.most {
            self.send_acknowledgement()?;
        }
        Ok(Progress::Complete)
    }

    fn beginning(&self, slot: usize) -> Result<[u8; Order::LEN], LayerError> {
        let message = self.receives[slot][HEADER..].first_chunk();
        message.copied().ok_or_else(|| LayerError::new("the buffers are too short for messages"))
    }

    /// Acknowledgements come in as well, so the socket is always watched for datagrams. The system does not
    /// know of room in the peer's receive buffer.
    fn block(&mut self, _: PollFlags, timeout: Duration) -> Result<(), LayerError> {
        if self.taken.unacknowledged > 0 {
            self.send_acknowledgement()?;
        }
        let full = if self.sent.is_full { PollFlags::OUT } else { PollFlags::empty() };
        block_on_events(&self.socket, PollFlags::IN | full, timeout)
    }

    fn on_timeout(LayerError(error): LayerError) -> LayerError {
        LayerError(format!("{error}, or a datagram was lost, which bare UDP does not make good"))
    }
}

impl Drop for UdpMessages {
    /// Sends an empty datagram, which tells the peer that this end is closed. A peer that sends nothing would
    /// not learn it from the system.
    fn drop(&mut self) {
        let _ = self.socket.send(&[]);
    }
}
