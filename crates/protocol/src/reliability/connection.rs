//! One connection: both directions between a pair of endpoints. Its sending and its
//! receiving side, joined by what a request and its answer mean: credits for what was sent,
//! a ledger of what was handled, and the life of the peer.

use super::buffers::Buffers;
use super::holding::{Held, Holding, Released, What};
use super::receiving::Receiving;
use super::sending::{Said, Sending};
use super::transfers::{
    Arrival, Asked, Event, Memories, Step, Store, Stored, Stray, Transfers, Turn, Waiting,
};
use crate::am::{Credits, Ledger};
use crate::dial::timing::Departed;
use crate::frame::datagram::{self, Datagram, HEADER_LEN, Header, Kind, LONGEST};
use crate::frame::memory_key;
use crate::frame::transfer::Range;
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

    /// Sends a request with `len` bytes for the peer's `memory`, from `offset` on. Gives the
    /// number under which [`Connection::feed`] asks for them.
    ///
    /// # Errors
    /// The window is full.
    pub fn store(
        &mut self,
        handler: u8,
        words: &[u64],
        [memory, offset, len]: [u64; 3],
        now_ns: u64,
    ) -> Result<u32, Full> {
        self.begin_request(now_ns)?;
        let range = Range { number: self.transfers.number(), memory, offset, len };
        let store = Store::new(range, handler, words, self.departs.take());
        self.transfers.wait(Waiting::Store(store));
        Ok(range.number)
    }

    /// Asks for `len` bytes of the peer's `memory`, from `offset` on. Gives the number under
    /// which they come.
    ///
    /// # Errors
    /// The window is full.
    pub fn get(&mut self, [memory, offset, len]: [u64; 3], now_ns: u64) -> Result<u32, Full> {
        self.begin_request(now_ns)?;
        let range = Range { number: self.transfers.number(), memory, offset, len };
        self.transfers.expect(range);
        self.enqueue_request(Kind::Get, 0, &[], &range.encode());
        Ok(range.number)
    }

    /// Asks whether the peer has the memory of that key, all of it just so. The answer comes like
    /// that to a get of no bytes.
    ///
    /// # Errors
    /// The window is full.
    pub fn attach(&mut self, key: &[u8; memory_key::LEN], now_ns: u64) -> Result<u32, Full> {
        self.begin_request(now_ns)?;
        let number = self.transfers.number();
        self.transfers.expect(Range { number, ..Range::default() });
        self.enqueue_request(Kind::Attach, 0, &[number.into()], key);
        Ok(number)
    }

    /// Takes a credit.
    fn begin_request(&mut self, now_ns: u64) -> Result<(), Full> {
        if !self.has_room() {
            return Err(Full);
        }
        self.begin_waiting(now_ns);
        self.credits.take();
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

    /// Takes a delivered message that belongs to a bulk transfer. Where that completes a store of
    /// the peer's, its request counts as handled: the caller handles it, and may reply.
    pub fn transfer(&mut self, datagram: &Datagram<'_>, memories: &mut impl Memories) -> Event {
        match self.take_transfer(datagram, memories) {
            Ok(event) => event,
            Err(Stray) => {
                self.lost = Some(Loss::Misbehaved);
                Event::Nothing
            }
        }
    }

    fn take_transfer(
        &mut self,
        datagram: &Datagram<'_>,
        memories: &mut impl Memories,
    ) -> Result<Event, Stray> {
        match self.place(datagram, memories)? {
            None => Ok(Event::Nothing),
            Some(step) => self.finish::<fn(usize) -> Departed>(step, None),
        }
    }

    /// Places the bytes of a message that belongs to a transfer. What is to be done then, once it is
    /// delivered.
    fn place(
        &mut self,
        datagram: &Datagram<'_>,
        memories: &mut impl Memories,
    ) -> Result<Option<Step>, Stray> {
        let Datagram { header, words, word_count, payload, .. } = *datagram;
        let leading_range = || Range::parse(payload).ok_or(Stray);
        let departed = header.departed;
        let request = |range| Stored { range, handler: header.handler, words, word_count, departed };
        let arrival = match header.kind {
            Kind::Store => {
                let (range, bytes) = leading_range()?;
                self.transfers.begin(request(range), bytes, memories)?
            }
            Kind::Chunk => self.transfers.arrive(words[0], payload, memories)?,
            Kind::Get => return Ok(Some(Step::Asked(Asked { range: leading_range()?.0, has: None }))),
            Kind::Attach => {
                let number = u32::try_from(words[0]).map_err(|_| Stray)?;
                let range = Range { number, ..Range::default() };
                return Ok(Some(Step::Asked(Asked { range, has: Some(memories.has(payload)) })));
            }
            Kind::Fetched => {
                return Ok(self.transfers.fetched(words[0], payload, memories)?.map(Step::Fetched));
            }
            Kind::Refused => {
                return Ok(Some(Step::Refused(self.transfers.refused(request(leading_range()?.0))?)));
            }
            _ => return Err(Stray),
        };
        Ok(match arrival {
            Arrival::Incomplete => None,
            Arrival::Complete(request) => Some(Step::Stored(request)),
            Arrival::Refused(request) => Some(Step::Refuse(request)),
        })
    }

    /// Does what is to be done of a transfer. Where that is to answer, and dials are turned, `depart`
    /// says when the answer's bytes depart.
    fn finish<D: FnOnce(usize) -> Departed>(
        &mut self,
        step: Step,
        depart: Option<D>,
    ) -> Result<Event, Stray> {
        match step {
            Step::Stored(request) => {
                self.ledger.handle();
                return Ok(Event::Stored(request));
            }
            Step::Refuse(request) => {
                let words = request.words_sent();
                self.departs = depart.map(|depart| depart(size_of_val(words)));
                self.refuse(request.range, request.handler, words);
            }
            Step::Asked(asked) => {
                let departed = depart.map(|depart| depart(asked.range.len as usize));
                self.transfers.asked(asked, departed, self.window)?;
            }
            Step::Fetched(range) if self.completes => return Ok(Event::Fetched(range.number)),
            Step::Fetched(_) => return Err(Stray),
            Step::Refused(event) => return Ok(event),
        }
        Ok(Event::Nothing)
    }

    /// The reply to a request of the peer's of which nothing is done.
    fn refuse(&mut self, range: Range, handler: u8, words: &[u64]) {
        self.begin_waiting(self.received_ns);
        self.ledger.handle();
        self.enqueue(Kind::Refused, handler, words, &range.encode());
    }

    /// Whether bytes of our store of that number are still to be taken from where they are.
    pub fn needs_source(&self, number: u32) -> bool {
        self.lost.is_none() && self.transfers.is_waiting(number)
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

    /// Puts a message of the transfers that wait into the order, if it can be transmitted at
    /// once. Whether there was one: then [`Connection::transmit`] gives it.
    #[inline]
    pub fn feed(&mut self, memories: &mut impl Memories, now_ns: u64) -> bool {
        !self.transfers.is_idle() && self.feed_some(memories, now_ns)
    }

    fn feed_some(&mut self, memories: &mut impl Memories, now_ns: u64) -> bool {
        if self.is_over() || !self.sending.is_open() {
            return false;
        }
        let Some(turn) = self.transfers.turn() else { return false };
        self.begin_waiting(now_ns);
        self.feed_from(turn, memories)
            || self.transfers.other(turn).is_some_and(|other| self.feed_from(other, memories))
    }

    /// False where the bytes are not at hand.
    fn feed_from(&mut self, turn: Turn, memories: &mut impl Memories) -> bool {
        match turn {
            Turn::Requests => self.feed_request(memories),
            Turn::Answers => {
                self.feed_answer(memories);
                true
            }
        }
    }

    fn feed_request(&mut self, memories: &mut impl Memories) -> bool {
        let len = match self.transfers.first_waiting() {
            Some(Waiting::Store(store)) => {
                let (at, len) = store.piece();
                let Stored { range, handler, departed, .. } = store.request;
                let mut bytes = self.buffers.take();
                bytes.reserve(LONGEST);
                let kind = if at == 0 { Kind::Store } else { Kind::Chunk };
                let header = Header { departed, ..self.header(kind, handler) };
                if kind == Kind::Store {
                    datagram::write(&header, store.request.words_sent(), &range.encode(), &mut bytes);
                } else {
                    let header = Header { handler: 0, ..header };
                    datagram::write(&header, &[range.number.into()], &[], &mut bytes);
                }
                if !memories.source(range.number, at, len, &mut bytes) {
                    self.buffers.give_back(bytes);
                    return false;
                }
                self.sending.enqueue(kind, bytes);
                self.ledger.told();
                len
            }
            Some(Waiting::Message(..)) => 0,
            None => return false,
        };
        if let Some(Waiting::Message(kind, mut bytes)) = self.transfers.requested(len) {
            datagram::set_completed(&mut bytes, self.ledger.completed());
            self.sending.enqueue(kind, bytes);
            self.ledger.told();
        }
        true
    }

    fn feed_answer(&mut self, memories: &mut impl Memories) {
        let Some(answer) = self.transfers.first_answer() else { return };
        let (range, (at, len), has, departed) = (answer.range, answer.piece(), answer.has, answer.departed);
        let mut bytes = self.buffers.take();
        bytes.reserve(LONGEST);
        let header = Header { departed, ..self.header(Kind::Fetched, 0) };
        datagram::write(&header, &[range.number.into()], &[], &mut bytes);
        if !has.unwrap_or_else(|| memories.read(&range, at, len, &mut bytes)) {
            self.buffers.give_back(bytes);
            self.transfers.refuse();
            self.departs = departed;
            self.refuse(range, 0, &[]);
            return;
        }
        if self.transfers.answered(len) {
            self.ledger.handle();
            datagram::set_completed(&mut bytes, self.ledger.completed());
        }
        self.sending.enqueue(Kind::Fetched, bytes);
        self.ledger.told();
    }

    /// What of transfers is not in the order yet is not sent any more: for a side that closes, and has
    /// the bytes no longer.
    pub fn forget_transfers(&mut self) {
        self.transfers.forget();
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
mod tests {
    use super::*;
    use crate::frame::datagram::Arrived;

    const DELAY_NS: u64 = 25_000;
    const ROUND_TRIP_NS: u64 = 10_000;

    fn pair(window: u32) -> [Connection; 2] {
        let config = Config { window, acknowledgement_delay_ns: DELAY_NS, ..Config::default() };
        [Connection::new(config, 1, 2, 0), Connection::new(config, 2, 1, 0)]
    }

    /// All that a connection sends now.
    fn transmit(from: &mut Connection, now_ns: u64) -> Vec<Vec<u8>> {
        core::iter::from_fn(|| from.transmit(now_ns).map(<[u8]>::to_vec)).collect()
    }

    /// Hands over datagrams; every request is answered where `answer` says so. How many
    /// messages were handled.
    fn deliver(to: &mut Connection, datagrams: &[Vec<u8>], answer: bool, now_ns: u64) -> usize {
        let mut handled = 0;
        let mut handle = |to: &mut Connection, datagram: &Datagram<'_>| {
            handled += 1;
            if answer && datagram.header.kind == Kind::Request {
                to.reply(0, &datagram.words, datagram.payload, now_ns);
            }
        };
        for bytes in datagrams {
            let datagram = datagram::parse(bytes).unwrap();
            if to.receive(&datagram, now_ns) == Delivery::Now {
                handle(to, &datagram);
                while let Some(bytes) = to.buffered() {
                    handle(to, &datagram::parse(&bytes).unwrap());
                    to.recycle(bytes);
                }
            }
        }
        handled
    }

    #[test]
    fn a_round_trip_without_loss_takes_two_datagrams() {
        let [mut a, mut b] = pair(1);
        let mut now_ns = 0;
        for _ in 0..1_000 {
            a.request(3, &[1, 2], b"to", now_ns).unwrap();
            assert_eq!(a.request(3, &[], &[], now_ns), Err(Full));
            let requests = transmit(&mut a, now_ns);
            now_ns += ROUND_TRIP_NS / 2;
            assert_eq!(deliver(&mut b, &requests, true, now_ns), 1);
            let replies = transmit(&mut b, now_ns);
            now_ns += ROUND_TRIP_NS / 2;
            assert_eq!(deliver(&mut a, &replies, true, now_ns), 1);
            assert_eq!((requests.len(), replies.len()), (1, 1));
            for connection in [&a, &b] {
                assert!(connection.deadline().is_none_or(|at_ns| at_ns > now_ns));
            }
        }
        let counters = Counters { sent: 1_000, delivered: 1_000, ..Counters::default() };
        assert_eq!((a.counters(), b.counters()), (counters, counters));
        // Only the last reply is acknowledged alone, once nothing has come to carry that.
        now_ns += DELAY_NS;
        a.on_time(now_ns);
        deliver(&mut b, &transmit(&mut a, now_ns), true, now_ns);
        assert_eq!((a.counters().acknowledgements, b.counters().acknowledgements), (1, 0));
        assert_eq!((a.deadline(), b.deadline()), (None, None));
    }

    #[test]
    fn requests_that_are_not_answered_are_completed_by_an_acknowledgement() {
        let [mut a, mut b] = pair(4);
        a.request(0, &[], &[], 0).unwrap();
        assert_eq!(deliver(&mut b, &transmit(&mut a, 0), false, 0), 1);
        // One may wait for something to travel with.
        assert_eq!(b.transmit(0), None);
        b.on_time(DELAY_NS);
        deliver(&mut a, &transmit(&mut b, DELAY_NS), false, DELAY_NS);
        assert_eq!(a.in_flight(), 0);
        // Half a window may not.
        (0..2).for_each(|_| a.request(0, &[], &[], DELAY_NS).unwrap());
        assert_eq!(deliver(&mut b, &transmit(&mut a, DELAY_NS), false, DELAY_NS), 2);
        deliver(&mut a, &transmit(&mut b, DELAY_NS), false, DELAY_NS);
        assert_eq!(a.in_flight(), 0);
        assert_eq!(b.counters().acknowledgements, 2);
    }

    #[test]
    fn what_is_sent_again_is_the_same_message() {
        let [mut a, mut b] = pair(4);
        a.request(9, &[1, 2, 3], b"payload", 0).unwrap();
        let lost = transmit(&mut a, 0);
        let now_ns = a.deadline().unwrap();
        a.on_time(now_ns);
        let [again] = &transmit(&mut a, now_ns)[..] else { panic!() };
        let [once, twice] = [&lost[0], again].map(|bytes| datagram::parse(bytes).unwrap());
        let arrived = Arrived { is_stale: true, ..once.header.arrived };
        assert_eq!(twice.header, Header { transmission: 2, arrived, ..once.header });
        assert_eq!((once.words, once.payload), (twice.words, twice.payload));
        assert_eq!(deliver(&mut b, &lost, true, now_ns), 1);
        // Its twin is not handled, and its sender learns at once that it has come.
        assert_eq!(deliver(&mut b, &lost, true, now_ns), 0);
        assert_eq!(b.counters().duplicates, 1);
        deliver(&mut a, &transmit(&mut b, now_ns), true, now_ns);
        assert_eq!(a.in_flight(), 0);
    }

    #[test]
    fn requests_that_never_left_are_counted_when_the_peer_is_lost() {
        let [mut a, _] = pair(64);
        (0..40).for_each(|_| a.request(0, &[], &[], 0).unwrap());
        assert_eq!((a.in_flight(), a.not_sent()), (40, 40));
        let sent = transmit(&mut a, 0).len() as u32;
        assert!((1..40).contains(&sent));
        while let Some(at_ns) = a.deadline() {
            a.on_time(at_ns);
            transmit(&mut a, at_ns);
        }
        assert_eq!(a.lost(), Some(Loss::Silent));
        assert_eq!((a.in_flight(), a.not_sent()), (40, 40 - sent));
    }

    #[test]
    fn a_goodbye_is_heard_after_all_that_was_sent_before() {
        let [mut a, mut b] = pair(4);
        a.request(0, &[], &[], 0).unwrap();
        let request = transmit(&mut a, 0);
        let goodbye = [a.goodbye().to_vec()];
        deliver(&mut b, &goodbye, true, 0);
        assert_eq!(b.lost(), None);
        assert_eq!(deliver(&mut b, &request, true, 0), 1);
        assert_eq!(b.lost(), Some(Loss::Closed));
        assert_eq!(b.transmit(0), None);
        assert_eq!(b.deadline(), None);
    }

    #[test]
    fn what_is_missing_at_a_goodbye_is_not_waited_for() {
        let [mut a, mut b] = pair(4);
        a.request(0, &[], &[], 0).unwrap();
        transmit(&mut a, 0);
        deliver(&mut b, &[a.goodbye().to_vec()], true, 0);
        assert_eq!((b.lost(), b.deadline()), (None, Some(OVERTAKEN_AT_MOST_NS)));
        b.on_time(OVERTAKEN_AT_MOST_NS);
        assert_eq!(b.lost(), Some(Loss::Closed));
    }

    #[test]
    fn a_side_that_closes_sees_to_its_own_and_takes_nothing() {
        let [mut a, mut b] = pair(4);
        a.request(0, &[], &[], 0).unwrap();
        b.request(0, &[], &[], 0).unwrap();
        deliver(&mut b, &transmit(&mut a, 0), true, 0);
        assert!(b.has_unacknowledged());
        let datagrams = transmit(&mut a, 0).into_iter().chain(transmit(&mut b, 0));
        for bytes in datagrams.collect::<Vec<_>>() {
            a.acknowledge(&datagram::parse(&bytes).unwrap().header, 0);
        }
        assert!(!a.has_unacknowledged());
        assert_eq!((a.counters().delivered, a.in_flight()), (0, 1));
    }

    #[test]
    fn a_peer_that_acknowledges_nothing_cannot_make_the_queue_grow() {
        let [a, mut b] = pair(4);
        let (mut issued, mut handled) = (0, 0);
        for _ in 0..100 {
            // All of yours are handled, it says, and here is one more of mine.
            let header = Header { connection: 2, completed: issued, ..a.header(Kind::Request, 0) };
            let mut bytes = Vec::new();
            datagram::write(&header, &[], &[], &mut bytes);
            datagram::stamp(&mut bytes, handled, 1, a.receiving.arrived());
            handled += deliver(&mut b, &[bytes], true, 0) as u32;
            issued += u16::from(b.request(0, &[], &[], 0).is_ok());
        }
        assert_eq!(b.sending.len(), 8);
        assert_eq!(b.counters().absurd, 100 - u64::from(handled));
        assert!(b.in_flight() < 4 && !b.has_room());
    }

    /// Bytes of no transfer.
    struct NoMemory;

    impl Memories for NoMemory {
        fn source(&mut self, _: u32, _: u64, _: usize, _: &mut Vec<u8>) -> bool {
            false
        }
        fn has(&mut self, _: &[u8]) -> bool {
            false
        }
        fn read(&mut self, _: &Range, _: u64, _: usize, _: &mut Vec<u8>) -> bool {
            false
        }
        fn write(&mut self, _: &Range, _: u64, _: &[u8]) -> bool {
            false
        }
        fn fetched(&mut self, _: u32, _: u64, _: &[u8]) {}
    }

    #[test]
    fn nobody_waits_for_transfers_that_are_forgotten() {
        let [mut a, mut b] = pair(4);
        a.store(0, &[], [0, 0, 10_000], 0).unwrap();
        b.get([0, 0, 10_000], 0).unwrap();
        assert_eq!(deliver_transfers(&mut a, &transmit(&mut b, 0)), 1);
        assert!(a.has_unacknowledged() && a.in_flight() == 1);
        a.forget_transfers();
        assert!(!a.has_unacknowledged() && !a.feed(&mut NoMemory, 0));
        deliver(&mut b, &[a.goodbye().to_vec()], false, 0);
        assert_eq!(b.lost(), Some(Loss::Closed));
    }

    /// Hands over datagrams of transfers. How many were taken.
    fn deliver_transfers(to: &mut Connection, datagrams: &[Vec<u8>]) -> usize {
        let mut taken = 0;
        for bytes in datagrams {
            let datagram = datagram::parse(bytes).unwrap();
            if to.receive(&datagram, 0) == Delivery::Now {
                assert_eq!(to.transfer(&datagram, &mut NoMemory), Event::Nothing);
                taken += 1;
            }
        }
        taken
    }

    /// Hands over datagrams that are held, each until the number that its stamp says.
    fn hold(at: &mut Connection, datagrams: &[Vec<u8>], now_ns: u64) {
        for bytes in datagrams {
            let datagram = datagram::parse(bytes).unwrap();
            if at.receive(&datagram, now_ns) == Delivery::Now {
                at.hold(&datagram, &mut NoMemory, |departed, _| departed.unwrap().at);
                while let Some(bytes) = at.buffered() {
                    let datagram = datagram::parse(&bytes).unwrap();
                    at.hold(&datagram, &mut NoMemory, |departed, _| departed.unwrap().at);
                }
            }
        }
    }

    fn release(at: &mut Connection, now_ns: u64) -> Vec<u8> {
        match at.release(now_ns, |_| panic!("nobody asks for bytes")) {
            Some(Released::Message(bytes)) => bytes,
            other => panic!("{other:?}"),
        }
    }

    fn dialled_pair() -> [Connection; 2] {
        let mut pair = pair(4);
        pair.iter_mut().for_each(Connection::hold_messages);
        pair
    }

    fn departs(from: &mut Connection, at: u64) {
        from.depart(Departed { at, at_once: true });
    }

    /// What arrives is acknowledged, and counts as handled no sooner than it is.
    #[test]
    fn what_is_held_is_delivered_when_it_is_released() {
        let [mut a, mut b] = dialled_pair();
        for nth in 0..4 {
            departs(&mut a, 100 + nth);
            a.request(0, &[nth], &[], 0).unwrap();
        }
        // The first comes last.
        let mut requests = transmit(&mut a, 0);
        requests.rotate_left(1);
        hold(&mut b, &requests, 0);
        assert_eq!((b.held(), b.next_due()), (4, Some(100)));
        b.on_time(DELAY_NS);
        hold(&mut a, &transmit(&mut b, DELAY_NS), DELAY_NS);
        assert_eq!((a.in_flight(), a.has_unacknowledged()), (4, false));
        for nth in 0..3 {
            let bytes = release(&mut b, 2 * DELAY_NS);
            assert_eq!(datagram::parse(&bytes).unwrap().words[0], nth);
            departs(&mut b, 200 + nth);
            b.reply(0, &[nth], &[], 2 * DELAY_NS);
        }
        hold(&mut a, &transmit(&mut b, 2 * DELAY_NS), 2 * DELAY_NS);
        // The last one is answered by an acknowledgement, which comes after the replies.
        release(&mut b, 2 * DELAY_NS);
        b.on_time(3 * DELAY_NS);
        hold(&mut a, &transmit(&mut b, 3 * DELAY_NS), 3 * DELAY_NS);
        assert_eq!((a.held(), a.in_flight()), (3, 4));
        for left in [3, 2, 0] {
            release(&mut a, 4 * DELAY_NS);
            assert_eq!((a.in_flight(), a.lost()), (left, None));
        }
    }

    #[test]
    fn a_closed_peer_is_lost_when_nothing_is_held_of_it() {
        let [mut a, mut b] = dialled_pair();
        for at in [7, 8] {
            departs(&mut a, at);
            a.request(0, &[], &[], 0).unwrap();
        }
        hold(&mut b, &transmit(&mut a, 0), 0);
        hold(&mut b, &[a.goodbye().to_vec()], 0);
        assert!(b.is_ending() && b.lost().is_none() && b.deadline().is_none());
        release(&mut b, 10);
        assert_eq!(b.lost(), None);
        release(&mut b, 20);
        assert_eq!((b.lost(), b.next_due()), (Some(Loss::Closed), None));
    }

    /// A peer that need not answer yet is not asked, nor given up.
    #[test]
    fn nobody_is_silent_before_its_time() {
        let [mut a, mut b] = dialled_pair();
        let late_ns = 20_000_000_000;
        departs(&mut a, 7);
        a.expect_answer(late_ns);
        a.request(0, &[], &[], 0).unwrap();
        hold(&mut b, &transmit(&mut a, 0), 0);
        b.on_time(DELAY_NS);
        hold(&mut a, &transmit(&mut b, DELAY_NS), DELAY_NS);
        assert!(a.deadline().unwrap() > late_ns);
        a.on_time(late_ns);
        assert_eq!(a.transmit(late_ns), None);
        assert_eq!(a.lost(), None);
        a.on_time(late_ns + Config::default().peer_timeout_ns);
        assert_eq!(a.lost(), Some(Loss::Silent));
    }

    #[test]
    fn a_peer_that_floods_is_not_held_without_end() {
        let [mut a, mut b] = dialled_pair();
        for sequence in 0..100 {
            let departed = Some(Departed { at: 1, at_once: true });
            let header = Header { departed, ..a.header(Kind::Request, 0) };
            let mut bytes = Vec::new();
            datagram::write(&header, &[], &[], &mut bytes);
            datagram::stamp(&mut bytes, sequence, 1, Arrived::default());
            hold(&mut b, &[bytes], 0);
        }
        assert_eq!((b.held(), b.counters().absurd, a.next_due()), (8, 1, None));
        a.end();
    }

    #[test]
    fn a_goodbye_tells_what_was_handled() {
        let [mut a, mut b] = pair(8);
        (0..3).for_each(|_| a.request(0, &[], &[], 0).unwrap());
        let requests = transmit(&mut a, 0);
        assert_eq!(deliver(&mut b, &requests[..2], false, 0), 2);
        let goodbye = [b.goodbye().to_vec()];
        deliver(&mut a, &goodbye, false, 0);
        assert_eq!((a.lost(), a.in_flight(), a.not_sent()), (Some(Loss::Closed), 1, 0));
    }
}
