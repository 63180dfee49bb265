//! The message protocol of a domain: it turns the program's operations into messages between processes, and
//! messages into completions. It does no I/O: [`Links`] does.
//!
//! ```text
//! short message    Message ─────────────►           the bytes travel with it
//!                          ◄───────────── Done      if the sender waits for the delivery
//!                          ◄───────────── Hold      if too many bytes of unexpected messages are kept: the sender
//!                                                   offers short messages as well, until Release
//! long message     Offer ───────────────►           the receiver copies the bytes out of the sender's memory
//!                          ◄───────────── Done
//!                  Offer ───────────────►           where the system does not allow that
//!                          ◄───────────── Accept
//!                  Piece, Piece, … ─────►            or RDMA writes into a window, and an empty piece at its end
//!                          ◄───────────── Done
//! RDMA write       Write, or WriteOffer as Offer
//! RDMA read        Read ────────────────►           the target copies the bytes into the origin's memory
//!                          ◄───────────── Piece, … or Done
//! atomic access    Atomic ──────────────►           the target computes
//!                          ◄───────────── Piece if the origin wants the old values, else Done
//! ```
//!
//! Each message needs a credit, which stands for a posted receive of the peer. Without one, or before there is a
//! connection, a message waits in the engine, with a copy of its bytes. When many wait, further operations of the program
//! are refused, and the program calls again.

mod arithmetic;
mod atomic;
mod bound;
mod completion;
mod endpoint;
mod links;
mod onesided;
mod peer;
mod receiving;
mod sending;
mod streaming;

pub use arithmetic::{Datatype, Operation};
pub use atomic::{Atomic, MOST_VALUES};
pub use completion::{Completion, Completions, Counter, Failure, Op, Reports};
pub use endpoint::Endpoint;
pub use links::{Copied, LONGEST, LinkEvent, Links, PAYLOAD, Payload, PeerNo, RECEIVES, SELF};
pub use onesided::{Access, Place, Region};
pub use receiving::Posting;
use receiving::Pull;
pub use sending::{Send, Target, Until, Wants};

use crate::frame::{Header, Kind};
use crate::memory::{Memory, Window};
use bound::Bound;
use endpoint::{Arrival, Endpoints, Unexpected};
use peer::{Origin, Peer};
use rustc_hash::FxHashMap;
use slab::Slab;
use std::collections::VecDeque;
use std::thread;
use std::time::{Duration, Instant};

/// Messages handled in one call, so that a call ends while messages keep coming.
const AT_ONCE: usize = 32;

/// Bytes of unexpected messages beyond which senders keep those of further ones, unless the program sets others.
const MOST_UNEXPECTED: usize = 64 << 20;

/// Longest wait for peers that write into memory which the program takes away.
const WRITERS_TIMEOUT: Duration = Duration::from_secs(5);

/// Most messages that wait for room before further operations of the program are refused.
const MOST_WAITING: usize = 64;

/// Bytes of injected messages that are kept for a peer at least, however few unexpected bytes it keeps itself.
const LEAST_COPIED: usize = MOST_WAITING * PAYLOAD;

/// Why an operation was not begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There is no room now. The caller makes progress and tries again.
    Again,
    /// The peer has ended.
    PeerLost,
    /// The message is too long for its operation.
    TooLong,
    /// The endpoint does not exist.
    NoEndpoint,
}

/// An operation that waits for messages of a peer.
#[derive(Debug)]
struct Transfer {
    peer: PeerNo,
    endpoint: u16,
    role: Role,
}

/// An own operation, and what is reported at its end.
#[derive(Clone, Copy, Debug)]
struct Pending {
    op: Op,
    completion: Completion,
    is_reported: bool,
}

#[derive(Debug)]
enum Role {
    /// An own operation, which is complete when the peer says so. Its bytes are still needed if the peer asks for
    /// them.
    /// An injected message has a copy of its bytes here.
    Awaited { pending: Pending, memory: Memory, is_accepted: bool, copy: Option<Vec<u8>> },
    /// Bytes that come in pieces. Without a place for them they are discarded, for the reason of the failure.
    /// With a window, the peer writes them there itself.
    Landing {
        landing: Landing,
        got: usize,
        wanted: usize,
        theirs: u32,
        failure: Option<Failure>,
        window: Option<Window>,
    },
    /// An own read, whose bytes come in pieces or all at once.
    Reading { pending: Pending, memory: Memory, got: usize, wanted: usize },
}

