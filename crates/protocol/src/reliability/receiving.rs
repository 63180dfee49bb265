//! The receiving side: messages put in order, and when to say what has arrived.

use super::buffers::Buffers;
use crate::frame::datagram::{Datagram, Header};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Messages that can arrive ahead of one that is missing: as many as the selective
/// acknowledgement has bits.
const AHEAD: u32 = 64;
/// Messages received in order before they are acknowledged at once.
const UNACKNOWLEDGED_AT_MOST: u32 = 16;

/// What has arrived, as every header says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// The sequence number that is expected next.
    pub expected: u32,
    /// Bit i: the message `expected + 1 + i` is here.
    pub selective: u64,
}

/// A message ahead of its turn: what it says, and all of it.
type Kept = (Header, Vec<u8>);

/// Messages as they come from the network.
#[derive(Debug)]
pub struct Receiving {
    expected: u32,
    /// Bit i: the message `expected + 1 + i` is kept.
    selective: u64,
    /// What is kept, from the expected message up to the farthest one.
    ahead: VecDeque<Option<Kept>>,
    unacknowledged: u32,
    acknowledgement_delay_ns: u64,
    acknowledge_at_ns: Option<u64>,
    /// An acknowledgement is to travel alone.
    acknowledge_now: bool,
    /// Messages moved past.
    pub delivered: u64,
    /// Messages that had arrived before.
    pub duplicates: u64,
    /// Messages too far ahead to be kept.
    pub beyond: u64,
}

impl Receiving {
    /// Nothing has arrived. An acknowledgement waits for `acknowledgement_delay_ns`.
    pub fn new(first_sequence: u32, acknowledgement_delay_ns: u64) -> Self {
        Self {
            expected: first_sequence,
            selective: 0,
            ahead: VecDeque::new(),
            unacknowledged: 0,
            acknowledgement_delay_ns,
            acknowledge_at_ns: None,
            acknowledge_now: false,
            delivered: 0,
            duplicates: 0,
            beyond: 0,
        }
    }

    /// The sequence number that is expected next.
    pub fn expected(&self) -> u32 {
        self.expected
    }

    /// What has arrived up to now.
    pub fn arrived(&self) -> Arrived {
        Arrived { expected: self.expected, selective: self.selective }
    }

    /// Takes a message. True where it is the next one, which the caller handles after
    /// [`Receiving::advance`]; one that is ahead is kept.
    pub fn take(&mut self, datagram: &Datagram<'_>, now_ns: u64, buffers: &mut Buffers) -> bool {
        let offset = datagram.header.sequence.wrapping_sub(self.expected);
        if offset == 0 {
            if self.acknowledge_at_ns.is_none() {
                self.acknowledge_at_ns = Some(now_ns + self.acknowledgement_delay_ns);
            }
            return true;
        }
        // Whatever is out of order tells of a loss: the sender should know at once.
        self.acknowledge_now = true;
        if offset > u32::MAX / 2 {
            self.duplicates += 1;
        } else if offset > AHEAD {
            self.beyond += 1;
        } else if self.selective >> (offset - 1) & 1 == 1 {
            self.duplicates += 1;
        } else {
            self.keep(offset, datagram, buffers);
        }
        false
    }

    fn keep(&mut self, offset: u32, datagram: &Datagram<'_>, buffers: &mut Buffers) {
        let mut bytes = buffers.take();
        bytes.extend_from_slice(datagram.bytes);
        let at = offset as usize;
        if self.ahead.len() <= at {
            self.ahead.resize_with(at + 1, || None);
        }
        self.ahead[at] = Some((datagram.header, bytes));
        self.selective |= 1 << (offset - 1);
    }

    /// Moves past the message that is expected.
    pub fn advance(&mut self) {
        self.ahead.pop_front();
        self.selective >>= 1;
        self.expected = self.expected.wrapping_add(1);
        self.delivered += 1;
        self.unacknowledged += 1;
        if self.unacknowledged >= UNACKNOWLEDGED_AT_MOST {
            self.acknowledge_now = true;
        }
    }

    /// What was kept and whose turn has come. The caller moves past it.
    pub fn kept(&mut self) -> Option<Kept> {
        self.ahead.front_mut()?.take()
    }

    /// The peer wants to know.
    pub fn acknowledge_now(&mut self) {
        self.acknowledge_now = true;
    }

    /// Whether an acknowledgement is to travel, alone if need be.
    pub fn is_due(&self) -> bool {
        self.acknowledge_now
    }

    /// A datagram left that says all there is to say.
    pub fn told(&mut self) {
        self.unacknowledged = 0;
        self.acknowledge_at_ns = None;
        self.acknowledge_now = false;
    }

    /// When an acknowledgement has waited for long enough.
    pub fn deadline(&self) -> Option<u64> {
        self.acknowledge_at_ns
    }

    /// The time has come, or passed.
    pub fn on_time(&mut self, now_ns: u64) {
        if self.acknowledge_at_ns.is_some_and(|at_ns| at_ns <= now_ns) {
            self.acknowledge_now = true;
        }
    }

    /// Memory for what is ahead.
    pub fn memory_bytes(&self) -> usize {
        self.ahead.capacity() * size_of::<Option<Kept>>()
            + self.ahead.iter().flatten().map(|(_, bytes)| bytes.capacity()).sum::<usize>()
    }
}
