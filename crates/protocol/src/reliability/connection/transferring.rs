//! Bulk transfers of a connection.

use super::{Connection, Full, Loss};
use crate::dial::timing::Departed;
use crate::frame::datagram::{self, Datagram, Header, Kind, LONGEST, LONGEST_PIECE, MOST_GRANTED};
use crate::frame::memory_key;
use crate::frame::transfer::Range;
use crate::reliability::congestion::Controller;
use crate::reliability::transfers::{
    Arrival, Asked, Event, Memories, Step, Store, Stored, Stray, Turn, Waiting,
};

impl<C: Controller> Connection<C> {
    /// Sends a request with `len` bytes for the peer's `memory`, from `offset` on. Returns the number under
    /// which [`Connection::feed`] asks for the bytes.
    ///
    /// # Errors
    /// Returns [`Full`] if the window is full.
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
        if self.transfers.is_idle() && self.sending.pieces() == 0 {
            self.sending.begin_unasked();
        }
        self.transfers.wait(Waiting::Store(store));
        Ok(range.number)
    }

    /// Asks for `len` bytes of the peer's `memory`, from `offset` on. Returns the number under which they
    /// will arrive.
    ///
    /// # Errors
    /// Returns [`Full`] if the window is full.
    pub fn get(&mut self, [memory, offset, len]: [u64; 3], now_ns: u64) -> Result<u32, Full> {
        self.begin_request(now_ns)?;
        let range = Range { number: self.transfers.number(), memory, offset, len };
        self.transfers.expect(range);
        self.enqueue_request(Kind::Get, 0, &[], &range.encode());
        Ok(range.number)
    }

    /// Asks whether the peer has registered the memory of exactly that key. The answer arrives like that to a
    /// get of no bytes.
    ///
    /// # Errors
    /// Returns [`Full`] if the window is full.
    pub fn attach(&mut self, key: &[u8; memory_key::LEN], now_ns: u64) -> Result<u32, Full> {
        self.begin_request(now_ns)?;
        let number = self.transfers.number();
        self.transfers.expect(Range { number, ..Range::default() });
        self.enqueue_request(Kind::Attach, 0, &[number.into()], key);
        Ok(number)
    }

    /// Grants the peer that many messages of its bulk transfers in flight, 1 to 64. The next datagram tells it. A new
    /// connection grants 64.
    #[inline]
    pub fn grant(&mut self, messages: u8) {
        self.share = messages.clamp(1, MOST_GRANTED);
    }

    /// Reports whether bytes arrive, if that has changed since the last call: a store of the peer has begun and is not
    /// complete, or a get of this side is not.
    #[inline]
    pub fn change_of_arrival(&mut self) -> Option<bool> {
        let are_arriving = self.lost.is_none() && self.transfers.are_bytes_arriving();
        let has_changed = are_arriving != self.were_bytes_arriving;
        self.were_bytes_arriving = are_arriving;
        has_changed.then_some(are_arriving)
    }

    /// Returns the number of messages in flight that continue bulk transfers of this side. Each of them was granted.
    pub fn granted_in_flight(&self) -> u32 {
        self.sending.pieces_under_way()
    }

    /// Takes a delivered message that belongs to a bulk transfer. If that completes a store of the peer, its
    /// request counts as handled. The caller then handles it and may reply.
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

    /// Places the bytes of a message that belongs to a transfer. Returns the next step of the transfer, which
    /// follows once the message is delivered.
    pub(super) fn place(
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
                // A store with more bytes than go unasked waits for its grant.
                if range.len / LONGEST_PIECE as u64 > self.sending.unasked().into() {
                    self.receiving.acknowledge_now();
                }
                self.transfers.begin(request(range), bytes, memories)?
            }
            Kind::Chunk => {
                self.receiving.acknowledge_after(self.share.into());
                self.transfers.arrive(words[0], payload, memories)?
            }
            Kind::Get => {
                let (range, _) = leading_range()?;
                // Its memory is examined when it is answered, behind the gets before it. Later requests may be handled
                // before it is refused.
                return Ok(Some(Step::Asked(Asked { range, has: None, bytes: 0 })));
            }
            Kind::Attach => {
                let number = u32::try_from(words[0]).map_err(|_| Stray)?;
                let range = Range { number, ..Range::default() };
                return Ok(Some(Step::Asked(Asked { range, has: Some(memories.has(payload)), bytes: 0 })));
            }
            Kind::Fetched => {
                self.receiving.acknowledge_after(self.share.into());
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

    /// Carries out a step of a transfer. On a dialled link `depart` returns the departure of an answer, from
    /// the number of its bytes.
    pub(super) fn finish<D: FnOnce(usize) -> Departed>(
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
                let departed = depart.map(|depart| depart(asked.bytes));
                self.transfers.asked(asked, departed, self.window)?;
            }
            Step::Fetched(range) if self.completes => return Ok(Event::Fetched(range.number)),
            Step::Fetched(_) => return Err(Stray),
            Step::Refused(event) => return Ok(event),
        }
        Ok(Event::Nothing)
    }

    /// Refuses a store that [`Event::Stored`] reported, because its memory was deregistered while the request
    /// was held.
    pub fn refuse_stored(&mut self, request: &Stored, now_ns: u64) {
        self.begin_waiting(now_ns);
        self.enqueue(Kind::Refused, request.handler, request.words_sent(), &request.range.encode());
    }

    /// Sends the refusal of a request of the peer.
    fn refuse(&mut self, range: Range, handler: u8, words: &[u64]) {
        self.begin_waiting(self.received_ns);
        self.ledger.handle();
        self.enqueue(Kind::Refused, handler, words, &range.encode());
    }

    /// Reports whether bytes of this side's store of that number are still to be read from memory.
    pub fn needs_source(&self, number: u32) -> bool {
        self.lost.is_none() && self.transfers.is_waiting(number)
    }

    /// Queues a message of the waiting transfers, if it can be transmitted at once. Returns whether there was
    /// one; [`Connection::transmit`] then returns it.
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

    /// Returns false if the bytes are not available or not granted.
    fn feed_from(&mut self, turn: Turn, memories: &mut impl Memories) -> bool {
        match turn {
            Turn::Requests => self.feed_request(memories),
            Turn::Answers => self.feed_answer(memories),
        }
    }

    fn feed_request(&mut self, memories: &mut impl Memories) -> bool {
        let len = match self.transfers.first_waiting() {
            Some(Waiting::Store(store)) => {
                let (at, len) = store.piece();
                if at > 0 && !self.sending.is_granted() {
                    return false;
                }
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

    fn feed_answer(&mut self, memories: &mut impl Memories) -> bool {
        let Some(answer) = self.transfers.first_answer().filter(|_| self.sending.is_granted()) else {
            return false;
        };
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
            return true;
        }
        if self.transfers.answered(len) {
            self.ledger.handle();
            datagram::set_completed(&mut bytes, self.ledger.completed());
        }
        self.sending.enqueue(Kind::Fetched, bytes);
        self.ledger.told();
        true
    }

    /// Drops the answers to gets that are not queued yet. A side that closes and keeps the bytes of its own transfers uses
    /// this: the peer learns by the goodbye that it gets no answer.
    pub fn forget_answers(&mut self) {
        self.transfers.forget_answers();
    }

    /// Drops the parts of transfers that are not queued yet. A side that closes uses this, because it no
    /// longer has their bytes.
    pub fn forget_transfers(&mut self) {
        self.transfers.forget();
    }
}
