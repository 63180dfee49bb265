//! One connection: both directions between a pair of endpoints.

use super::congestion::{Congestion, MOST};
use super::round_trip::RoundTrip;
use crate::am::{Credits, Ledger};
use crate::frame::datagram::{self, Datagram, Header, Kind, LONGEST};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Messages that can arrive ahead of one that is missing: as many as the selective
/// acknowledgement has bits.
const AHEAD: u32 = 64;
/// A message counts as lost when one that was sent so many transmissions later arrived.
const REORDERING: u64 = 3;
/// Messages received in order before they are acknowledged at once.
const UNACKNOWLEDGED_AT_MOST: u32 = 16;
/// Timeouts in a row after the probe that make everything count as lost.
const PROBES: u32 = 1;

/// What is fixed for the life of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Requests that may be unanswered.
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
    /// The peer said nothing for too long while something was waited for.
    Silent,
    /// The peer has closed, after everything it sent was delivered.
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
    /// Acknowledgements that travelled alone.
    pub acknowledgements: u64,
    /// Messages delivered.
    pub delivered: u64,
    /// Messages that had arrived before.
    pub duplicates: u64,
    /// Messages too far ahead to be kept.
    pub beyond: u64,
    /// Datagrams that acknowledge what was never sent.
    pub absurd: u64,
}

/// A message on its way out.
#[derive(Debug)]
struct Outgoing {
    /// Its header. The requests it says are completed are those that were when it took its
    /// place in the order: their replies come before it, or are it.
    header: Header,
    bytes: Vec<u8>,
    sent_ns: u64,
    /// The order of its last transmission among all of this connection.
    order: u64,
    transmissions: u32,
    state: Way,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Not transmitted yet, or to be transmitted again.
    Here,
    /// Transmitted, nothing heard.
    Flying,
    /// Acknowledged out of order.
    Arrived,
}

/// One side of a connection.
#[derive(Debug)]
pub struct Connection {
    config: Config,
    /// Our number, which the peer puts into its datagrams, and the peer's.
    local: u64,
    remote: u64,
    credits: Credits,
    ledger: Ledger,

    outgoing: VecDeque<Outgoing>,
    /// Sequence number of the first of them.
    first: u32,
    /// How many of them have been transmitted at least once.
    transmitted: usize,
    under_way: u32,
    /// Transmissions so far, and the latest of them known to have arrived.
    order: u64,
    arrived_order: u64,
    /// Losses among transmissions before this one have been answered already.
    recovery_order: u64,
    spare: Vec<Vec<u8>>,

    round_trip: RoundTrip,
    congestion: Congestion,
    timeouts: u32,
    probe_is_due: bool,
    /// When the retransmission timer was last set.
    timer_ns: u64,

    expected: u32,
    ahead: VecDeque<Option<Vec<u8>>>,
    unacknowledged: u32,
    acknowledge_at_ns: Option<u64>,
    /// An acknowledgement is to travel alone.
    acknowledge_now: bool,

    heard_ns: u64,
    lost: Option<Loss>,
    counters: Counters,
}

impl Connection {
    /// A connection with `local` as our number and `remote` as the peer's.
    pub fn new(config: Config, local: u64, remote: u64, now_ns: u64) -> Self {
        Self {
            config,
            local,
            remote,
            credits: Credits::new(config.window),
            ledger: Ledger::new(config.window),
            outgoing: VecDeque::new(),
            first: config.first_sequence,
            transmitted: 0,
            under_way: 0,
            order: 0,
            arrived_order: 0,
            recovery_order: 0,
            spare: Vec::new(),
            round_trip: RoundTrip::default(),
            congestion: Congestion::new(),
            timeouts: 0,
            probe_is_due: false,
            timer_ns: now_ns,
            expected: config.first_sequence,
            ahead: VecDeque::new(),
            unacknowledged: 0,
            acknowledge_at_ns: None,
            acknowledge_now: false,
            heard_ns: now_ns,
            lost: None,
            counters: Counters::default(),
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

    /// Why the connection has ended, once it has.
    pub fn lost(&self) -> Option<Loss> {
        self.lost
    }

    /// What happened so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Memory that the connection holds now, in bytes. It grows with what is under way.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + self.outgoing.capacity() * size_of::<Outgoing>()
            + self.outgoing.iter().map(|out| out.bytes.capacity()).sum::<usize>()
            + self.ahead.capacity() * size_of::<Option<Vec<u8>>>()
            + self.ahead.iter().flatten().map(Vec::capacity).sum::<usize>()
            + self.spare.capacity() * size_of::<Vec<u8>>()
            + self.spare.iter().map(Vec::capacity).sum::<usize>()
    }

    /// Whether a request may be sent.
    pub fn has_room(&self) -> bool {
        self.credits.has_room()
    }

    /// Sends a request.
    ///
    /// # Errors
    /// The window is full.
    pub fn request(&mut self, handler: u8, words: &[u64], payload: &[u8], now_ns: u64) -> Result<(), Full> {
        if !self.credits.has_room() {
            return Err(Full);
        }
        self.begin_waiting(now_ns);
        self.credits.take();
        self.enqueue(Kind::Request, handler, words, payload);
        Ok(())
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
            self.timer_ns = now_ns;
            self.timeouts = 0;
        }
    }