/// Where the bytes of a message go, and what is reported when they are there.
#[derive(Debug)]
enum Landing {
    Receive {
        arrival: Arrival,
        memory: Memory,
        context: usize,
        is_reported: bool,
        buffer: Option<usize>,
    },
    Write {
        arrival: Arrival,
        memory: Memory,
        /// The key of the region; `None` after the region was closed.
        key: Option<u64>,
    },
}

/// The engine of a domain.
#[derive(Debug)]
pub struct Engine<L> {
    /// The connections.
    pub links: L,
    /// The completion queues and counters.
    pub completions: Completions,
    /// The endpoints, by number.
    pub endpoints: Endpoints,
    /// Memory that peers may access, by key.
    pub regions: FxHashMap<u64, Region>,
    peers: Vec<Peer>,
    /// Peers that wait for room.
    busy: VecDeque<PeerNo>,
    transfers: Slab<Transfer>,
    /// Messages of this process to itself.
    own: VecDeque<Vec<u8>>,
    /// The bytes of unexpected messages.
    unexpected: Bound,
    /// Messages that are to be copied out of the memory of their senders.
    pulls: VecDeque<Pull>,
    /// Whether they wait until [`Engine::progress`]. Otherwise a message is copied at once.
    is_deferring: bool,
}

/// Returns the number of a sender: its peer and its endpoint.
pub const fn source(peer: PeerNo, endpoint: u16) -> u64 {
    (peer as u64) << 16 | endpoint as u64
}

impl<L: Links> Engine<L> {
    /// Creates an engine without endpoints.
    pub fn new(links: L) -> Self {
        Self {
            links,
            completions: Completions::default(),
            endpoints: Endpoints::default(),
            regions: FxHashMap::default(),
            peers: Vec::new(),
            busy: VecDeque::new(),
            transfers: Slab::new(),
            own: VecDeque::new(),
            unexpected: Bound::new(MOST_UNEXPECTED),
            pulls: VecDeque::new(),
            is_deferring: false,
        }
    }

    /// Says whether long messages are copied in [`Engine::progress`] alone, so that the call that posts a receive does
    /// not take that time.
    pub fn set_deferring(&mut self, is_deferring: bool) {
        self.is_deferring = is_deferring;
    }

    /// Returns whether long messages are to be copied.
    pub fn has_deferred(&self) -> bool {
        !self.pulls.is_empty()
    }

    /// Returns whether messages wait for room.
    pub fn is_waiting(&self) -> bool {
        !self.busy.is_empty()
    }

    fn peer(&mut self, peer: PeerNo) -> &mut Peer {
        while self.peers.len() <= peer {
            self.peers.push(Peer::new());
        }
        &mut self.peers[peer]
    }

    /// Handles what has arrived, and sends what waits. Returns whether there was anything.
    pub fn progress(&mut self) -> bool {
        let is_any = self.handle_events();
        // Without messages it is time to look for new peers.
        let is_any = is_any || self.links.look_around() && self.handle_events();
        self.go_on(is_any)
    }

    /// As [`Engine::progress`], right after it: looks for new peers no sooner than that does.
    pub fn progress_again(&mut self) -> bool {
        let is_any = self.handle_events();
        self.go_on(is_any)
    }

    /// Handles events. Returns whether there were any.
    fn handle_events(&mut self) -> bool {
        let mut is_any = false;
        for _ in 0..AT_ONCE {
            if let Some(bytes) = self.own.pop_front() {
                self.take(SELF, &bytes);
            } else if let Some(event) = self.links.next() {
                match event {
                    LinkEvent::Message(peer, buffer) => {
                        let is_sound = self.peer(peer).is_lost || self.take(peer, &buffer);
                        self.links.give_back(peer, buffer);
                        let state = self.peer(peer);
                        state.owed = state.owed.saturating_add(1);
                        // A peer that waits for credits has no more on their way. One that does not could ask for answers
                        // without end, which are kept until it takes them.
                        let waits = state.owed <= 2 * RECEIVES;
                        if !(is_sound && waits) {
                            self.lose(peer);
                        } else if self.peer(peer).is_owed_much() {
                            self.list(peer);
                        }
                    }
                    LinkEvent::Lost(peer) => self.lose(peer),
                }
            } else {
                break;
            }
            is_any = true;
        }
        is_any
    }

