//! One connection: both directions between a pair of endpoints. It joins a sending side and a receiving side
//! with the rules of requests and replies. These are the credits for requests sent, the ledger of requests
//! handled, and the peer timeout.

mod dialled;
mod transferring;

use crate::am::{Credits, Ledger};
use crate::dial::timing::Departed;
use crate::frame::datagram::{self, Arrived, Datagram, HEADER_LEN, Header, Kind, MOST_GRANTED};
use crate::reliability::buffers::Buffers;
use crate::reliability::congestion::{Controller, Relentless};
use crate::reliability::holding::Holding;
use crate::reliability::receiving::Receiving;
use crate::reliability::recovery::Recovery;
use crate::reliability::sending::{AckOfUnsent, AckOutcome, Sending};
use crate::reliability::transfers::{Transfers, Waiting};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// The parameters of a connection, fixed for its life.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// The most requests without an answer, for each side. It is less than 2^15, so that counts of 16 bits
    /// can be ordered.
    pub window: u32,
    /// The peer timeout: after this time without progress the peer counts as lost. It only runs while an
    /// acknowledgement or an answer is outstanding.
    pub peer_timeout_ns: u64,
    /// The acknowledgement delay: the time for which an acknowledgement waits for a message to carry it.
    pub acknowledgement_delay_ns: u64,
    /// The first sequence number.
    pub first_sequence: u32,
    /// The constants of loss recovery.
    pub recovery: Recovery,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            window: 64,
            peer_timeout_ns: 5_000_000_000,
            acknowledgement_delay_ns: 25_000,
            first_sequence: 0,
            recovery: Recovery::default(),
        }
    }
}

/// The window of requests is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// The reason why a connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The peer timeout has expired: the peer acknowledged and completed nothing.
    Silent,
    /// The peer broke the protocol, for example by a reply to no request.
    Misbehaved,
    /// The peer has closed. Each message that it sent was delivered, or will not arrive any more.
    Closed,
}

/// The outcome of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// It is the next message, which must be handled now. Kept messages behind it may have become
    /// deliverable.
    Now,
    /// Nothing has to be handled.
    Nothing,
}

/// The statistics of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages transmitted for the first time.
    pub sent: u64,
    /// Messages transmitted again.
    pub retransmitted: u64,
    /// Acknowledgements that travelled without a message, and probes.
    pub acknowledgements: u64,
    /// Messages delivered.
    pub delivered: u64,
    /// Messages that had arrived before.
    pub duplicates: u64,
    /// Messages too far ahead to be kept.
    pub beyond: u64,
    /// Datagrams that acknowledge messages that were never sent, and requests for which there is no place.
    pub absurd: u64,
}

/// One side of a connection, with the congestion controller `C`.
#[derive(Debug)]
pub struct Connection<C = Relentless> {
    /// This side's number of the connection, which the peer puts into its datagrams, and the peer's number.
    local: u64,
    remote: u64,
    sending: Sending<C>,
    receiving: Receiving,
    transfers: Transfers,
    /// The messages of transfers that the peer may have in flight.
    share: u8,
    /// Whether bytes were arriving when that was last asked.
    were_bytes_arriving: bool,
    buffers: Buffers,
    window: u32,
    credits: Credits,
    ledger: Ledger,
    /// Whether the message that was delivered last completed a request of this side.
    completes: bool,
    /// The number of places. A message takes a place until it is acknowledged. There is a window of places
    /// for requests and another for replies.
    places: usize,
    peer_timeout_ns: u64,
    max_overtaken_ns: u64,
    /// The time of the last datagram, and the time of the last progress.
    received_ns: u64,
    heard_ns: u64,
    /// The peer has closed: the sequence number after its last message, and the time at which missing
    /// messages count as lost.
    closing: Option<(u32, u64)>,
    /// Whether this side closes and handles no more messages.
    is_closing: bool,
    /// Whether both sides close, so that neither handles the messages of the other.
    is_forsaken: bool,
    lost: Option<Loss>,
    /// On a dialled link, the messages that have arrived and are not due.
    holding: Option<Box<Holding>>,
    /// The reason why the peer will be lost as soon as none of its messages is held.
    ending: Option<Loss>,
    /// The departure of the next message.
    departs: Option<Departed>,
    /// The peer timeout does not run before this time, because no answer is due before.
    patient_until_ns: u64,
    /// The last datagram that was not a message.
    alone: [u8; HEADER_LEN],
    acknowledgements: u64,
    absurd: u64,
}