    fn enqueue(&mut self, kind: Kind, handler: u8, words: &[u64], payload: &[u8]) {
        let mut encoded = [0; LONGEST];
        let header = self.header(kind, handler, 0);
        let len = datagram::encode(&header, words, payload, &mut encoded);
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(&encoded[..len]);
        self.outgoing.push_back(Outgoing {
            header,
            bytes,
            sent_ns: 0,
            order: 0,
            transmissions: 0,
            state: Way::Here,
        });
    }

    /// A header that says what has arrived up to now.
    fn header(&self, kind: Kind, handler: u8, sequence: u32) -> Header {
        Header {
            kind,
            handler,
            connection: self.remote,
            sequence,
            acknowledged: self.expected,
            selective: self.selective(),
            completed: self.ledger.completed(),
        }
    }

    fn selective(&self) -> u64 {
        // The first of those ahead is the missing one.
        self.ahead.iter().skip(1).enumerate().fold(0, |bits, (i, slot)| bits | u64::from(slot.is_some()) << i)
    }

    /// Something is expected from the peer.
    fn is_waiting(&self) -> bool {
        !self.outgoing.is_empty() || self.credits.in_flight() > 0
    }

    /// Takes a datagram that carries our number. On [`Delivery::Now`] the caller handles it
    /// and then what [`Connection::buffered`] gives.
    pub fn receive(&mut self, datagram: &Datagram<'_>, now_ns: u64) -> Delivery {
        let header = &datagram.header;
        if self.lost.is_some() || !self.take_acknowledgement(header, now_ns) {
            return Delivery::Nothing;
        }
        self.heard_ns = now_ns;
        match header.kind {
            Kind::Request | Kind::Reply => self.take_message(datagram, now_ns),
            Kind::Acknowledgement => {
                // What it says of requests holds once all that was sent before is here.
                if header.sequence == self.expected {
                    self.complete(header.completed);
                }
                Delivery::Nothing
            }
            Kind::Probe => {
                self.acknowledge_now = true;
                Delivery::Nothing
            }
            Kind::Goodbye => {
                if header.sequence == self.expected {
                    self.lost = Some(Loss::Closed);
                }
                Delivery::Nothing
            }
        }
    }

    /// What has been taken from the network ahead of its turn and whose turn has come.
    pub fn buffered(&mut self) -> Option<Vec<u8>> {
        let next = self.ahead.front_mut()?.take()?;
        if let Ok(datagram) = datagram::parse(&next) {
            self.deliver(&datagram.header);
        }
        Some(next)
    }

    fn take_message(&mut self, datagram: &Datagram<'_>, now_ns: u64) -> Delivery {
        let header = &datagram.header;
        let offset = header.sequence.wrapping_sub(self.expected);
        if offset == 0 {
            if self.acknowledge_at_ns.is_none() {
                self.acknowledge_at_ns = Some(now_ns + self.config.acknowledgement_delay_ns);
            }
            self.deliver(header);
            return Delivery::Now;
        }
        // Whatever is out of order tells of a loss: the sender should know at once.
        self.acknowledge_now = true;
        if offset > u32::MAX / 2 {
            self.counters.duplicates += 1;
        } else if offset > AHEAD {
            self.counters.beyond += 1;
        } else {
            self.keep(offset as usize, datagram);
        }
        Delivery::Nothing
    }

    fn keep(&mut self, offset: usize, datagram: &Datagram<'_>) {
        while self.ahead.len() <= offset {
            self.ahead.push_back(None);
        }
        let slot = &mut self.ahead[offset];
        if slot.is_some() {
            self.counters.duplicates += 1;
            return;
        }
        let mut bytes = self.spare.pop().unwrap_or_default();
        let mut encoded = [0; LONGEST];
        let words = &datagram.words[..usize::from(datagram.word_count)];
        let len = datagram::encode(&datagram.header, words, datagram.payload, &mut encoded);
        bytes.clear();
        bytes.extend_from_slice(&encoded[..len]);
        *slot = Some(bytes);
    }