    /// Sends what waits. Returns whether there was anything, as before or now.
    fn go_on(&mut self, is_any: bool) -> bool {
        while let Some(peer) = self.links.next_stranger() {
            let introduction = self.links.introduction();
            self.answer(peer, Header::new(Kind::Name), &introduction);
        }
        self.release();
        self.pump();
        is_any | self.pull_next()
    }

    /// Returns whether nothing waits to be sent.
    pub fn is_flushed(&mut self) -> bool {
        let mut peers = self.peers.iter().enumerate();
        // The operations of pieces are not complete, so they may end with an error. Injected messages are.
        peers.all(|(number, peer)| {
            (peer.waiting.is_empty() && peer.copied_bytes == 0)
                || peer.is_lost
                || self.links.is_hopeless(number)
        }) && self.links.is_flushed()
    }

    /// Handles a message. Returns false if it is malformed.
    fn take(&mut self, peer: PeerNo, bytes: &[u8]) -> bool {
        let Some((header, payload)) = Header::parse(bytes) else { return false };
        if header.credits > 0 {
            let state = self.peer(peer);
            state.credits = state.credits.saturating_add(header.credits).min(RECEIVES);
        }
        match header.kind {
            Kind::Message => self.on_message(peer, &header, payload),
            Kind::Offer => return self.on_offer(peer, &header, payload),
            Kind::Accept => return self.on_accept(peer, &header, payload),
            Kind::Piece => return self.on_piece(peer, &header, payload),
            Kind::Done => return self.on_done(peer, &header),
            Kind::Credits => {}
            Kind::Write => self.on_write(peer, &header, payload),
            Kind::WriteOffer => return self.on_write_offer(peer, &header, payload),
            Kind::Read => return self.on_read(peer, &header, payload),
            Kind::Atomic => return self.on_atomic(peer, &header, payload),
            Kind::Name => return self.links.know(peer, payload),
            Kind::Hold => self.peer(peer).is_holding = true,
            Kind::Release => self.peer(peer).is_holding = false,
        }
        true
    }

    /// Sends a message if the peer has room. Otherwise does nothing and returns false.
    fn try_send(&mut self, peer: PeerNo, mut header: Header, payload: Payload<'_>) -> bool {
        if peer == SELF {
            self.own.push_back([&header.encode()[..], &payload.to_vec()].concat());
            return true;
        }
        let state = self.peer(peer);
        if header.kind == Kind::Credits && state.credits == 0
            || header.kind != Kind::Credits && !state.has_room()
        {
            return false;
        }
        header.credits = state.owed;
        if !self.links.try_send(peer, &header.encode(), payload) {
            return false;
        }
        let state = self.peer(peer);
        state.credits -= 1;
        state.owed = 0;
        true
    }

    /// Sends a message, now or later.
    fn post(&mut self, peer: PeerNo, header: Header, payload: Payload<'_>) {
        if !self.peer(peer).waiting.is_empty() || !self.try_send(peer, header, payload) {
            self.peer(peer).waiting.push_back((header, payload.to_vec()));
            self.list(peer);
        }
    }

    /// Sends the first message of an own operation, which the peer answers.
    fn begin(&mut self, peer: PeerNo, header: Header, payload: Payload<'_>, role: Role) {
        let number = self.transfers.insert(Transfer { peer, endpoint: header.from, role });
        self.post(peer, Header { transfer: number as u32, ..header }, payload);
    }

    /// Sends an answer.
    fn answer(&mut self, peer: PeerNo, header: Header, payload: &[u8]) {
        if !self.peer(peer).is_lost {
            self.post(peer, header, Payload::Bytes(payload));
        }
    }

    /// Tells a peer that its transfer is complete, or why it failed.
    fn answer_done(&mut self, peer: PeerNo, transfer: u32, failure: Option<Failure>) {
        let other = failure.map_or(0, |failure| failure as u32);
        self.answer(peer, Header { transfer, other, ..Header::new(Kind::Done) }, &[]);
    }

