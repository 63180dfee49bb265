//! Messages over bare UDP, a datagram each. Nothing is sent again, so nothing must be lost:
//! no more is sent than surely fits into the receive buffer behind what the other end is not
//! known to have taken. What it has taken stands in front of all that it sends, and travels
//! alone where nothing else does. A datagram that the network loses ends the run with an error.

use super::{DEPTH, MessageWire, Posted, Step};
use crate::sized::FILL;
use crate::socket::{block_on_events, is_passing};
use crate::udp::{charge, lost, surely_held};
use netdyno_measure::layer::LayerError;
use netdyno_measure::order::Order;
use rustix::event::PollFlags;
use std::collections::VecDeque;
use std::net::UdpSocket;
use std::time::Duration;

/// Bytes in front of a message: its number, and how many the sender has taken.
const HEADER: usize = 8;
/// The largest message: what a datagram holds.
pub(crate) const MAX_SIZE: usize = crate::sized::udp::MAX_SIZE - HEADER;
/// Looks in vain after which the other end is told what was taken, if nothing went that way.
const LOOKS_IN_VAIN: u32 = 8;

/// Either end of the wire. In every buffer the message stands behind its header.
pub(crate) struct UdpMessages {
    socket: UdpSocket,
    sends: Vec<Vec<u8>>,
    receives: Vec<Vec<u8>>,
    /// Where datagrams come in; one byte longer than the largest, to see one that is too long.
    room: Vec<u8>,
    /// Bytes of the message in the room, where one waits there for its receive.
    waiting: Option<usize>,
    sending: Sending,
    taking: Taking,
}

/// What this end has sent.
struct Sending {
    /// Messages so far.
    count: u32,
    /// Those that the other end is known to have taken.
    taken: u32,
    /// What the others take of its receive buffer, and their sum.
    under_way: VecDeque<usize>,
    sum: usize,
    /// What that may be: the other end's buffer is taken to be like ours.
    most: usize,
    /// The system would not take the last one.
    is_full: bool,
}

impl Sending {
    fn has_room(&self, charge: usize) -> bool {
        self.under_way.is_empty() || self.sum + charge <= self.most
    }

    fn add(&mut self, charge: usize) {
        self.count = self.count.wrapping_add(1);
        self.under_way.push_back(charge);
        self.sum += charge;
    }

    /// The other end has taken so many in all. What cannot be is old, and was overtaken.
    fn settle(&mut self, taken: u32) {
        let news = taken.wrapping_sub(self.taken) as usize;
        if news <= self.under_way.len() {
            self.taken = taken;
            self.sum -= self.under_way.drain(..news).sum::<usize>();
        }
    }
}

/// What this end has taken.
#[derive(Default)]
struct Taking {
    /// Messages so far.
    count: u32,
    /// Those of which the other end has not been told, and what they took of the buffer.
    untold: u32,
    untold_sum: usize,
    looks_in_vain: u32,
}

impl Taking {
    fn add(&mut self, charge: usize) {
        self.count = self.count.wrapping_add(1);
        self.untold += 1;
        self.untold_sum += charge;
        self.looks_in_vain = 0;
    }

    /// Another look in vain: whether the other end is to be told.
    fn is_due(&mut self) -> bool {
        self.looks_in_vain = (self.looks_in_vain + 1).min(LOOKS_IN_VAIN);
        self.untold > 0 && self.looks_in_vain == LOOKS_IN_VAIN
    }

    fn told(&mut self) {
        *self = Self { count: self.count, ..Self::default() };
    }
}

impl UdpMessages {
    /// On a connected socket with a receive buffer of which the system says that it has
    /// `buffer` bytes, for messages up to `largest`.
    pub(crate) fn new(socket: UdpSocket, buffer: usize, largest: usize) -> Self {
        let room = HEADER + largest + 1;
        Self {
            socket,
            sends: vec![vec![FILL; HEADER + largest]; DEPTH],
            receives: vec![vec![0; room]; DEPTH],
            room: vec![0; room],
            waiting: None,
            sending: Sending {
                count: 0,
                taken: 0,
                under_way: VecDeque::new(),
                sum: 0,
                most: surely_held(buffer),
                is_full: false,
            },
            taking: Taking::default(),
        }
    }