    /// Moves past the message that is expected.
    fn deliver(&mut self, header: &Header) {
        self.ahead.pop_front();
        if self.ahead.iter().all(Option::is_none) {
            self.ahead.clear();
        }
        self.expected = self.expected.wrapping_add(1);
        self.counters.delivered += 1;
        self.unacknowledged += 1;
        if self.unacknowledged >= UNACKNOWLEDGED_AT_MOST {
            self.acknowledge_now = true;
        }
        self.complete(header.completed);
        if header.kind == Kind::Request {
            self.ledger.handle();
        }
    }

    /// Gives back a buffer that [`Connection::buffered`] gave, to be used again.
    pub fn recycle(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < MOST as usize {
            self.spare.push(buffer);
        }
    }

    fn complete(&mut self, completed: u16) {
        // An error is an older count, from a message that was sent again: nothing new.
        let _ = self.credits.complete_to(completed);
    }

    /// Learns what has arrived. False where that cannot be.
    fn take_acknowledgement(&mut self, header: &Header, now_ns: u64) -> bool {
        let news = header.acknowledged.wrapping_sub(self.first);
        if news > u32::MAX / 2 {
            // Older than what is known: overtaken on the way.
            return true;
        }
        if news as usize > self.transmitted {
            self.counters.absurd += 1;
            return false;
        }
        let mut newest: Option<(u64, u64)> = None;
        let mut progress = news > 0;
        for _ in 0..news {
            let Some(out) = self.outgoing.pop_front() else { break };
            self.transmitted -= 1;
            self.first = self.first.wrapping_add(1);
            self.note_arrival(&out, &mut newest);
            self.recycle(out.bytes);
        }
        // Bit i stands for the message after the missing one, which is now the first.
        let mut bits = header.selective;
        while bits != 0 {
            let at = 1 + bits.trailing_zeros() as usize;
            bits &= bits - 1;
            if at < self.transmitted && self.outgoing[at].state != Way::Arrived {
                progress = true;
                let was = self.outgoing[at].state;
                self.outgoing[at].state = Way::Arrived;
                let (sent_ns, order, once) = (
                    self.outgoing[at].sent_ns,
                    self.outgoing[at].order,
                    self.outgoing[at].transmissions == 1,
                );
                self.count_arrival(was, sent_ns, order, once, &mut newest);
            }
        }
        if let Some((_, sent_ns)) = newest {
            self.round_trip.sample(now_ns.saturating_sub(sent_ns));
        }
        if progress {
            self.timeouts = 0;
            self.timer_ns = now_ns;
            self.find_losses();
        }
        true
    }

    fn note_arrival(&mut self, out: &Outgoing, newest: &mut Option<(u64, u64)>) {
        if out.state != Way::Arrived {
            self.count_arrival(out.state, out.sent_ns, out.order, out.transmissions == 1, newest);
        }
    }

    fn count_arrival(
        &mut self,
        was: Way,
        sent_ns: u64,
        order: u64,
        once: bool,
        newest: &mut Option<(u64, u64)>,
    ) {
        if was == Way::Flying {
            self.under_way -= 1;
        }
        self.congestion.arrived();
        self.arrived_order = self.arrived_order.max(order);
        // A message sent twice does not tell which of the two arrived (Karn and Partridge 1987).
        if once && newest.is_none_or(|(newest, _)| newest < order) {
            *newest = Some((order, sent_ns));
        }
    }

    /// What was sent well before something that arrived is lost.
    fn find_losses(&mut self) {
        let mut newest_lost = 0;
        for out in self.outgoing.iter_mut().take(self.transmitted) {
            if out.state == Way::Flying && out.order + REORDERING <= self.arrived_order {
                out.state = Way::Here;
                self.under_way -= 1;
                newest_lost = newest_lost.max(out.order);
            }
        }
        if newest_lost > self.recovery_order {
            self.congestion.lost();
            self.recovery_order = self.order;
        }
    }

    /// When to come back, at the latest. `None` where nothing is waited for.
    pub fn deadline(&self) -> Option<u64> {
        if self.lost.is_some() {
            return None;
        }
        let waiting = self
            .is_waiting()
            .then(|| self.retransmission_ns().min(self.heard_ns + self.config.peer_timeout_ns));
        [waiting, self.acknowledge_at_ns].into_iter().flatten().min()
    }

