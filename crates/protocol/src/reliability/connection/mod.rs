//! One connection: both directions between a pair of endpoints. Its sending and its
//! receiving side, joined by what a request and its answer mean: credits for what was sent,
//! a ledger of what was handled, and the life of the peer.

mod transferring;

use crate::am::{Credits, Ledger};
use crate::dial::timing::Departed;
use crate::frame::datagram::{self, Datagram, HEADER_LEN, Header, Kind};
use crate::reliability::buffers::Buffers;
use crate::reliability::holding::{Held, Holding, Released, What};
use crate::reliability::receiving::Receiving;
use crate::reliability::sending::{Said, Sending};
use crate::reliability::transfers::{Memories, Stray, Transfers, Waiting};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// What was sent before a goodbye and overtaken by it comes within this time, or not at all.
const OVERTAKEN_AT_MOST_NS: u64 = 1_000_000;

/// What is fixed for the life of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Requests that may be unanswered, of each side; less than 2^15, so that counts of 16 bits
    /// tell the older from the newer.
    pub window: u32,
    /// Silence, while something is waited for, after which the peer is lost.
    pub peer_timeout_ns: u64,
    /// Time that an acknowledgement waits for a message to travel with.
    pub acknowledgement_delay_ns: u64,
    /// The first sequence number.
    pub first_sequence: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            window: 64,
            peer_timeout_ns: 5_000_000_000,
            acknowledgement_delay_ns: 25_000,
            first_sequence: 0,
        }
    }
}

/// The window of requests is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// Why a connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The peer took and completed nothing for too long while something was waited for.
    Silent,
    /// The peer replied to what was not asked.
    Misbehaved,
    /// The peer has closed. Everything it sent was delivered, or will not come any more.
    Closed,
}

/// What came of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// It is the next message: handle it now. Others may have become deliverable behind it.
    Now,
    /// Nothing to handle.
    Nothing,
}

/// What happened on a connection, for its statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages transmitted for the first time.
    pub sent: u64,
    /// Messages transmitted again.
    pub retransmitted: u64,
    /// Acknowledgements that travelled alone, and probes.
    pub acknowledgements: u64,
    /// Messages delivered.
    pub delivered: u64,
    /// Messages that had arrived before.
    pub duplicates: u64,
    /// Messages too far ahead to be kept.
    pub beyond: u64,
    /// Datagrams that acknowledge what was never sent, or request what has no place.
    pub absurd: u64,
}

/// One side of a connection.
#[derive(Debug)]
pub struct Connection {
    /// Our number, which the peer puts into its datagrams, and the peer's.
    local: u64,
    remote: u64,
    sending: Sending,
    receiving: Receiving,
    transfers: Transfers,
    buffers: Buffers,
    window: u32,
    credits: Credits,
    ledger: Ledger,
    /// Whether the message that was delivered last completed a request of ours.
    completes: bool,
    /// Messages that can wait to be acknowledged: a window of requests and one of replies.
    places: usize,
    peer_timeout_ns: u64,
    /// When a datagram came last, and when one that told something new.
    received_ns: u64,
    heard_ns: u64,
    /// The peer has closed: the sequence number after its last message, and when to believe
    /// that what is missing of it will not come.
    closing: Option<(u32, u64)>,
    lost: Option<Loss>,
    /// Where dials are turned: what has arrived and is not due.
    holding: Option<Box<Holding>>,
    /// The peer is lost as soon as nothing is held of it any more.
    ending: Option<Loss>,
    /// The next message departs so.
    departs: Option<Departed>,
    /// Silence before this time is none: what is waited for is not due before.
    patient_until_ns: u64,
    /// The last datagram that was no message.
    alone: [u8; HEADER_LEN],
    acknowledgements: u64,
    absurd: u64,
}

