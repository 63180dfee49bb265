//! Messages between two processes. The receiver offers the buffers of its posted receives to the sender, and
//! a message is one store into such a buffer. The sender copies each message once; the receiver copies
//! nothing. Offers travel with the next message, or as a request in the next call.
//!
//! A send waits until its receive is posted. It is complete when the endpoint needs its bytes no more: over
//! shared memory at once, over UDP when the last byte is in a datagram.

use super::store::{StoreEndpoint, StoreLink};
use crate::half::{Half, Replier};
use crate::messages::exchange::{Exchange, MessageWire, Posted, Progress};
use crate::messages::slots::DEPTH;
use crate::messages::support::Support;
use crate::messages::threaded::{SleepingWire, Threaded};
use crate::messages::worker::RealMessenger;
use crate::options::LayerOptions;
use crate::payload::FILL;
use netdyno_measure::layer::{LayerError, Messenger};
use netdyno_measure::logp::data::Transport;
use netdyno_measure::order::Order;
use netdyno_measure::overlap::data::ProgressBy;
use netdyno_measure::task::{Messages, Subject};
use netdyno_stack::am::{Handlers, Shared, Stored, Wire as Way};
use rustix::event::PollFlags;
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

/// The handler index of requests with offers.
const OFFERS: u8 = 0;
/// The handler index of stores that are messages.
const MESSAGE: u8 = 0;
/// The buffers of receives begin at multiples of a cache line.
const LINE: usize = 64;

/// The words of a message, each with one offer, or 0.
type Offers = [u64; 4];

/// A posted receive, as the receiver offers it to the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Offer {
    /// The sequence number of the receive modulo [`DEPTH`], because one offer may overtake another.
    sequence: usize,
    receive: Posted,
}

impl Offer {
    /// Returns the offer as one word. It is not 0, because every receive has bytes.
    fn to_word(self) -> u64 {
        let Posted { slot, bytes } = self.receive;
        (self.sequence as u64) << 40 | (slot as u64) << 32 | bytes as u64
    }

    fn of_word(word: u64) -> Self {
        let byte = |shift: u32| usize::from((word >> shift) as u8);
        Self { sequence: byte(40), receive: Posted { slot: byte(32), bytes: word as u32 as usize } }
    }
}

/// The state of the handlers.
#[derive(Default)]
struct MessagesState {
    /// The distance of the buffers of receives, in bytes, the same at both ends.
    stride: usize,
    /// The capacities of the receives of this end that are posted and empty, by slot, in bytes.
    posted: [Option<usize>; DEPTH],
    /// Whether a message has come into the slot and was not taken.
    has_come: [bool; DEPTH],
    /// The receives that the peer has offered and that are not used, by sequence number.
    offered: [Option<Posted>; DEPTH],
    /// The violation of the protocol by the peer, if there was one.
    fault: Option<String>,
}

fn on_offers(state: &mut MessagesState, offers: Offers) {
    for Offer { sequence, receive } in offers.into_iter().filter(|&word| word != 0).map(Offer::of_word) {
        match state.offered.get_mut(sequence) {
            Some(offered @ None) if receive.slot < DEPTH => *offered = Some(receive),
            _ => state.fault = Some("the other process posts receives that cannot be".into()),
        }
    }
}

fn on_message(state: &mut MessagesState, stored: Stored<'_>) {
    let (offset, len) = (stored.bytes().offset(), stored.bytes().len());
    let slot = offset / state.stride;
    match state.posted.get_mut(slot).and_then(Option::take) {
        Some(most) if offset == slot * state.stride && (Order::LEN..=most).contains(&len) => {
            state.has_come[slot] = true;
        }
        _ => {
            state.fault = Some(format!("a message of {len} bytes came for which no receive is posted"));
        }
    }
    on_offers(state, stored.words());
}

fn handlers() -> Handlers<MessagesState> {
    let mut handlers = Handlers::new();
    handlers.on_request(OFFERS, |state, request| on_offers(state, request.words()));
    handlers.on_store(MESSAGE, on_message);
    handlers.on_refused(|state: &mut MessagesState, refused| state.fault = Some(refused.to_string()));
    handlers
}

/// Returns the distance of the buffers of receives for messages of up to `largest`, in bytes.
fn stride(largest: usize) -> usize {
    largest.next_multiple_of(LINE)
}

/// This process's half for messages.
pub(crate) struct AmMessagesHalf {
    end: StoreEndpoint<MessagesState>,
    options: LayerOptions,
}

impl AmMessagesHalf {
    /// Opens an endpoint, a port on `way`, and memory for a receive in each slot.
    pub(crate) fn open(way: Way, options: LayerOptions) -> Result<Self, LayerError> {
        let memory_bytes = DEPTH * stride(options.size_bytes);
        Ok(Self { end: StoreEndpoint::open(way, handlers(), memory_bytes, &options)?, options })
    }

    fn connect(self, peer: &[u8]) -> Result<Exchange<AmMessages>, LayerError> {
        let largest = self.options.size_bytes;
        let wire = AmMessages {
            end: self.end.connect(peer)?,
            state: MessagesState { stride: stride(largest), ..MessagesState::default() },
            next_offer: 0,
            next_taken: 0,
            unsent: VecDeque::new(),
            sends: (0..DEPTH).map(|_| Arc::from(vec![FILL; largest])).collect(),
            is_begun: false,
        };
        Ok(Exchange::new(wire, self.options.wait, largest))
    }
}

