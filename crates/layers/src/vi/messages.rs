//! Messages on a VI: a message is one send, however long it is, into the buffer of the receive that was
//! posted for it. Nothing is copied before or behind.
//!
//! A VI breaks where no receive is posted, so a send waits until the other end has told of one. It tells
//! how many it has posted so far: as immediate data of the next message, or, where none goes out before the
//! next call, by an RDMA write of that number into a word here, which takes no receive.

use super::meeting::Link;
use super::requests::{filled, work};
use crate::messages::{DEPTH, MessageWire, Posted, Step};
use netdyno_measure::layer::LayerError;
use netdyno_measure::logp::data::Transport;
use netdyno_measure::order::Order;
use netdyno_stack::vi::{Consumer, Finished, Operation, PieceId, Remote, Side, WireKind};
use rustix::event::PollFlags;
use std::time::Duration;

/// Descriptors: of what tells of receives, from there on of sends by slot, then of receives by slot.
const TELL: usize = 0;
const FIRST_SEND: usize = 1;
const FIRST_RECEIVE: usize = FIRST_SEND + DEPTH;
/// Buffers begin at multiples of a line.
const LINE: usize = 64;
/// Bytes of a number of receives.
const COUNT_LEN: usize = 4;
/// Bytes of a key: which word the other end writes to.
const KEY_LEN: usize = 12;

/// How far the first send that is not complete has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sending {
    Nothing,
    /// It is posted.
    Begun,
    /// The wire has it.
    Over,
}

/// Either end of the wire.
pub(super) struct ViMessages {
    pub(super) link: Link,
    /// Distance of the buffers of slots.
    stride: usize,
    sends: PieceId,
    receives: PieceId,
    /// What the other end is told of, and what it has told of by RDMA.
    own_count: PieceId,
    word: PieceId,
    /// Where that of the other end is.
    other_word: Remote,
    /// Receives that are posted here, in all, and those that the other end knows of.
    posted: u32,
    told: u32,
    /// Receives of the other end's that are told of with messages, in all, and those that are used.
    offered: u32,
    used: u32,
    sending: Sending,
    /// An RDMA write that tells is under way.
    is_telling: bool,
}

impl ViMessages {
    /// A VI with a buffer each way for each slot, for messages up to `largest`.
    pub(super) fn open(wire: WireKind, largest: usize) -> Result<Self, LayerError> {
        let mut consumer = Consumer::open(wire, FIRST_RECEIVE + DEPTH).map_err(LayerError::new)?;
        let stride = largest.next_multiple_of(LINE);
        let sends = filled(&mut consumer, DEPTH * stride)?;
        let receives = filled(&mut consumer, DEPTH * stride)?;
        let own_count = filled(&mut consumer, COUNT_LEN)?;
        let word = consumer.allocate(COUNT_LEN).map_err(LayerError::new)?;
        consumer.register(word, true).map_err(LayerError::new)?;
        let vi = consumer.create_vi(None).map_err(LayerError::new)?;
        Ok(Self {
            link: Link { consumer, vi },
            stride,
            sends,
            receives,
            own_count,
            word,
            other_word: Remote::default(),
            posted: 0,
            told: 0,
            offered: 0,
            used: 0,
            sending: Sending::Nothing,
            is_telling: false,
        })
    }

    /// Which word the other end is to write to.
    pub(super) fn key(&self) -> Vec<u8> {
        let Remote { address, handle } = self.link.consumer.remote(self.word, 0);
        [&address.to_le_bytes()[..], &handle.to_le_bytes()].concat()
    }