impl Connection {
    /// A connection with `local` as our number and `remote` as the peer's.
    pub fn new(config: Config, local: u64, remote: u64, now_ns: u64) -> Self {
        let Config { window, peer_timeout_ns, acknowledgement_delay_ns, first_sequence } = config;
        Self {
            local,
            remote,
            sending: Sending::new(first_sequence, acknowledgement_delay_ns, now_ns),
            receiving: Receiving::new(first_sequence, acknowledgement_delay_ns),
            transfers: Transfers::default(),
            buffers: Buffers::default(),
            window,
            credits: Credits::new(window),
            ledger: Ledger::new(window),
            completes: false,
            places: 2 * window as usize,
            peer_timeout_ns,
            received_ns: now_ns,
            heard_ns: now_ns,
            closing: None,
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

    /// Our number: datagrams for this connection carry it.
    pub fn local(&self) -> u64 {
        self.local
    }

    /// Requests without an answer.
    pub fn in_flight(&self) -> u32 {
        self.credits.in_flight()
    }

    /// How many of them were never transmitted, so that the peer has certainly not handled
    /// them.
    pub fn not_sent(&self) -> u32 {
        // A peer that breaks the protocol may have answered them all the same.
        let waiting = self.transfers.requests_waiting() as u32;
        (self.sending.requests_not_sent() + waiting).min(self.in_flight())
    }

    /// Why the connection has ended, once it has.
    pub fn lost(&self) -> Option<Loss> {
        self.lost
    }

    /// What happened so far.
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

    /// Memory that the connection holds now, in bytes. It grows with what is under way.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + self.sending.memory_bytes()
            + self.receiving.memory_bytes()
            + self.transfers.memory_bytes()
            + self.buffers.memory_bytes()
            + self.holding.as_ref().map_or(0, |holding| holding.memory_bytes())
    }

    /// Whether a request may be sent.
    pub fn has_room(&self) -> bool {
        self.credits.has_room() && self.has_place()
    }

    /// Whether one more message can wait to be acknowledged. It can wherever a peer that keeps
    /// to the protocol makes one necessary: with the news that lets a side go on comes the
    /// acknowledgement of what went before.
    /// What is held may yet be answered.
    fn has_place(&self) -> bool {
        self.sending.places_taken() + self.held() < self.places
    }

    /// Messages that are here and not due.
    #[inline]
    fn held(&self) -> usize {
        self.holding.as_ref().map_or(0, |holding| holding.len())
    }

    /// What is received from now on is held until it is due.
    pub fn hold_messages(&mut self) {
        self.holding.get_or_insert_default();
    }

    /// The message that is sent next is stamped so.
    pub fn depart(&mut self, departed: Departed) {
        self.departs = Some(departed);
    }

    /// No answer to what was sent can come before this time. Until then nobody is asked for it, and
    /// its absence is no silence.
    pub fn expect_answer(&mut self, at_ns: u64) {
        self.sending.expect_answer(at_ns);
        self.patient_until_ns = self.patient_until_ns.max(at_ns);
    }

    /// Sends a request.
    ///
    /// # Errors
    /// The window is full.
    pub fn request(&mut self, handler: u8, words: &[u64], payload: &[u8], now_ns: u64) -> Result<(), Full> {
        self.begin_request(now_ns)?;
        self.enqueue_request(Kind::Request, handler, words, payload);
        Ok(())
    }

    /// Takes a credit.
    fn begin_request(&mut self, now_ns: u64) -> Result<(), Full> {
        if !self.has_room() {
            return Err(Full);
        }
        self.begin_waiting(now_ns);
        // What it is for is kept until it is acknowledged, in a place of the connection's.
        let _credit = self.credits.take().ok_or(Full)?;
        Ok(())
    }

    /// Puts a request into the order, behind those that wait to be.
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

    /// Sends the reply to the request that is being handled. Its place was reserved when
    /// that request was accepted.
    pub fn reply(&mut self, handler: u8, words: &[u64], payload: &[u8], now_ns: u64) {
        self.begin_waiting(now_ns);
        self.enqueue(Kind::Reply, handler, words, payload);
    }

    /// Silence and timeouts count from when there is something to wait for.
    fn begin_waiting(&mut self, now_ns: u64) {
        if !self.is_waiting() {
            self.heard_ns = now_ns;
            self.sending.restart_timer(now_ns);
        }
    }

    fn enqueue(&mut self, kind: Kind, handler: u8, words: &[u64], payload: &[u8]) {
        // The requests that it says are completed are those that are as it takes its place in
        // the order: their replies come before it, or are it.
        let header = Header { departed: self.departs.take(), ..self.header(kind, handler) };
        let mut bytes = self.buffers.take();
        datagram::write(&header, words, payload, &mut bytes);
        self.sending.enqueue(kind, bytes);
        // It will arrive, and tell.
        self.ledger.told();
    }

    /// The header of the next in the order, with all that it can say now.
    fn header(&self, kind: Kind, handler: u8) -> Header {
        Header {
            kind,
            handler,
            connection: self.remote,
            sequence: self.sending.next_sequence(),
            transmission: 0,
            arrived: self.receiving.arrived(),
            completed: self.ledger.completed(),
            departed: None,
        }
    }

    /// Something is expected from the peer.
    fn is_waiting(&self) -> bool {
        self.sending.len() > 0 || self.credits.in_flight() > 0
    }

    /// Nothing is taken from the peer any more, or sent to it.
    #[inline]
    fn is_over(&self) -> bool {
        self.lost.is_some() || self.ending.is_some()
    }

    /// The peer is lost, but what is held of it is not.
    fn end_with(&mut self, loss: Loss) {
        if self.held() == 0 {
            self.lost = Some(loss);
        } else {
            self.ending = Some(loss);
        }
    }

    /// Whether the peer has ended, or has said that it will: nothing more comes of it than what is held,
    /// and what that still lacks.
    pub fn is_ending(&self) -> bool {
        self.closing.is_some() || self.ending.is_some()
    }

    /// Takes a datagram that carries our number. On [`Delivery::Now`] the caller handles it
    /// and then what [`Connection::buffered`] gives, or has them held.
    pub fn receive(&mut self, datagram: &Datagram<'_>, now_ns: u64) -> Delivery {
        if self.is_over() {
            return Delivery::Nothing;
        }
        self.received_ns = now_ns;
        let header = &datagram.header;
        let Ok(said) = self.sending.acknowledge(header.arrived, now_ns, &mut self.buffers) else {
            self.absurd += 1;
            return Delivery::Nothing;
        };
        if said == Said::News {
            self.heard_ns = now_ns;
        }
        let is_next = header.sequence == self.receiving.expected();
        match header.kind {
            // What is answered once it is handled.
            Kind::Request | Kind::Store | Kind::Chunk if is_next && !self.has_place() => self.absurd += 1,
            Kind::Probe => self.receiving.acknowledge_now(),
            Kind::Goodbye => {
                self.closing.get_or_insert((header.sequence, now_ns + OVERTAKEN_AT_MOST_NS));
            }
            Kind::Acknowledgement => {}
            _ => {
                if self.receiving.take(datagram, now_ns, &mut self.buffers)
                    && (self.holding.is_some() || self.deliver(header, now_ns))
                {
                    return Delivery::Now;
                }
            }
        }
        // What it says of requests holds now that all that was sent before is here, unless it
        // was sent long ago: its count has 16 bits.
        if is_next && said != Said::Old && !header.kind.is_message() {
            self.complete_in_turn(header.completed, now_ns);
        }
        self.close_when_all_is_here();
        Delivery::Nothing
    }

    /// Learns what the peer has handled, behind what is held.
    fn complete_in_turn(&mut self, completed: u16, now_ns: u64) {
        match self.holding.as_mut().and_then(|holding| holding.last()) {
            None => drop(self.complete(completed, now_ns)),
            Some(last) => last.then_completed = Some(completed),
        }
    }

    /// Holds a message that [`Connection::receive`] or [`Connection::buffered`] gave, until it is due.
    /// When that is `due` says, of the message and the bytes that it or its transfer brings; what is
    /// due is in the order of what is given. Bytes of transfers are placed at once.
    pub fn hold(
        &mut self,
        datagram: &Datagram<'_>,
        memories: &mut impl Memories,
        due: impl FnOnce(Option<Departed>, usize) -> u64,
    ) {
        let Datagram { header, words, word_count, payload, bytes } = *datagram;
        // A window of requests and one of answers: there cannot be more.
        if self.held() >= self.places {
            return self.lost = Some(Loss::Misbehaved);
        }
        let (what, len) = match header.kind {
            Kind::Request | Kind::Reply => {
                let mut copy = self.buffers.take();
                copy.extend_from_slice(bytes);
                (What::Message(copy), size_of_val(&words[..word_count.into()]) + payload.len())
            }
            _ => match self.place(datagram, memories) {
                Ok(Some(step)) => (What::Step(step), step.len()),
                Ok(None) => {
                    // A long transfer is no silence.
                    self.heard_ns = self.received_ns;
                    self.complete_in_turn(header.completed, self.received_ns);
                    return self.close_when_all_is_here();
                }
                Err(Stray) => return self.lost = Some(Loss::Misbehaved),
            },
        };
        let due = due(header.departed, len);
        if let Some(holding) = &mut self.holding {
            holding.put(header, what, due);
        }
        self.close_when_all_is_here();
    }

    /// When the first message that is held is due.
    pub fn next_due(&self) -> Option<u64> {
        self.holding.as_ref().filter(|_| self.lost.is_none())?.next_due()
    }

    /// Silence before this time is none: what is held will be handled then.
    pub fn be_patient(&mut self, until_ns: u64) {
        self.patient_until_ns = self.patient_until_ns.max(until_ns);
    }

    /// Delivers the first message that is held. What has to be answered without a handler departs as
    /// `depart` says of the answer's bytes.
    pub fn release(&mut self, now_ns: u64, depart: impl FnOnce(usize) -> Departed) -> Option<Released> {
        let held = self.holding.as_mut().filter(|_| self.lost.is_none())?.take()?;
        let Held { header, what, then_completed, .. } = held;
        self.heard_ns = now_ns;
        if !self.deliver(&header, now_ns) {
            return None;
        }
        let released = match what {
            What::Message(bytes) => Released::Message(bytes),
            What::Step(step) => match self.finish(step, Some(depart)) {
                Ok(event) => Released::Event(event),
                Err(Stray) => {
                    self.lost = Some(Loss::Misbehaved);
                    return None;
                }
            },
        };
        if let Some(completed) = then_completed {
            self.complete(completed, now_ns);
        }
        self.receiving.owe(now_ns);
        if let Some(loss) = self.ending.filter(|_| self.held() == 0) {
            self.lost = Some(loss);
        }
        Some(released)
    }

    /// Whether something that was sent may not have arrived.
    pub fn has_unacknowledged(&self) -> bool {
        self.sending.len() > 0 || !self.transfers.is_idle()
    }

    /// Takes from a datagram only what it says of ours. For a side that closes: it sees to it
    /// that what it sent arrives, and handles nothing more.
    pub fn acknowledge(&mut self, header: &Header, now_ns: u64) {
        if self.lost.is_none()
            && self.sending.acknowledge(header.arrived, now_ns, &mut self.buffers) == Ok(Said::News)
        {
            self.heard_ns = now_ns;
        }
    }

    /// What has been taken from the network ahead of its turn and whose turn has come.
    pub fn buffered(&mut self) -> Option<Vec<u8>> {
        if self.is_over() {
            return None;
        }
        let (header, bytes) = self.receiving.kept()?;
        if self.holding.is_some() {
            return Some(bytes);
        }
        // What let it go came just now.
        let now_ns = self.received_ns;
        self.deliver(&header, now_ns).then_some(bytes)
    }

    /// Whether a message is to be handled now. Every request that is handled counts before its
    /// reply goes out, so a reply that completes none was not asked for.
    fn deliver(&mut self, header: &Header, now_ns: u64) -> bool {
        self.completes = self.complete(header.completed, now_ns);
        match header.kind {
            Kind::Request => drop(self.ledger.handle()),
            Kind::Reply | Kind::Refused if !self.completes => {
                self.lost = Some(Loss::Misbehaved);
                return false;
            }
            // A long one is no silence.
            Kind::Fetched => self.heard_ns = now_ns,
            _ => {}
        }
        self.close_when_all_is_here();
        true
    }

    /// A peer that has closed is lost once all that it sent is delivered.
    fn close_when_all_is_here(&mut self) {
        if self.closing.is_some_and(|(sequence, _)| sequence == self.receiving.expected()) {
            self.end_with(Loss::Closed);
        }
    }

    /// Learns what the peer has handled. Whether that is news.
    fn complete(&mut self, completed: u16, now_ns: u64) -> bool {
        // An error is an older count, from a message that was sent again.
        let is_news = self.credits.complete_to(completed).is_ok_and(|news| news > 0);
        if is_news {
            self.heard_ns = now_ns;
        }
        is_news
    }

    /// Gives the peer up: nothing more is taken from it or sent to it, but a goodbye.
    pub fn end(&mut self) {
        self.lost.get_or_insert(Loss::Closed);
        if let Some(holding) = &mut self.holding {
            holding.clear();
        }
    }

    /// Gives back a buffer that [`Connection::buffered`] gave, to be used again.
    pub fn recycle(&mut self, buffer: Vec<u8>) {
        self.buffers.give_back(buffer);
    }

    /// When to come back, at the latest. `None` where nothing is waited for.
    pub fn deadline(&self) -> Option<u64> {
        if self.is_over() {
            return None;
        }
        let waiting = self.is_waiting().then(|| self.sending.deadline().min(self.silent_ns()));
        let closing = self.closing.map(|(_, at_ns)| at_ns);
        [waiting, self.receiving.deadline(), closing].into_iter().flatten().min()
    }

    /// When the peer counts as silent if nothing is heard.
    fn silent_ns(&self) -> u64 {
        self.heard_ns.max(self.patient_until_ns).saturating_add(self.peer_timeout_ns)
    }

    /// The time has come, or passed.
    pub fn on_time(&mut self, now_ns: u64) {
        if self.is_over() {
            return;
        }
        if self.closing.is_some_and(|(_, at_ns)| at_ns <= now_ns) {
            self.end_with(Loss::Closed);
            return;
        }
        self.receiving.on_time(now_ns);
        if !self.is_waiting() {
            return;
        }
        if now_ns >= self.silent_ns() {
            self.end_with(Loss::Silent);
            return;
        }
        self.sending.on_time(now_ns);
    }

    /// The next datagram to be sent. `None` where nothing is to be sent now.
    pub fn transmit(&mut self, now_ns: u64) -> Option<&[u8]> {
        if self.is_over() {
            return None;
        }
        if let Some(at) = self.sending.next() {
            let arrived = self.receiving.arrived();
            self.receiving.told();
            return Some(self.sending.transmit(at, arrived, now_ns));
        }
        let kind = if self.sending.take_probe() {
            Kind::Probe
        } else if self.receiving.is_due() || self.ledger.credit_is_due() {
            Kind::Acknowledgement
        } else {
            return None;
        };
        self.acknowledgements += 1;
        Some(self.transmit_alone(kind))
    }

    /// The datagram that says that nothing more will come.
    pub fn goodbye(&mut self) -> &[u8] {
        self.transmit_alone(Kind::Goodbye)
    }

    fn transmit_alone(&mut self, kind: Kind) -> &[u8] {
        let mut header = self.header(kind, 0);
        header.arrived.is_stale = kind == Kind::Probe;
        self.alone = datagram::alone(&header);
        self.receiving.told();
        self.ledger.told();
        &self.alone
    }
}

#[cfg(test)]
mod tests;
