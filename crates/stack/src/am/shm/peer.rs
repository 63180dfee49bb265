//! One connection over shared memory: its four rings, its credits, and the state of the peer.

use super::outbox::{ShmOutbox, header, stamp};
use super::port::{CLOSED, ENDPOINT, Layout, ShmPort, TAKEN, wakeup_of};
use super::transfers::Bulk;
use crate::am::call::Call;
use crate::am::dial::{Inlet, Interface};
use crate::am::error::{ConnectError, Loss, PeerLost, RequestError};
use crate::am::handlers::{Content, Offer, Outbox, Reply, ReplySlot, Request};
use crate::am::peer_id::{PeerId, Wire};
use netdyno_clock::ticks;
use netdyno_host::life::Life;
use netdyno_host::region::Region;
use netdyno_host::ring::{Message, Reader, Writer};
use netdyno_host::segment::{Segment, open_segment};
use netdyno_host::wakeup::Waker;
use netdyno_protocol::am::{Credit, Credits, Ledger};
use netdyno_protocol::frame::port::PortAddress;
use netdyno_protocol::frame::slot::Kind;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Requests of one peer handled in a row, so that a stream of requests does not pay for one poll each.
const REQUESTS_AT_ONCE: usize = 4;

/// Indices of the inlets.
const REQUESTS: usize = 0;
const REPLIES: usize = 1;

/// Returns whether the message at the head of `ring` is not due yet.
fn holds(inlets: &mut Option<Box<[Inlet; 2]>>, which: usize, ring: &Reader, message: &Message) -> bool {
    let inlet = inlets.as_mut().map(|inlets| &mut inlets[which]);
    inlet.is_some_and(|inlet| is_dialled(message.header.kind) && inlet.holds(ring.stamp()))
}

/// Notes that a ring was read, and was empty.
fn note_empty(inlets: &mut Option<Box<[Inlet; 2]>>, which: usize) {
    if let Some(inlets) = inlets {
        inlets[which].note_empty();
    }
}

/// Returns whether messages of this kind are dialled. Credits, chunks of a store, and gets are not.
const fn is_dialled(kind: Kind) -> bool {
    matches!(kind, Kind::Short | Kind::Medium | Kind::Store | Kind::StagedStore | Kind::Refused)
}

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Connected,
    /// Connected, and messages need more than their slots: the link is dialled, or the peer may sleep and
    /// must be woken. This is a state of its own, so that other links pay nothing for such ones.
    Special,
    Lost(PeerLost),
}

pub(in crate::am) struct ShmPeer {
    pub(super) id: PeerId,
    state: State,
    pub(super) requests_out: Writer,
    pub(super) credits: Credits,
    pub(super) replies_in: Reader,
    pub(super) requests_in: Reader,
    pub(super) outbox: ShmOutbox,
    /// When the last dialled request is due at the peer, in ticks. The peer cannot answer it earlier. 0
    /// without dials.
    last_due: u64,
    /// The reading ends of both rings, requests and replies. Present if dials are set.
    inlets: Option<Box<[Inlet; 2]>>,
    /// Number of messages taken from the peer, now and at the last check.
    taken: u64,
    taken_at_look: u64,
    /// The time for which checks have found requests outstanding and nothing taken; `None` if the last
    /// check found no request outstanding.
    silent: Option<Duration>,
    /// The process id of the peer.
    pub(super) pid: u32,
    /// Boxed, because short messages do not use it.
    pub(super) bulk: Box<Bulk>,
    life: Life,
    /// The wake-up of a peer that may sleep.
    pub(super) waker: Option<Waker>,
    pub(super) inbox: Arc<Region>,
    pub(super) their_inbox: Arc<Region>,
    /// Kept open, because the peer may open it at any time.
    _segment: Segment,
}