    /// Takes the memory of transfers away. Bytes that still come for them are discarded. First waits for peers that write
    /// the memory themselves: a window that closes under them would end their connections.
    fn sink(&mut self, reason: Failure, is_it: impl Fn(&Transfer) -> bool) {
        let until = Instant::now() + WRITERS_TIMEOUT;
        let is_written = |transfer: &Transfer| {
            is_it(transfer) && matches!(transfer.role, Role::Landing { window: Some(_), .. })
        };
        while self.transfers.iter().any(|(_, transfer)| is_written(transfer)) && Instant::now() < until {
            if !self.progress() {
                thread::yield_now();
            }
        }
        let windows: Vec<(PeerNo, Window)> = self
            .transfers
            .iter_mut()
            .filter(|(_, transfer)| is_it(transfer))
            .filter_map(|(_, transfer)| Some((transfer.peer, transfer.role.take_window()?)))
            .collect();
        for (peer, window) in windows {
            self.links.close_window(peer, &window);
        }
        for (_, transfer) in self.transfers.iter_mut().filter(|(_, transfer)| is_it(transfer)) {
            match &mut transfer.role {
                Role::Awaited { copy: Some(_), .. } => {}
                Role::Awaited { memory, .. } | Role::Reading { memory, .. } => *memory = Memory::default(),
                Role::Landing { landing, failure, .. } => {
                    *landing.memory_mut() = Memory::default();
                    *failure = Some(reason);
                }
            }
        }
    }

    fn list(&mut self, peer: PeerNo) {
        let state = self.peer(peer);
        if !state.is_listed && !state.is_lost {
            state.is_listed = true;
            self.busy.push_back(peer);
        }
    }

    /// Sends what waits for room, as far as there is any.
    fn pump(&mut self) {
        for _ in 0..self.busy.len() {
            let Some(peer) = self.busy.pop_front() else { return };
            let state = self.peer(peer);
            state.is_listed = false;
            if !state.is_lost && !self.pump_peer(peer) {
                self.list(peer);
            }
        }
    }

    /// Sends what waits for a peer. Returns whether that was all.
    fn pump_peer(&mut self, peer: PeerNo) -> bool {
        while let Some((header, payload)) = self.peer(peer).waiting.pop_front() {
            if !self.try_send(peer, header, Payload::Bytes(&payload)) {
                self.peer(peer).waiting.push_front((header, payload));
                self.tell_credits(peer);
                return false;
            }
        }
        while let Some(mut stream) = self.peer(peer).streams.pop_front() {
            let (has_room, is_whole) = self.send_next(peer, &mut stream);
            if !is_whole {
                self.peer(peer).streams.push_front(stream);
            } else if let Origin::Region { key, endpoint } = stream.origin {
                self.was_read(endpoint, key);
            }
            if !has_room {
                self.tell_credits(peer);
                return false;
            }
        }
        self.tell_credits(peer)
    }

    /// Tells a peer of free places, if it has few. Returns whether nothing is left to tell.
    fn tell_credits(&mut self, peer: PeerNo) -> bool {
        !self.peer(peer).is_owed_much()
            || self.try_send(peer, Header::new(Kind::Credits), Payload::Bytes(&[]))
    }

    /// Ends all operations with a peer.
    fn lose(&mut self, peer: PeerNo) {
        let state = self.peer(peer);
        if std::mem::replace(&mut state.is_lost, true) {
            return;
        }
        state.waiting.clear();
        state.streams.clear();
        let those: Vec<usize> = self
            .transfers
            .iter()
            .filter(|(_, transfer)| transfer.peer == peer)
            .map(|(number, _)| number)
            .collect();
        for number in those {
            let transfer = self.transfers.remove(number);
            self.end(transfer, Some(Failure::PeerLost));
        }
        self.links.end(peer);
    }

    /// Closes an endpoint. What peers still send to it is refused.
    pub fn close(&mut self, endpoint: u16) {
        self.pull_all();
        let Some(mut closed) = self.endpoints.remove(endpoint) else { return };
        for Unexpected { arrival, body } in closed.take_messages() {
            self.answer_taken(arrival.peer, &body, Some(Failure::NoEndpoint));
        }
        let is_from_endpoint =
            |origin| matches!(origin, Origin::Message { endpoint: other, .. } if other == endpoint);
        self.end_streams(Failure::NoEndpoint, is_from_endpoint);
        for stream in self.peers.iter_mut().flat_map(|peer| &mut peer.streams) {
            if let Origin::Region { endpoint: other, .. } = &mut stream.origin
                && *other == endpoint
            {
                *other = u16::MAX;
            }
        }
        // The target of a write is a region, which stays.
        let is_of_endpoint = |transfer: &Transfer| {
            let is_write = matches!(&transfer.role, Role::Landing { landing: Landing::Write { .. }, .. });
            transfer.endpoint == endpoint && !is_write
        };
        self.sink(Failure::NoEndpoint, is_of_endpoint);
        // Another endpoint may get the number. Peers still answer the transfers of this one.
        let those = self.transfers.iter_mut().filter(|(_, transfer)| transfer.endpoint == endpoint);
        those.for_each(|(_, transfer)| transfer.endpoint = u16::MAX);
    }

