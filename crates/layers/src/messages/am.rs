//! Messages by Active Messages. Who posts a receive tells the other end where; a message is a
//! store to there, whose handler says that it came. So each message is copied once, by the
//! sender, and the memory of the receiver is the buffer of the receive. Posted receives are told
//! with the next message, or by a request in the next call.
//!
//! A send waits for its receive to be posted. It is complete once the endpoint holds its bytes
//! no more: over shared memory at once, over UDP when the last of them went into a datagram.

use super::support::Support;
use super::{DEPTH, Exchange, MessageWire, Posted, RealMessenger, Step};
use crate::exposed::{Connected, Unconnected};
use crate::half::{Half, LayerOptions, Replier};
use crate::sized::FILL;
use netdyno_measure::layer::{LayerError, Messenger};
use netdyno_measure::logp::data::Transport;
use netdyno_measure::order::Order;
use netdyno_measure::task::{Messages, Subject};
use netdyno_stack::am::{Handlers, Shared, Stored, Wire as Way};
use rustix::event::PollFlags;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Handler index of requests that say where receives are posted.
const RECEIVES: u8 = 0;
/// Handler index of stores that are messages.
const MESSAGE: u8 = 0;
/// Receives begin at multiples of a line.
const LINE: usize = 64;

/// Words of a message: as many receives can be told with it.
type Told = [u64; 4];

/// A posted receive, as the other end is told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Offer {
    /// Its turn among the receives, modulo their number: what tells of it may be overtaken.
    turn: usize,
    receive: Posted,
}

impl Offer {
    /// In one word, which is not 0: no receive is of no bytes.
    fn to_word(self) -> u64 {
        let Posted { slot, bytes } = self.receive;
        (self.turn as u64) << 40 | (slot as u64) << 32 | bytes as u64
    }

    fn of_word(word: u64) -> Self {
        let byte = |shift: u32| usize::from((word >> shift) as u8);
        Self { turn: byte(40), receive: Posted { slot: byte(32), bytes: word as u32 as usize } }
    }
}

/// What the handlers see.
#[derive(Default)]
struct Tally {
    /// Distance of the buffers of receives, at both ends.
    stride: usize,
    /// The most bytes of the receives of this end, by slot, where they are posted and nothing
    /// came.
    posted: [Option<usize>; DEPTH],
    /// Whether something came for them and was not looked at, by slot.
    has_come: [bool; DEPTH],
    /// Receives of the other end for which nothing was sent, by turn.
    offered: [Option<Posted>; DEPTH],
    /// What cannot be, where it was.
    fault: Option<String>,
}

fn on_offers(tally: &mut Tally, told: Told) {
    for Offer { turn, receive } in told.into_iter().filter(|&word| word != 0).map(Offer::of_word) {
        match tally.offered.get_mut(turn) {
            Some(offered @ None) if receive.slot < DEPTH => *offered = Some(receive),
            _ => tally.fault = Some("the other process posts receives that cannot be".into()),
        }
    }
}

fn on_message(tally: &mut Tally, stored: Stored<'_>) {
    let (offset, len) = (stored.bytes().offset(), stored.bytes().len());
    let slot = offset / tally.stride;
    match tally.posted.get_mut(slot).and_then(Option::take) {
        Some(most) if offset == slot * tally.stride && (Order::LEN..=most).contains(&len) => {
            tally.has_come[slot] = true;
        }
        _ => {
            tally.fault = Some(format!("a message of {len} bytes came for which no receive is posted"));
        }
    }
    on_offers(tally, stored.words());
}

fn handlers() -> Handlers<Tally> {
    let mut handlers = Handlers::new();
    handlers.on_request(RECEIVES, |tally, request| on_offers(tally, request.words()));
    handlers.on_store(MESSAGE, on_message);
    handlers.on_refused(|tally: &mut Tally, refused| tally.fault = Some(refused.to_string()));
    handlers
}

/// Where the buffers of receives lie, for messages up to `largest`.
fn stride(largest: usize) -> usize {
    largest.next_multiple_of(LINE)
}

/// This process's half.
pub(crate) struct MessagesHalf {
    end: Unconnected<Tally>,
    options: LayerOptions,
}

impl MessagesHalf {
    /// Opens an endpoint, a port on `way`, and memory for a receive in each slot.
    pub(crate) fn open(way: Way, options: LayerOptions) -> Result<Self, LayerError> {
        let memory_bytes = DEPTH * stride(options.size_bytes);
        Ok(Self { end: Unconnected::open(way, handlers(), memory_bytes, &options)?, options })
    }

    fn connect(self, peer: &[u8]) -> Result<Exchange<AmMessages>, LayerError> {
        let largest = self.options.size_bytes;
        let wire = AmMessages {
            end: self.end.connect(peer)?,
            tally: Tally { stride: stride(largest), ..Tally::default() },
            next_offer: 0,
            next_taken: 0,
            untold: VecDeque::new(),
            sends: (0..DEPTH).map(|_| Arc::from(vec![FILL; largest])).collect(),
            is_begun: false,
        };
        Ok(Exchange::new(wire, self.options.wait, largest))
    }
}