impl ShmPeer {
    pub(in crate::am) fn connect(
        id: PeerId,
        port: ShmPort,
        address: &[u8],
        interface: Option<&Arc<Interface>>,
    ) -> Result<Self, ConnectError> {
        let address = PortAddress::parse(address).map_err(ConnectError::address(Wire::Shm))?;
        let theirs = Layout { window: address.window, medium_bytes: address.medium_bytes };
        // Open the process before its memory. If the memory is the right one and the process is still
        // alive afterwards, the process is the right one.
        let life = Life::of(address.pid).map_err(|error| ConnectError::Life { pid: address.pid, error })?;
        let their_inbox = Arc::new(open_segment(address.pid, address.fd, address.nonce, theirs.len())?);
        let waker = wakeup_of(&their_inbox).map(|fd| Waker::open(address.pid, fd)).transpose()?;
        let ShmPort { layout: ours, region: inbox, segment, .. } = port;
        let window = ours.window.min(theirs.window);
        // Claimed last, so that a failed attempt has claimed nothing.
        if their_inbox.word(TAKEN).swap(1, Ordering::Relaxed) != 0 {
            return Err(ConnectError::Taken(address.pid));
        }
        // SAFETY: a port is connected once, so its rings and bounce buffers have one reader here. Nobody
        // had claimed the peer's port before, so its rings and bounce buffers have one writer. The two
        // layouts say which part of either region belongs to which.
        let (requests_out, replies_out, requests_in, replies_in, bulk) = unsafe {
            (
                Writer::new(&their_inbox, theirs.requests()),
                Writer::new(&their_inbox, theirs.replies()),
                Reader::new(&inbox, ours.requests()),
                Reader::new(&inbox, ours.replies()),
                Bulk::new(&inbox, ours, &their_inbox, theirs),
            )
        };
        Ok(Self {
            id,
            state: if interface.is_some() || waker.is_some() { State::Special } else { State::Connected },
            requests_out,
            credits: Credits::new(window),
            replies_in,
            requests_in,
            outbox: ShmOutbox {
                replies: replies_out,
                ledger: Ledger::new(window),
                medium_bytes: theirs.medium_bytes as usize,
                interface: interface.cloned(),
            },
            last_due: 0,
            inlets: interface.map(|interface| Box::new([Inlet::new(interface), Inlet::new(interface)])),
            taken: 0,
            taken_at_look: 0,
            silent: None,
            pid: address.pid,
            bulk: Box::new(bulk),
            life,
            waker,
            inbox,
            their_inbox,
            _segment: segment,
        })
    }

    pub(in crate::am) fn in_flight(&self) -> u32 {
        self.credits.in_flight()
    }

    /// Returns the number of completed requests.
    pub(super) fn completed(&self) -> u64 {
        self.credits.completed()
    }

    pub(in crate::am) fn medium_bytes(&self) -> usize {
        self.outbox.medium_bytes
    }

    /// Returns the number of the peer's endpoint in its process.
    pub(super) fn endpoint(&self) -> u64 {
        self.their_inbox.word(ENDPOINT).load(Ordering::Relaxed)
    }

    /// Takes a credit for a [`ShmPeer::send`] with nothing more to do. Returns `None` if the link is
    /// special, lost or full.
    #[inline(always)]
    pub(in crate::am) fn simple_credit(&mut self) -> Option<Credit> {
        if matches!(self.state, State::Connected) { self.credits.take() } else { None }
    }

    pub(in crate::am) fn check_connected(&self) -> Result<(), PeerLost> {
        match self.state {
            State::Connected | State::Special => Ok(()),
            State::Lost(lost) => Err(lost),
        }
    }

    /// Returns whether messages need more than their slots.
    #[inline(always)]
    pub(in crate::am) fn is_special(&self) -> bool {
        matches!(self.state, State::Special)
    }

    /// Takes a credit for a request on any connected link. The caller stamps the request, and wakes the peer
    /// behind it.
    pub(in crate::am) fn credit(&mut self) -> Option<Credit> {
        if self.check_connected().is_ok() { self.credits.take() } else { None }
    }

    /// Returns the reason why no request can be sent.
    #[cold]
    fn why_not_ready(&self) -> RequestError {
        self.check_connected().map_or_else(RequestError::Lost, |()| RequestError::Full)
    }

    /// Sends a request as the dials say, if there is room in the window, and wakes a peer that sleeps.
    #[cold]
    #[inline(never)]
    pub(in crate::am) fn try_send_short(&mut self, call: &Call) -> Result<(), RequestError> {
        let Some(credit) = self.credit() else { return Err(self.why_not_ready()) };
        self.depart(size_of_val(call.words()));
        self.send(credit, call.handler, call.words());
        self.wake();
        Ok(())
    }

    pub(in crate::am) fn try_send_medium(
        &mut self,
        handler: u8,
        words: &[u64],
        payload: &[u8],
    ) -> Result<(), RequestError> {
        let Some(credit) = self.credit() else { return Err(self.why_not_ready()) };
        self.depart(size_of_val(words) + payload.len());
        self.requests_out.write_with_payload(credit, header(Kind::Medium, handler, 0, words), words, payload);
        self.wake();
        Ok(())
    }