    /// Reports the end of a transfer.
    fn end(&mut self, transfer: Transfer, failure: Option<Failure>) {
        let Transfer { peer, endpoint, mut role } = transfer;
        if let Some(window) = role.take_window() {
            self.links.close_window(peer, &window);
        }
        let Pending { op, completion, is_reported } = match role {
            Role::Awaited { pending, copy, .. } => {
                self.peer(peer).copied_bytes -= copy.map_or(0, |copy| copy.len());
                pending
            }
            Role::Reading { pending, .. } => pending,
            Role::Landing { landing, got, .. } => return self.landed(endpoint, landing, got, failure),
        };
        let failure = failure.map(|failure| (failure, 0));
        self.report(endpoint, op, Completion { failure, ..completion }, is_reported);
    }

    /// Reports the end of an operation.
    fn report(&mut self, endpoint: u16, op: Op, completion: Completion, is_reported: bool) {
        if let Some(Endpoint { reports, .. }) = self.endpoints.get(endpoint) {
            self.completions.report(reports, op, Completion { endpoint, ..completion }, is_reported);
        }
    }

    /// Reports the outcome of a look for messages, which is no receive.
    pub fn report_look(&mut self, endpoint: u16, completion: Completion) {
        if let Some(Endpoint { reports, .. }) = self.endpoints.get(endpoint) {
            self.completions.push(reports, Op::Receive, Completion { endpoint, ..completion });
        }
    }

    /// Returns a transfer of this process, if it is one with that peer.
    fn transfer(&mut self, peer: PeerNo, number: u32) -> Option<&mut Transfer> {
        self.transfers.get_mut(number as usize).filter(|transfer| transfer.peer == peer)
    }

    fn on_done(&mut self, peer: PeerNo, header: &Header) -> bool {
        match self.transfer(peer, header.transfer) {
            None => false,
            // The sender of pieces says only that no more come, and waits for the answer of its offer.
            Some(Transfer { role: Role::Landing { .. }, .. }) if header.other == 0 => false,
            Some(Transfer { role: Role::Landing { theirs, .. }, .. }) => {
                let (theirs, failure) = (*theirs, Failure::of(header.other));
                let transfer = self.transfers.remove(header.transfer as usize);
                self.answer_done(peer, theirs, failure);
                self.end(transfer, failure);
                true
            }
            Some(_) => {
                let transfer = self.transfers.remove(header.transfer as usize);
                // A peer that has enough gets no further pieces: the program may free the memory now.
                let is_of_it = |origin| matches!(origin, Origin::Message { transfer, .. } if transfer == header.transfer);
                let streams = &mut self.peer(peer).streams;
                let before = streams.len();
                streams.retain(|stream| !is_of_it(stream.origin));
                if streams.len() < before {
                    self.links.finish_writes(peer);
                }
                self.end(transfer, Failure::of(header.other));
                true
            }
        }
    }
}

impl Role {
    /// Takes the window away, if the peer has one.
    fn take_window(&mut self) -> Option<Window> {
        match self {
            Self::Landing { window, .. } => window.take(),
            Self::Awaited { .. } | Self::Reading { .. } => None,
        }
    }
}

impl Landing {
    fn arrival(&self) -> &Arrival {
        match self {
            Self::Receive { arrival, .. } | Self::Write { arrival, .. } => arrival,
        }
    }

    fn memory(&self) -> &Memory {
        match self {
            Self::Receive { memory, .. } | Self::Write { memory, .. } => memory,
        }
    }

    fn memory_mut(&mut self) -> &mut Memory {
        match self {
            Self::Receive { memory, .. } | Self::Write { memory, .. } => memory,
        }
    }
}

#[cfg(test)]
mod tests;