impl Half for MessagesHalf {
    fn address(&self) -> Vec<u8> {
        self.end.address()
    }

    fn requester(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Subject>, LayerError> {
        Ok(Box::new(Messages(RealMessenger::new(self.connect(peer)?))))
    }

    fn replier(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Replier>, LayerError> {
        Ok(Box::new(Support::new(self.connect(peer)?)))
    }

    fn messenger(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Messenger>, LayerError> {
        Ok(Box::new(RealMessenger::new(self.connect(peer)?)))
    }
}

/// Either end of the wire.
struct AmMessages {
    end: Connected<Tally>,
    tally: Tally,
    /// Turns: of the next receive that is posted here, and of the one that the next send is for.
    next_offer: usize,
    next_taken: usize,
    /// Posted receives that the peer has not been told of.
    untold: VecDeque<u64>,
    /// Shared with the endpoint while it needs them.
    sends: Vec<Arc<[u8]>>,
    /// The endpoint has the bytes of the first send.
    is_begun: bool,
}

impl AmMessages {
    /// Gives the first send to the endpoint, if its receive is posted. Whether it was.
    fn begin(&mut self, Posted { slot, bytes }: Posted) -> Result<bool, LayerError> {
        let Some(receive) = self.tally.offered[self.next_taken].take() else { return Ok(false) };
        self.next_taken = (self.next_taken + 1) % DEPTH;
        if bytes > receive.bytes {
            return Err(LayerError(format!(
                "a message of {bytes} bytes is for a receive of {} at most",
                receive.bytes
            )));
        }
        let (told, offset) = (self.tell(), receive.slot * self.tally.stride);
        let Self { end, tally, sends, .. } = self;
        let remote = end.attached(tally)?;
        let (endpoint, message) = (&mut end.endpoint, Shared::first(Arc::clone(&sends[slot]), bytes));
        match told {
            None => endpoint.store_shared(tally, remote, offset, message, MESSAGE, []),
            Some(told) => endpoint.store_shared(tally, remote, offset, message, MESSAGE, told),
        }
        .map_err(LayerError::new)?;
        self.is_begun = true;
        Ok(true)
    }

    /// The next posted receives to be told, if there are any.
    #[inline(always)]
    fn tell(&mut self) -> Option<Told> {
        let Self { untold, .. } = self;
        (!untold.is_empty()).then(|| std::array::from_fn(|_| untold.pop_front().unwrap_or(0)))
    }
}

impl MessageWire for AmMessages {
    #[inline(always)]
    fn expect(&mut self, receive: Posted) -> Result<(), LayerError> {
        self.tally.posted[receive.slot] = Some(receive.bytes);
        self.untold.push_back(Offer { turn: self.next_offer, receive }.to_word());
        self.next_offer = (self.next_offer + 1) % DEPTH;
        Ok(())
    }

    #[inline(always)]
    fn prepare(&mut self, Posted { slot, .. }: Posted, order: Order) -> Result<(), LayerError> {
        Arc::make_mut(&mut self.sends[slot])[..Order::LEN].copy_from_slice(&order.to_bytes());
        Ok(())
    }

    #[inline(always)]
    fn poll(&mut self) -> Result<bool, LayerError> {
        while let Some(told) = self.tell() {
            let Self { end, tally, .. } = self;
            end.endpoint.request(tally, end.peer, RECEIVES, told).map_err(LayerError::new)?;
        }
        let handled = self.end.endpoint.poll(&mut self.tally).map_err(LayerError::new)?;
        match self.tally.fault.take() {
            Some(fault) => Err(LayerError(fault)),
            None => Ok(handled > 0),
        }
    }

    #[inline(always)]
    fn send(&mut self, send: Posted) -> Result<Step, LayerError> {
        let was_begun = self.is_begun;
        if !was_begun && !self.begin(send)? {
            return Ok(Step::Nowhere);
        }
        if Arc::get_mut(&mut self.sends[send.slot]).is_none() {
            return Ok(if was_begun { Step::Nowhere } else { Step::Further });
        }
        self.is_begun = false;
        Ok(Step::Complete)
    }

    #[inline(always)]
    fn receive(&mut self, Posted { slot, .. }: Posted) -> Result<Step, LayerError> {
        let has_come = std::mem::take(&mut self.tally.has_come[slot]);
        Ok(if has_come { Step::Complete } else { Step::Nowhere })
    }

    fn beginning(&self, slot: usize) -> Result<[u8; Order::LEN], LayerError> {
        let mut beginning = [0; Order::LEN];
        self.end.memory.read(slot * self.tally.stride, &mut beginning).map_err(LayerError::new)?;
        Ok(beginning)
    }

    fn block(&mut self, _: PollFlags, timeout: Duration) -> Result<(), LayerError> {
        self.end.endpoint.idle(timeout);
        Ok(())
    }

    fn transport(&self) -> Option<Transport> {
        crate::am::transport(&self.end.endpoint, self.end.peer)
    }
}