impl Connection {
    /// Creates a connection with `local` as this side's number and `remote` as the peer's.
    pub fn new(config: Config, local: u64, remote: u64, now_ns: u64) -> Self {
        let congestion = Relentless::new(config.recovery.initial_window);
        Self::with_controller(congestion, config, local, remote, now_ns)
    }
}

impl<C: Controller> Connection<C> {
    /// Creates a connection as [`Connection::new`] does, with another congestion controller.
    pub fn with_controller(congestion: C, config: Config, local: u64, remote: u64, now_ns: u64) -> Self {
        let Config { window, peer_timeout_ns, acknowledgement_delay_ns, first_sequence, recovery } = config;
        Self {
            local,
            remote,
            sending: Sending::new(recovery, congestion, first_sequence, acknowledgement_delay_ns, now_ns),
            receiving: Receiving::new(first_sequence, acknowledgement_delay_ns, recovery.acknowledge_every),
            transfers: Transfers::default(),
            share: MOST_GRANTED,
            were_bytes_arriving: false,
            buffers: Buffers::default(),
            window,
            credits: Credits::new(window),
            ledger: Ledger::new(window),
            completes: false,
            places: 2 * window as usize,
            peer_timeout_ns,
            max_overtaken_ns: recovery.max_overtaken_ns,
            received_ns: now_ns,
            heard_ns: now_ns,
            closing: None,
            is_closing: false,
            is_forsaken: false,
            lost: None,
            holding: None,
            ending: None,
            departs: None,
            patient_until_ns: 0,
            alone: [0; HEADER_LEN],
            acknowledgements: 0,
            absurd: 0,
        }
    }

    /// Returns this side's number, which datagrams for this connection carry.
    pub fn local(&self) -> u64 {
        self.local
    }

    /// Returns the number of requests without an answer.
    pub fn in_flight(&self) -> u32 {
        self.credits.in_flight()
    }

    /// Returns a number that changes with everything that makes room for requests or bytes of transfers: completed
    /// requests, arrived messages, and grants.
    pub fn progress(&self) -> u64 {
        self.credits.completed().wrapping_add(self.sending.progress())
    }

    /// Returns the number of requests without an answer that were never transmitted. The peer has certainly
    /// not handled them.
    pub fn not_sent(&self) -> u32 {
        // The minimum is needed because a peer that breaks the protocol may have answered them all the same.
        let waiting = self.transfers.requests_waiting() as u32;
        (self.sending.requests_not_sent() + waiting).min(self.in_flight())
    }

    /// Returns the reason why the connection has ended, once it has.
    pub fn lost(&self) -> Option<Loss> {
        self.lost
    }

    /// Returns the statistics so far.
    pub fn counters(&self) -> Counters {
        Counters {
            sent: self.sending.sent,
            retransmitted: self.sending.retransmitted,
            acknowledgements: self.acknowledgements,
            delivered: self.receiving.delivered,
            duplicates: self.receiving.duplicates,
            beyond: self.receiving.beyond,
            absurd: self.absurd,
        }
    }