    /// Stamps the next request, of `bytes`, as the dials say.
    pub(super) fn depart(&mut self, bytes: usize) {
        if let Some(interface) = &self.outbox.interface {
            let (stamp, due) = stamp(interface, bytes);
            self.requests_out.stamp(stamp);
            self.last_due = due;
        }
    }

    /// Sends a request. The caller has already applied the dials, and wakes the peer behind it.
    #[inline(always)]
    pub(in crate::am) fn send(&mut self, credit: Credit, handler: u8, words: &[u64]) {
        self.requests_out.write(credit, header(Kind::Short, handler, 0, words), words);
    }

    /// Handles at most one reply and a few requests. Returns the number handled.
    #[inline(always)]
    pub(in crate::am) fn poll<S>(
        &mut self,
        offer: &Offer<S>,
        payload: &mut Vec<u8>,
        state: &mut S,
    ) -> Result<usize, PeerLost> {
        if self.state == State::Connected {
            self.take_some::<false, S>(offer, payload, state)
        } else {
            self.poll_otherwise(offer, payload, state)
        }
    }

    /// Polls a peer that is lost or whose link is special. Wakes the peer once for all replies of the poll.
    #[cold]
    #[inline(never)]
    fn poll_otherwise<S>(
        &mut self,
        offer: &Offer<S>,
        payload: &mut Vec<u8>,
        state: &mut S,
    ) -> Result<usize, PeerLost> {
        match self.state {
            State::Lost(_) => Ok(0),
            State::Connected | State::Special => {
                let written = self.outbox.replies.written();
                let handled = self.take_some::<true, S>(offer, payload, state)?;
                if self.outbox.replies.written() != written {
                    self.wake();
                }
                Ok(handled)
            }
        }
    }

    #[inline(always)]
    fn take_some<const DIALLED: bool, S>(
        &mut self,
        offer: &Offer<S>,
        payload: &mut Vec<u8>,
        state: &mut S,
    ) -> Result<usize, PeerLost> {
        let mut handled = 0;
        // Checked even if no request is outstanding: so a poll always costs the same, and a reply
        // without a request is detected.
        if let Some(message) = self.replies_in.read() {
            let message = message.map_err(|_| self.lose(Loss::Misbehaved))?;
            if !(DIALLED && holds(&mut self.inlets, REPLIES, &self.replies_in, &message)) {
                handled += self.take_reply(message, offer, payload, state)?;
            }
        } else if DIALLED {
            note_empty(&mut self.inlets, REPLIES);
        }
        for _ in 0..REQUESTS_AT_ONCE {
            let Some(message) = self.requests_in.read() else {
                if DIALLED {
                    note_empty(&mut self.inlets, REQUESTS);
                }
                break;
            };
            let message = message.map_err(|_| self.lose(Loss::Misbehaved))?;
            if DIALLED && holds(&mut self.inlets, REQUESTS, &self.requests_in, &message) {
                break;
            }
            handled += self.take_request(message, offer, payload, state)?;
        }
        Ok(handled)
    }

    #[inline(always)]
    fn take_reply<S>(
        &mut self,
        message: Message,
        offer: &Offer<S>,
        payload: &mut Vec<u8>,
        state: &mut S,
    ) -> Result<usize, PeerLost> {
        let Some(content) = content(self.id, &self.replies_in, message, payload) else {
            return Err(self.lose(Loss::Misbehaved));
        };
        self.replies_in.advance();
        self.taken += 1;
        // Each message must complete at least one more request.
        if !matches!(self.credits.complete_to(message.header.completed), Ok(1..)) {
            return Err(self.lose(Loss::Misbehaved));
        }
        let handler = match message.header.kind {
            Kind::Short | Kind::Medium => offer.handlers.reply(message.header.handler),
            Kind::Credit => return Ok(0),
            _ => return self.take_other_reply(offer, state),
        };
        let Some(handler) = handler else { return Err(self.lose(Loss::Misbehaved)) };
        handler(state, Reply { content });
        Ok(1)
    }