    fn retransmission_ns(&self) -> u64 {
        // The peer may take its time to acknowledge.
        let delay_ns = self.config.acknowledgement_delay_ns;
        self.timer_ns
            + match self.timeouts.checked_sub(PROBES) {
                None => self.round_trip.probe_ns(delay_ns),
                Some(timeouts) => self.round_trip.timeout_ns(delay_ns, timeouts),
            }
    }

    /// The time has come, or passed.
    pub fn on_time(&mut self, now_ns: u64) {
        if self.lost.is_some() {
            return;
        }
        if self.acknowledge_at_ns.is_some_and(|at_ns| at_ns <= now_ns) {
            self.acknowledge_now = true;
        }
        if !self.is_waiting() {
            return;
        }
        if now_ns >= self.heard_ns + self.config.peer_timeout_ns {
            self.lost = Some(Loss::Silent);
            return;
        }
        if now_ns < self.retransmission_ns() {
            return;
        }
        self.timer_ns = now_ns;
        self.probe_is_due = true;
        if self.timeouts >= PROBES && self.transmitted > 0 {
            for out in self.outgoing.iter_mut().take(self.transmitted) {
                if out.state == Way::Flying {
                    out.state = Way::Here;
                }
            }
            self.under_way = 0;
            // Backing off once is enough where nothing could have answered in between.
            if self.timeouts == PROBES {
                self.congestion.timed_out();
            }
            self.recovery_order = self.order;
        }
        self.timeouts = self.timeouts.saturating_add(1);
    }

    /// The next datagram to be sent, written into `out`; its length. `None` where nothing is
    /// to be sent now.
    pub fn transmit(&mut self, out: &mut [u8; LONGEST], now_ns: u64) -> Option<usize> {
        if self.lost.is_some() {
            return None;
        }
        if let Some(at) = self.next_message() {
            return Some(self.transmit_message(at, out, now_ns));
        }
        let kind = if core::mem::take(&mut self.probe_is_due) {
            // Nothing of ours is unacknowledged, and yet an answer is missing.
            Kind::Probe
        } else if self.acknowledge_now {
            Kind::Acknowledgement
        } else {
            return None;
        };
        self.counters.acknowledgements += 1;
        Some(self.transmit_alone(kind, out))
    }

    /// Says that nothing more will come.
    pub fn goodbye(&mut self, out: &mut [u8; LONGEST]) -> usize {
        self.transmit_alone(Kind::Goodbye, out)
    }

    fn transmit_alone(&mut self, kind: Kind, out: &mut [u8; LONGEST]) -> usize {
        let sequence = self.first.wrapping_add(self.outgoing.len() as u32);
        let header = self.header(kind, 0, sequence);
        self.told();
        datagram::encode(&header, &[], &[], out)
    }

    /// The message to be transmitted next: one that was lost, else a new one, as far as the
    /// congestion window lets it, else, when a probe is due, the newest that is under way.
    fn next_message(&mut self) -> Option<usize> {
        let allowed = self.under_way < self.congestion.window();
        if allowed {
            let again = (0..self.transmitted).find(|&at| self.outgoing[at].state == Way::Here);
            let next = again.or_else(|| {
                let fresh = self.transmitted;
                (fresh < self.outgoing.len() && fresh < MOST as usize).then_some(fresh)
            });
            if let Some(at) = next {
                self.probe_is_due = false;
                return Some(at);
            }
        }
        if self.probe_is_due
            && let Some(at) = (0..self.transmitted).rev().find(|&at| self.outgoing[at].state == Way::Flying)
        {
            self.probe_is_due = false;
            return Some(at);
        }
        None
    }

    fn transmit_message(&mut self, at: usize, out: &mut [u8; LONGEST], now_ns: u64) -> usize {
        if self.under_way == 0 {
            self.timer_ns = now_ns;
        }
        let header = Header {
            sequence: self.first.wrapping_add(at as u32),
            acknowledged: self.expected,
            selective: self.selective(),
            ..self.outgoing[at].header
        };
        self.order += 1;
        let message = &mut self.outgoing[at];
        if message.transmissions == 0 {
            self.transmitted += 1;
            self.counters.sent += 1;
        } else {
            self.counters.retransmitted += 1;
        }
        if message.state == Way::Here {
            self.under_way += 1;
        }
        message.state = Way::Flying;
        message.transmissions += 1;
        message.sent_ns = now_ns;
        message.order = self.order;
        datagram::restamp(&header, &mut message.bytes);
        let len = message.bytes.len();
        out[..len].copy_from_slice(&message.bytes);
        self.told();
        len
    }

    /// What travels now says all there is to say.
    fn told(&mut self) {
        self.unacknowledged = 0;
        self.acknowledge_at_ns = None;
        self.acknowledge_now = false;
        self.ledger.told();
    }
}