    /// Returns the memory that the connection holds now, in bytes. It grows with the messages in flight.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + self.sending.memory_bytes()
            + self.receiving.memory_bytes()
            + self.transfers.memory_bytes()
            + self.buffers.memory_bytes()
            + self.holding.as_ref().map_or(0, |holding| holding.memory_bytes())
    }

    /// Reports whether a request may be sent.
    pub fn has_room(&self) -> bool {
        self.credits.has_room() && self.has_place()
    }

    /// Reports whether there is a place for one more message. With a peer that keeps to the protocol there is
    /// one whenever a message becomes necessary. The datagram that lets a side go on also acknowledges the
    /// messages before it. A held message may still be answered, so its place stays reserved.
    fn has_place(&self) -> bool {
        self.sending.places_taken() + self.held() < self.places
    }

    /// Sends a request.
    ///
    /// # Errors
    /// Returns [`Full`] if the window is full.
    pub fn request(&mut self, handler: u8, words: &[u64], payload: &[u8], now_ns: u64) -> Result<(), Full> {
        self.begin_request(now_ns)?;
        self.enqueue_request(Kind::Request, handler, words, payload);
        Ok(())
    }

    /// Takes the credit of a request.
    fn begin_request(&mut self, now_ns: u64) -> Result<(), Full> {
        if !self.has_room() {
            return Err(Full);
        }
        self.begin_waiting(now_ns);
        // The credit is for a place of the connection, where the request stays until it is acknowledged.
        let _credit = self.credits.take().ok_or(Full)?;
        Ok(())
    }

    /// Queues a request, behind those that wait to be queued.
    fn enqueue_request(&mut self, kind: Kind, handler: u8, words: &[u64], payload: &[u8]) {
        if self.transfers.are_requests_waiting() {
            let header = Header { departed: self.departs.take(), ..self.header(kind, handler) };
            let mut bytes = self.buffers.take();
            datagram::write(&header, words, payload, &mut bytes);
            self.transfers.wait(Waiting::Message(kind, bytes));
        } else {
            self.enqueue(kind, handler, words, payload);
        }
    }

    /// Sends the reply to the request that is being handled. Its place was reserved when that request was
    /// accepted.
    pub fn reply(&mut self, handler: u8, words: &[u64], payload: &[u8], now_ns: u64) {
        self.begin_waiting(now_ns);
        self.enqueue(Kind::Reply, handler, words, payload);
    }

    /// Restarts the peer timeout and the retransmission timer, if nothing is outstanding.
    fn begin_waiting(&mut self, now_ns: u64) {
        if !self.is_waiting() {
            self.heard_ns = now_ns;
            self.sending.restart_timer(now_ns);
        }
    }

    fn enqueue(&mut self, kind: Kind, handler: u8, words: &[u64], payload: &[u8]) {
        // The message carries the completion count at its place in the order. The replies to the completed
        // requests come before it, or it is one of them.
        let header = Header { departed: self.departs.take(), ..self.header(kind, handler) };
        let mut bytes = self.buffers.take();
        datagram::write(&header, words, payload, &mut bytes);
        self.sending.enqueue(kind, bytes);
        // The message will arrive with the completion count.
        self.ledger.told();
    }

    /// Returns the header of the next message in the order, with the current acknowledgement and completion
    /// count.
    fn header(&self, kind: Kind, handler: u8) -> Header {
        Header {
            kind,
            handler,
            connection: self.remote,
            sequence: self.sending.next_sequence(),
            transmission: 0,
            arrived: self.arrived(),
            completed: self.ledger.completed(),
            departed: None,
        }
    }

    /// Returns the acknowledgement and the grant of the next datagram.
    fn arrived(&self) -> Arrived {
        Arrived { granted: self.share, ..self.receiving.arrived() }
    }

    /// Reports whether an acknowledgement or an answer is outstanding.
    fn is_waiting(&self) -> bool {
        self.sending.len() > 0 || self.credits.in_flight() > 0
    }

    /// Reports whether the peer timeout runs: an acknowledgement, an answer or the rest of a store is outstanding.
    fn is_expecting(&self) -> bool {
        self.is_waiting() || self.transfers.are_bytes_arriving()
    }

    /// Reports whether nothing more is received from the peer or sent to it.
    #[inline]
    fn is_over(&self) -> bool {
        self.lost.is_some() || self.ending.is_some()
    }

    /// Ends the connection, but not before the last held message is released.
    fn end_with(&mut self, loss: Loss) {
        if self.held() == 0 {
            self.lost = Some(loss);
        } else {
            self.ending = Some(loss);
        }
    }

    /// Reports whether the connection has ended, or the peer has closed. Then no messages come but those that
    /// are held, and those missing before the goodbye.
    pub fn is_ending(&self) -> bool {
        self.closing.is_some() || self.ending.is_some()
    }

    /// Takes a datagram that carries this side's number. After [`Delivery::Now`] the caller handles the
    /// message, or holds it. The caller then does the same with the messages that [`Connection::buffered`]
    /// returns.
    pub fn receive(&mut self, datagram: &Datagram<'_>, now_ns: u64) -> Delivery {
        if self.is_over() {
            return Delivery::Nothing;
        }
        self.received_ns = now_ns;
        let header = &datagram.header;
        let Ok(said) = self.take_arrived(header.arrived, now_ns) else {
            self.absurd += 1;
            return Delivery::Nothing;
        };
        let is_next = header.sequence == self.receiving.expected();
        match header.kind {
            // These are answered once they are handled, which takes a place.
            Kind::Request | Kind::Store | Kind::Chunk if is_next && !self.has_place() => self.absurd += 1,
            Kind::Probe => self.receiving.acknowledge_now(),
            Kind::Goodbye => {
                self.closing.get_or_insert((header.sequence, now_ns + self.max_overtaken_ns));
            }
            Kind::Acknowledgement | Kind::Closing => {}
            _ => {
                if self.receiving.take(datagram, now_ns, &mut self.buffers)
                    && (self.holding.is_some() || self.deliver(header, now_ns))
                {
                    return Delivery::Now;
                }
            }
        }
        // The completion count holds now, because every message sent before it has arrived. A count in a
        // datagram that was overtaken may be too old for its 16 bits.
        if is_next && said != AckOutcome::Stale && !header.kind.is_message() {
            self.complete_in_turn(header.completed, now_ns);
        }
        self.close_when_all_is_here();
        Delivery::Nothing
    }

    /// Reports whether a message that was sent may still arrive and be handled, or a transfer go on.
    pub fn has_unacknowledged(&self) -> bool {
        !self.is_forsaken && (self.sending.len() > 0 || !self.transfers.is_idle())
    }

    /// Takes a datagram at a side that closes: it retransmits its own messages and handles no more. It tells so a peer that
    /// sends one. Two sides that close at once thus do not wait for each other.
    pub fn receive_at_end(&mut self, header: &Header, now_ns: u64) {
        self.is_closing = true;
        self.is_forsaken |= header.kind == Kind::Closing;
        if header.kind.is_message() {
            self.receiving.acknowledge_now();
        }
        self.acknowledge(header, now_ns);
    }

    /// Takes only the acknowledgement of a datagram. Its message, if it has one, will be sent again.
    pub fn acknowledge(&mut self, header: &Header, now_ns: u64) {
        if self.lost.is_none() {
            // An acknowledgement of unsent messages changes nothing.
            let _ = self.take_arrived(header.arrived, now_ns);
        }
    }

    /// Takes the acknowledgement and the grant of a datagram.
    fn take_arrived(&mut self, arrived: Arrived, now_ns: u64) -> Result<AckOutcome, AckOfUnsent> {
        let outcome = self.sending.acknowledge(arrived, now_ns, &mut self.buffers)?;
        // A datagram that was overtaken has an older grant.
        if outcome != AckOutcome::Stale {
            self.sending.take_grant(arrived.granted);
        }
        if outcome == AckOutcome::Progress {
            self.heard_ns = now_ns;
        }
        Ok(outcome)
    }

    /// Returns a kept message that is in order now.
    pub fn buffered(&mut self) -> Option<Vec<u8>> {
        if self.is_over() {
            return None;
        }
        let (header, bytes) = self.receiving.kept()?;
        if self.holding.is_some() {
            return Some(bytes);
        }
        // The datagram that filled the gap has just arrived.
        let now_ns = self.received_ns;
        self.deliver(&header, now_ns).then_some(bytes)
    }

    /// Delivers a message and returns whether it must be handled. Each handled request is counted before its
    /// reply is sent. So a reply that completes no request answers none.
    fn deliver(&mut self, header: &Header, now_ns: u64) -> bool {
        self.completes = self.complete(header.completed, now_ns);
        match header.kind {
            Kind::Request => drop(self.ledger.handle()),
            Kind::Reply | Kind::Refused if !self.completes => {
                self.lost = Some(Loss::Misbehaved);
                return false;
            }
            // A long transfer must not look like silence.
            Kind::Fetched | Kind::Store | Kind::Chunk => self.heard_ns = now_ns,
            _ => {}
        }
        self.close_when_all_is_here();
        true
    }

    /// Ends the connection if the peer has closed and all of its messages are delivered.
    fn close_when_all_is_here(&mut self) {
        if self.closing.is_some_and(|(sequence, _)| sequence == self.receiving.expected()) {
            self.end_with(Loss::Closed);
        }
    }

    /// Applies the completion count of the peer. Returns whether it completes a request.
    fn complete(&mut self, completed: u16, now_ns: u64) -> bool {
        // An error is an older count, from a retransmitted message.
        let is_news = self.credits.complete_to(completed).is_ok_and(|news| news > 0);
        if is_news {
            self.heard_ns = now_ns;
        }
        is_news
    }

    /// Gives the peer up. Nothing more is received from it, and only a goodbye is sent to it.
    pub fn end(&mut self) {
        self.lost.get_or_insert(Loss::Closed);
        if let Some(holding) = &mut self.holding {
            holding.clear();
        }
        self.sending.abandon();
        self.receiving.abandon();
        self.buffers = Buffers::default();
    }

    /// Takes back a buffer that [`Connection::buffered`] returned, for reuse.
    pub fn recycle(&mut self, buffer: Vec<u8>) {
        self.buffers.give_back(buffer);
    }

    /// Returns the latest time at which the caller must come back. Returns `None` if nothing is outstanding.
    pub fn deadline(&self) -> Option<u64> {
        if self.is_over() {
            return None;
        }
        let waiting = self.is_waiting().then(|| self.sending.deadline());
        let silent = self.is_expecting().then(|| self.silent_ns());
        let closing = self.closing.map(|(_, at_ns)| at_ns);
        [waiting, silent, self.receiving.deadline(), closing].into_iter().flatten().min()
    }

    /// Begins the peer timeout at `until_ns` at the earliest.
    pub fn be_patient(&mut self, until_ns: u64) {
        self.patient_until_ns = self.patient_until_ns.max(until_ns);
    }

    /// Returns the time at which the peer timeout expires.
    fn silent_ns(&self) -> u64 {
        self.heard_ns.max(self.patient_until_ns).saturating_add(self.peer_timeout_ns)
    }

    /// Handles the timers that have expired at `now_ns`.
    pub fn on_time(&mut self, now_ns: u64) {
        if self.is_over() {
            return;
        }
        if self.closing.is_some_and(|(_, at_ns)| at_ns <= now_ns) {
            self.end_with(Loss::Closed);
            return;
        }
        self.receiving.on_time(now_ns);
        if self.is_expecting() && now_ns >= self.silent_ns() {
            self.end_with(Loss::Silent);
        } else if self.is_waiting() {
            self.sending.on_time(now_ns);
        }
    }

    /// Reports that the next datagram is a message, and the only one to send now: no pieces of transfers follow.
    #[inline]
    pub fn has_one_message(&self) -> bool {
        !self.is_over() && self.sending.has_one_fresh() && self.transfers.is_idle()
    }

    /// Returns the next datagram to send. Returns `None` if there is none now.
    pub fn transmit(&mut self, now_ns: u64) -> Option<&[u8]> {
        if self.is_over() {
            return None;
        }
        if let Some(at) = self.sending.next() {
            let arrived = self.arrived();
            // The message has the completion count of its place in the order.
            self.receiving.told(!self.ledger.is_owing());
            return Some(self.sending.transmit(at, arrived, now_ns));
        }
        let kind = if self.sending.take_probe() {
            Kind::Probe
        } else if self.receiving.is_due() || self.ledger.credit_is_due() {
            if self.is_closing { Kind::Closing } else { Kind::Acknowledgement }
        } else {
            return None;
        };
        self.acknowledgements += 1;
        Some(self.transmit_alone(kind))
    }

    /// Returns the datagram that tells the peer that this side has closed.
    pub fn goodbye(&mut self) -> &[u8] {
        self.transmit_alone(Kind::Goodbye)
    }

    fn transmit_alone(&mut self, kind: Kind) -> &[u8] {
        let mut header = self.header(kind, 0);
        header.arrived.is_stale = kind == Kind::Probe;
        self.alone = datagram::alone(&header);
        self.receiving.told(true);
        self.ledger.told();
        &self.alone
    }
}

#[cfg(test)]
mod tests;