    /// The header of what is sent now.
    fn header(&self) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[..4].copy_from_slice(&self.sending.count.to_le_bytes());
        header[4..].copy_from_slice(&self.taking.count.to_le_bytes());
        header
    }

    /// Takes datagrams until a message waits, or nothing is left.
    #[inline(always)]
    fn look(&mut self) -> Result<(), LayerError> {
        while self.waiting.is_none() {
            match self.socket.recv(&mut self.room) {
                Ok(len) => self.take(len)?,
                Err(error) if is_passing(&error) => break,
                Err(error) => return Err(lost(&error)),
            }
        }
        Ok(())
    }

    /// Takes the datagram in the room.
    fn take(&mut self, len: usize) -> Result<(), LayerError> {
        let Some(&[a, b, c, d, taken @ ..]) = self.room[..len].first_chunk::<HEADER>() else {
            return Err(match len {
                0 => LayerError::new("the other process has closed its socket"),
                _ => LayerError(format!("a datagram of {len} bytes came, which is no message")),
            });
        };
        self.sending.settle(u32::from_le_bytes(taken));
        if len == HEADER {
            return Ok(());
        }
        if u32::from_le_bytes([a, b, c, d]) != self.taking.count {
            return Err(LayerError::new(
                "a datagram was lost or overtaken, which bare UDP does not make good: use smaller or fewer messages, or another layer",
            ));
        }
        self.taking.add(charge(len));
        self.waiting = Some(len - HEADER);
        Ok(())
    }

    /// Tells the other end what was taken, in a datagram of its own. One that does not go out
    /// now is due again after the next look.
    fn tell(&mut self) -> Result<(), LayerError> {
        match self.socket.send(&self.header()) {
            Ok(_) => self.taking.told(),
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
    fn send(&mut self, Posted { slot, bytes }: Posted) -> Result<Step, LayerError> {
        let len = HEADER + bytes;
        if !self.sending.has_room(charge(len)) {
            self.look()?;
            if !self.sending.has_room(charge(len)) {
                return Ok(Step::Nowhere);
            }
        }
        let header = self.header();
        self.sends[slot][..HEADER].copy_from_slice(&header);
        let sent = self.socket.send(&self.sends[slot][..len]);
        self.sending.is_full = sent.as_ref().is_err_and(is_passing);
        match sent {
            Ok(_) => {
                self.sending.add(charge(len));
                self.taking.told();
                Ok(Step::Complete)
            }
            Err(error) if is_passing(&error) => Ok(Step::Nowhere),
            Err(error) => Err(lost(&error)),
        }
    }

    #[inline(always)]
    fn receive(&mut self, Posted { slot, bytes }: Posted) -> Result<Step, LayerError> {
        self.look()?;
        let Some(len) = self.waiting.take() else {
            if self.taking.is_due() {
                self.tell()?;
            }
            return Ok(Step::Nowhere);
        };
        if !(Order::LEN..=bytes).contains(&len) {
            return Err(LayerError(format!(
                "a message of {len} bytes came, {} to {bytes} were expected",
                Order::LEN
            )));
        }
        std::mem::swap(&mut self.room, &mut self.receives[slot]);
        // A row of messages must not stop while the other end learns that there is room again.
        if self.taking.untold > 1 && 2 * self.taking.untold_sum >= self.sending.most {
            self.tell()?;
        }
        Ok(Step::Complete)
    }

    fn beginning(&self, slot: usize) -> Result<[u8; Order::LEN], LayerError> {
        let message = self.receives[slot][HEADER..].first_chunk();
        message.copied().ok_or_else(|| LayerError::new("the buffers are too short for messages"))
    }

    /// What the other end has taken comes in as well. Room for what it has not taken is none
    /// that the system knows of.
    fn block(&mut self, _: PollFlags, timeout: Duration) -> Result<(), LayerError> {
        if self.taking.untold > 0 {
            self.tell()?;
        }
        let full = if self.sending.is_full { PollFlags::OUT } else { PollFlags::empty() };
        block_on_events(&self.socket, PollFlags::IN | full, timeout)
    }

    fn on_silence(LayerError(error): LayerError) -> LayerError {
        LayerError(format!("{error}, or a datagram was lost, which bare UDP does not make good"))
    }
}

impl Drop for UdpMessages {
    /// An empty datagram says that no more comes, to an end that sends nothing and so would not
    /// learn it.
    fn drop(&mut self) {
        let _ = self.socket.send(&[]);
    }
}