    /// Takes the other end's key off its address.
    pub(super) fn take_key<'a>(&mut self, address: &'a [u8]) -> Result<&'a [u8], LayerError> {
        let (&key, rest) = address
            .split_first_chunk::<KEY_LEN>()
            .ok_or_else(|| LayerError::new("the address of the other process is too short"))?;
        let [a, b, c, d, e, f, g, h, handle @ ..] = key;
        let address = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        self.other_word = Remote { address, handle: u32::from_le_bytes(handle) };
        let consumer = &mut self.link.consumer;
        let write = Operation::Write(self.other_word);
        let tell = work(consumer, write, (self.own_count, 0, COUNT_LEN), None);
        consumer.describe(TELL, &tell);
        Ok(rest)
    }

    /// Whether a receive of the other end's is free.
    #[inline(always)]
    fn may_send(&mut self) -> Result<bool, LayerError> {
        if self.offered == self.used {
            // What the other end has written is taken by looking.
            while self.look()? {}
            let mut count = [0; COUNT_LEN];
            self.link.consumer.read(self.word, 0, &mut count);
            self.note_offered(u32::from_le_bytes(count))?;
        }
        Ok(self.offered != self.used)
    }

    /// The other end has posted so many receives in all. What was told before is older.
    #[inline(always)]
    fn note_offered(&mut self, count: u32) -> Result<(), LayerError> {
        let free = count.wrapping_sub(self.used).cast_signed();
        if free > DEPTH as i32 {
            return Err(LayerError::new("the other process posts receives that cannot be"));
        }
        if free > self.offered.wrapping_sub(self.used).cast_signed() {
            self.offered = count;
        }
        Ok(())
    }

    /// Tells the other end of all receives, in a message of its own that takes none.
    fn tell(&mut self) -> Result<(), LayerError> {
        let Link { consumer, vi } = &mut self.link;
        consumer.write(self.own_count, 0, &self.posted.to_le_bytes());
        consumer.post(*vi, Side::Send, TELL).map_err(LayerError::new)?;
        (self.is_telling, self.told) = (true, self.posted);
        Ok(())
    }

    /// Posts the send of the slot.
    #[inline(always)]
    fn begin(&mut self, Posted { slot, bytes }: Posted) -> Result<(), LayerError> {
        let Link { consumer, vi } = &mut self.link;
        let message = (self.sends, slot * self.stride, bytes);
        let message = work(consumer, Operation::Send, message, Some(self.posted));
        consumer.describe(FIRST_SEND + slot, &message);
        consumer.post(*vi, Side::Send, FIRST_SEND + slot).map_err(LayerError::new)?;
        (self.sending, self.told) = (Sending::Begun, self.posted);
        self.used = self.used.wrapping_add(1);
        Ok(())
    }

    /// Takes what the wire has of what was posted.
    #[inline(always)]
    fn reap(&mut self) -> Result<(), LayerError> {
        while (self.is_telling || self.sending == Sending::Begun) && self.look()? {}
        Ok(())
    }

    /// Takes the next send that is over. Whether there was one.
    #[inline(always)]
    fn look(&mut self) -> Result<bool, LayerError> {
        let Link { consumer, vi } = &mut self.link;
        match consumer.done(*vi, Side::Send).map_err(LayerError::new)? {
            None => return Ok(false),
            Some(Finished { descriptor: TELL, .. }) => self.is_telling = false,
            Some(_) => self.sending = Sending::Over,
        }
        Ok(true)
    }
}

impl MessageWire for ViMessages {
    #[inline(always)]
    fn expect(&mut self, Posted { slot, bytes }: Posted) -> Result<(), LayerError> {
        let Link { consumer, vi } = &mut self.link;
        let receive = (self.receives, slot * self.stride, bytes);
        let receive = work(consumer, Operation::Receive, receive, None);
        consumer.describe(FIRST_RECEIVE + slot, &receive);
        consumer.post(*vi, Side::Receive, FIRST_RECEIVE + slot).map_err(LayerError::new)?;
        self.posted = self.posted.wrapping_add(1);
        Ok(())
    }

    #[inline(always)]
    fn prepare(&mut self, Posted { slot, .. }: Posted, order: Order) -> Result<(), LayerError> {
        self.link.consumer.write(self.sends, slot * self.stride, &order.to_bytes());
        Ok(())
    }

    #[inline(always)]
    fn poll(&mut self) -> Result<bool, LayerError> {
        if self.told != self.posted && !self.is_telling {
            self.tell()?;
        }
        self.reap()?;
        Ok(false)
    }

    #[inline(always)]
    fn send(&mut self, send: Posted) -> Result<Step, LayerError> {
        let is_new = self.sending == Sending::Nothing;
        if is_new {
            if !self.may_send()? {
                return Ok(Step::Nowhere);
            }
            self.begin(send)?;
        }
        self.reap()?;
        Ok(match self.sending {
            Sending::Over => {
                self.sending = Sending::Nothing;
                Step::Complete
            }
            _ if is_new => Step::Further,
            _ => Step::Nowhere,
        })
    }

    #[inline(always)]
    fn receive(&mut self, Posted { bytes, .. }: Posted) -> Result<Step, LayerError> {
        let Link { consumer, vi } = &mut self.link;
        let done = consumer.done(*vi, Side::Receive).map_err(LayerError::new)?;
        let Some(Finished { completion, .. }) = done else { return Ok(Step::Nowhere) };
        let len = completion.len as usize;
        let Some(count) = completion.immediate.filter(|_| (Order::LEN..=bytes).contains(&len)) else {
            return Err(LayerError(format!("{len} bytes came that are no message")));
        };
        self.note_offered(count)?;
        Ok(Step::Complete)
    }

    fn beginning(&self, slot: usize) -> Result<[u8; Order::LEN], LayerError> {
        let mut beginning = [0; Order::LEN];
        self.link.consumer.read(self.receives, slot * self.stride, &mut beginning);
        Ok(beginning)
    }

    fn block(&mut self, _: PollFlags, timeout: Duration) -> Result<(), LayerError> {
        self.link.consumer.sleep(timeout);
        Ok(())
    }

    fn transport(&self) -> Option<Transport> {
        self.link.transport()
    }
}
