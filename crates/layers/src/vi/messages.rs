//! Messages on a VI. Every message is one send, however long it is, into the buffer of the receive that was
//! posted for it. Neither end copies it.
//!
//! A VI breaks where no receive is posted, so a send waits until the peer has announced one. The peer
//! announces the number of receives that it has posted so far as immediate data of its next message. If it
//! sends no message before its next call, it announces the number by an RDMA write into a word of this
//! process, which takes no receive.

use super::descriptors::{filled, work};
use super::key;
use super::rendezvous::Link;
use crate::messages::exchange::{MessageWire, Posted, Progress};
use crate::messages::slots::DEPTH;
use netdyno_measure::layer::LayerError;
use netdyno_measure::logp::data::Transport;
use netdyno_measure::order::Order;
use netdyno_stack::vi::{Consumer, Finished, Operation, PieceId, Remote, Side, WireKind};
use rustix::event::PollFlags;
use std::time::Duration;

/// The descriptor of the RDMA write that announces receives.
const ANNOUNCEMENT: usize = 0;
/// The descriptor of the send of slot 0. Those of the other slots follow.
const FIRST_SEND: usize = 1;
/// The descriptor of the receive of slot 0. Those of the other slots follow.
const FIRST_RECEIVE: usize = FIRST_SEND + DEPTH;
/// Buffers begin at multiples of a cache line.
const LINE: usize = 64;
/// Bytes of an announced number of receives.
const COUNT_LEN: usize = 4;

/// The state of the first send that is not complete.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SendState {
    /// It is not posted.
    NotPosted,
    /// It is posted.
    Posted,
    /// The wire has it.
    Sent,
}

/// Either end of the wire.
pub(super) struct ViMessages {
    pub(super) link: Link,
    /// The distance of the buffers of slots, in bytes.
    stride: usize,
    sends: PieceId,
    receives: PieceId,
    /// The memory that the RDMA write of an announcement reads.
    own_count: PieceId,
    /// The word that the peer's RDMA writes go to.
    word: PieceId,
    /// The word of the peer.
    peer_word: Remote,
    /// Receives that this end has posted, in all.
    posted: u32,
    /// Receives that this end has announced, in all.
    announced: u32,
    /// Receives that the peer has announced, in all.
    offered: u32,
    /// Receives of the peer that sends have used, in all.
    used: u32,
    sending: SendState,
    /// Whether the RDMA write of an announcement is in flight.
    is_announcing: bool,
}

impl ViMessages {
    /// Opens a VI with a send buffer and a receive buffer for each slot, for messages of up to `largest`
    /// bytes.
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
            peer_word: Remote::default(),
            posted: 0,
            announced: 0,
            offered: 0,
            used: 0,
            sending: SendState::NotPosted,
            is_announcing: false,
        })
    }

    /// Returns the key of the word that the peer is to write to.
    pub(super) fn key(&self) -> Vec<u8> {
        key::write(self.link.consumer.remote(self.word, 0))
    }

    /// Takes the peer's key off the front of its address. Returns the rest.
    pub(super) fn take_key<'a>(&mut self, address: &'a [u8]) -> Result<&'a [u8], LayerError> {
        let (peer_word, rest) = key::take(address)?;
        self.peer_word = peer_word;
        let consumer = &mut self.link.consumer;
        let write = Operation::Write(self.peer_word);
        let announcement = work(consumer, write, (self.own_count, 0, COUNT_LEN), None);
        consumer.describe(ANNOUNCEMENT, &announcement);
        Ok(rest)
    }

    /// Returns whether a receive of the peer is free.
    #[inline(always)]
    fn may_send(&mut self) -> Result<bool, LayerError> {
        if self.offered == self.used {
            // Polling takes what the peer has written.
            while self.take_sent()? {}
            let mut count = [0; COUNT_LEN];
            self.link.consumer.read(self.word, 0, &mut count);
            self.note_offered(u32::from_le_bytes(count))?;
        }
        Ok(self.offered != self.used)
    }

    /// Takes note that the peer has posted `count` receives in all. An older, smaller number has no effect.
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

    /// Announces all posted receives by an RDMA write, which takes no receive.
    fn announce(&mut self) -> Result<(), LayerError> {
        let Link { consumer, vi } = &mut self.link;
        consumer.write(self.own_count, 0, &self.posted.to_le_bytes());
        consumer.post(*vi, Side::Send, ANNOUNCEMENT).map_err(LayerError::new)?;
        (self.is_announcing, self.announced) = (true, self.posted);
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
        (self.sending, self.announced) = (SendState::Posted, self.posted);
        self.used = self.used.wrapping_add(1);
        Ok(())
    }

    /// Takes the posted sends that the wire has.
    #[inline(always)]
    fn reap(&mut self) -> Result<(), LayerError> {
        while (self.is_announcing || self.sending == SendState::Posted) && self.take_sent()? {}
        Ok(())
    }

    /// Takes the next send that the wire has. Returns whether there was one.
    #[inline(always)]
    fn take_sent(&mut self) -> Result<bool, LayerError> {
        let Link { consumer, vi } = &mut self.link;
        match consumer.done(*vi, Side::Send).map_err(LayerError::new)? {
            None => return Ok(false),
            Some(Finished { descriptor: ANNOUNCEMENT, .. }) => self.is_announcing = false,
            Some(_) => self.sending = SendState::Sent,
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
        if self.announced != self.posted && !self.is_announcing {
            self.announce()?;
        }
        self.reap()?;
        Ok(false)
    }

    #[inline(always)]
    fn send(&mut self, send: Posted) -> Result<Progress, LayerError> {
        let is_new = self.sending == SendState::NotPosted;
        if is_new {
            if !self.may_send()? {
                return Ok(Progress::None);
            }
            self.begin(send)?;
        }
        self.reap()?;
        Ok(match self.sending {
            SendState::Sent => {
                self.sending = SendState::NotPosted;
                Progress::Complete
            }
            _ if is_new => Progress::Partial,
            _ => Progress::None,
        })
    }

    #[inline(always)]
    fn receive(&mut self, Posted { bytes, .. }: Posted) -> Result<Progress, LayerError> {
        let Link { consumer, vi } = &mut self.link;
        let done = consumer.done(*vi, Side::Receive).map_err(LayerError::new)?;
        let Some(Finished { completion, .. }) = done else { return Ok(Progress::None) };
        let len = completion.len as usize;
        let Some(count) = completion.immediate.filter(|_| (Order::LEN..=bytes).contains(&len)) else {
            return Err(LayerError(format!("{len} bytes came that are no message")));
        };
        self.note_offered(count)?;
        Ok(Progress::Complete)
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