    #[inline(always)]
    fn take_request<S>(
        &mut self,
        message: Message,
        offer: &Offer<S>,
        payload: &mut Vec<u8>,
        state: &mut S,
    ) -> Result<usize, PeerLost> {
        let Some(content) = content(self.id, &self.requests_in, message, payload) else {
            return Err(self.lose(Loss::Misbehaved));
        };
        self.requests_in.advance();
        self.taken += 1;
        let handler = match message.header.kind {
            Kind::Short | Kind::Medium => offer.handlers.request(message.header.handler),
            _ => return self.take_other_request(offer, state),
        };
        let Some(handler) = handler else { return Err(self.lose(Loss::Misbehaved)) };
        self.outbox.ledger.handle();
        handler(state, Request { content, slot: ReplySlot(Outbox::Shm(&mut self.outbox)) });
        if self.outbox.ledger.credit_is_due() {
            self.outbox.credit();
        }
        Ok(1)
    }

    /// Sends a pending credit, while the program is idle or when it closes.
    pub(in crate::am) fn settle(&mut self) {
        if self.check_connected().is_ok() && self.outbox.ledger.is_owing() {
            self.outbox.credit();
            self.wake();
        }
    }

    /// Checks whether the peer is still there. `passed` is the time since the last check for which the
    /// peer is responsible. A peer that is silent for longer than `timeout` is lost.
    pub(in crate::am) fn look(&mut self, passed: Duration, timeout: Duration) -> Result<(), PeerLost> {
        if self.check_connected().is_err() {
            return Ok(());
        }
        // Read these flags before the rings. A message that the peer wrote before it closed or ended is
        // then seen, and handled first.
        let closed = self.inbox.word(CLOSED).load(Ordering::Acquire) != 0;
        let ended = !closed && self.life.has_ended();
        let is_drained = self.replies_in.read().is_none() && self.requests_in.read().is_none();
        if closed && is_drained {
            return Err(self.lose(Loss::Closed));
        }
        if ended && is_drained {
            return Err(self.lose(Loss::Ended));
        }
        if self.bulk.is_cheated(self.credits.completed()) {
            return Err(self.lose(Loss::Misbehaved));
        }
        if let Some(inlets) = self.inlets.as_mut().filter(|_| closed || ended) {
            inlets.iter_mut().for_each(Inlet::expect_no_more);
        }
        let is_asked = self.last_due == 0 || ticks::now() >= self.last_due;
        let has_spoken = self.taken != self.taken_at_look || !is_drained || !is_asked;
        self.taken_at_look = self.taken;
        self.silent = match self.silent {
            _ if self.credits.in_flight() == 0 => None,
            Some(silent) if !has_spoken => Some(silent.saturating_add(passed)),
            _ => Some(Duration::ZERO),
        };
        if self.silent.is_some_and(|silent| silent > timeout) {
            return Err(self.lose(Loss::Silent(timeout)));
        }
        Ok(())
    }

    /// Tells the peer that this side sends nothing more and takes nothing more.
    fn say_closed(&self) {
        // Release: pairs with the acquire in `look`, so that the peer sees all earlier messages first.
        self.their_inbox.word(CLOSED).store(1, Ordering::Release);
        self.wake();
    }

    /// Disconnects a peer that is still connected.
    pub(in crate::am) fn disconnect(&mut self) {
        if self.check_connected().is_ok() {
            self.settle();
            self.lose(Loss::Closed);
        }
    }

    /// Ends the connection and tells the peer, which could otherwise wait for this side for ever.
    #[cold]
    pub(in crate::am) fn lose(&mut self, loss: Loss) -> PeerLost {
        let lost = PeerLost { peer: self.id, loss, unresolved: self.credits.in_flight(), not_sent: 0 };
        self.state = State::Lost(lost);
        self.bulk.clear();
        self.say_closed();
        lost
    }
}

impl Drop for ShmPeer {
    fn drop(&mut self) {
        // The peer learns which of its requests were handled.
        self.settle();
        self.say_closed();
    }
}

/// Returns the content of the message at the head of `ring`; `None` if it claims an impossible payload.
#[inline(always)]
fn content<'a>(
    peer: PeerId,
    ring: &Reader,
    message: Message,
    payload: &'a mut Vec<u8>,
) -> Option<Content<'a>> {
    let words = message.used_words();
    let payload: &[u8] = match message.header.kind {
        Kind::Medium => {
            ring.read_payload(payload).ok()?;
            payload
        }
        _ => &[],
    };
    Some(Content { peer, words, payload })
}