impl Half for AmMessagesHalf {
    fn address(&self) -> Vec<u8> {
        self.end.address()
    }

    fn library(&self) -> Option<&str> {
        self.end.description()
    }

    fn requester(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Subject>, LayerError> {
        let progress_by = self.options.progress_by;
        let exchange = self.connect(peer)?;
        Ok(match progress_by {
            ProgressBy::Calls => Box::new(Messages(RealMessenger::new(exchange))),
            ProgressBy::Thread => Box::new(Messages(RealMessenger::new(Threaded::start(exchange)?))),
        })
    }

    fn replier(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Replier>, LayerError> {
        Ok(Box::new(Support::new(self.connect(peer)?)))
    }

    fn messenger(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Messenger>, LayerError> {
        let progress_by = self.options.progress_by;
        let exchange = self.connect(peer)?;
        Ok(match progress_by {
            ProgressBy::Calls => Box::new(RealMessenger::new(exchange)),
            ProgressBy::Thread => Box::new(RealMessenger::new(Threaded::start(exchange)?)),
        })
    }
}

/// Either end of the wire.
struct AmMessages {
    end: StoreLink<MessagesState>,
    state: MessagesState,
    /// The sequence number of the next receive that is posted here.
    next_offer: usize,
    /// The sequence number of the receive that the next send goes to.
    next_taken: usize,
    /// Offers that were not sent yet.
    unsent: VecDeque<u64>,
    /// The buffers of sends, which are shared with the endpoint while it needs them.
    sends: Vec<Arc<[u8]>>,
    /// Whether the endpoint has the bytes of the first send.
    is_begun: bool,
}

impl AmMessages {
    /// Gives the first send to the endpoint, if its receive is posted. Returns whether it was.
    fn begin(&mut self, Posted { slot, bytes }: Posted) -> Result<bool, LayerError> {
        let Some(receive) = self.state.offered[self.next_taken].take() else { return Ok(false) };
        self.next_taken = (self.next_taken + 1) % DEPTH;
        if bytes > receive.bytes {
            return Err(LayerError(format!(
                "a message of {bytes} bytes is for a receive of {} at most",
                receive.bytes
            )));
        }
        let (offers, offset) = (self.take_offers(), receive.slot * self.state.stride);
        let Self { end, state, sends, .. } = self;
        let remote = end.attached(state)?;
        let (endpoint, message) = (&mut end.endpoint, Shared::first(Arc::clone(&sends[slot]), bytes));
        match offers {
            None => endpoint.store_shared(state, remote.at(offset), message, MESSAGE, []),
            Some(offers) => endpoint.store_shared(state, remote.at(offset), message, MESSAGE, offers),
        }
        .map_err(LayerError::new)?;
        self.is_begun = true;
        Ok(true)
    }

    /// Takes the next offers to send, if there are any.
    #[inline(always)]
    fn take_offers(&mut self) -> Option<Offers> {
        let Self { unsent, .. } = self;
        (!unsent.is_empty()).then(|| std::array::from_fn(|_| unsent.pop_front().unwrap_or(0)))
    }
}

impl SleepingWire for AmMessages {
    fn prepare_sleep(&mut self) -> Duration {
        self.end.endpoint.until_due()
    }

    fn cancel_sleep(&mut self) {
        self.end.endpoint.cancel_sleep();
    }

    fn must_end_sleep(&mut self, left: Duration) -> bool {
        !self.unsent.is_empty() || self.end.endpoint.must_end_sleep(left)
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.end.endpoint.as_fd()
    }
}

impl MessageWire for AmMessages {
    #[inline(always)]
    fn expect(&mut self, receive: Posted) -> Result<(), LayerError> {
        self.state.posted[receive.slot] = Some(receive.bytes);
        self.unsent.push_back(Offer { sequence: self.next_offer, receive }.to_word());
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
        while let Some(offers) = self.take_offers() {
            let Self { end, state, .. } = self;
            end.endpoint.request(state, end.peer, OFFERS, offers).map_err(LayerError::new)?;
        }
        let handled = self.end.endpoint.poll(&mut self.state).map_err(LayerError::new)?;
        match self.state.fault.take() {
            Some(fault) => Err(LayerError(fault)),
            None => Ok(handled > 0),
        }
    }

    #[inline(always)]
    fn send(&mut self, send: Posted) -> Result<Progress, LayerError> {
        let was_begun = self.is_begun;
        if !was_begun && !self.begin(send)? {
            return Ok(Progress::None);
        }
        if Arc::get_mut(&mut self.sends[send.slot]).is_none() {
            return Ok(if was_begun { Progress::None } else { Progress::Partial });
        }
        self.is_begun = false;
        Ok(Progress::Complete)
    }

    #[inline(always)]
    fn receive(&mut self, Posted { slot, .. }: Posted) -> Result<Progress, LayerError> {
        let has_come = std::mem::take(&mut self.state.has_come[slot]);
        Ok(if has_come { Progress::Complete } else { Progress::None })
    }

    fn beginning(&self, slot: usize) -> Result<[u8; Order::LEN], LayerError> {
        let mut beginning = [0; Order::LEN];
        self.end.memory.read(slot * self.state.stride, &mut beginning).map_err(LayerError::new)?;
        Ok(beginning)
    }

    fn block(&mut self, _: PollFlags, timeout: Duration) -> Result<(), LayerError> {
        self.end.endpoint.idle(timeout);
        Ok(())
    }

    fn transport(&self) -> Option<Transport> {
        self.end.transport()
    }
}
