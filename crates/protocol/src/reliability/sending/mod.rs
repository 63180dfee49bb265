//! The sending side: it keeps messages in order, with a copy of each until it is acknowledged. It knows which
//! messages are in flight, detects losses, and runs the retransmission timer.

use crate::frame::datagram::{self, Arrived, Kind};
use crate::reliability::buffers::Buffers;
use crate::reliability::congestion::{Controller, MAX_WINDOW};
use crate::reliability::recovery::Recovery;
use crate::reliability::round_trip::RoundTrip;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The peer acknowledged a message that was never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckOfUnsent;

/// The outcome of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckOutcome {
    /// It acknowledges a message that was not acknowledged before.
    Progress,
    /// It repeats an earlier acknowledgement.
    Duplicate,
    /// It acknowledges less than an earlier one: it was overtaken in the network.
    Stale,
}

/// A message that is not acknowledged.
#[derive(Debug)]
struct Outgoing {
    kind: Kind,
    bytes: Vec<u8>,
    flight: Flight,
}

/// The transmissions of a message.
#[derive(Clone, Copy, Debug)]
struct Flight {
    state: SendState,
    /// Whether the message continues a bulk transfer, so that it needs a grant.
    is_piece: bool,
    first: Transmission,
    last: Transmission,
}

/// One transmission among all of the connection.
#[derive(Clone, Copy, Debug, Default)]
struct Transmission {
    /// Its number among them, from 1; 0 if it has not happened.
    order: u64,
    sent_ns: u64,
}

impl Flight {
    /// Returns the transmission of that number, if it is the first or the last of this message.
    fn transmission(&self, order: u64) -> Option<Transmission> {
        [self.first, self.last].into_iter().find(|transmission| transmission.order == order)
    }
}

/// The state of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SendState {
    /// Not transmitted yet, or to be retransmitted.
    Queued,
    /// In flight: transmitted and not acknowledged.
    InFlight,
    /// Acknowledged selectively.
    Acknowledged,
}

fn is_piece(kind: Kind) -> bool {
    matches!(kind, Kind::Chunk | Kind::Fetched)
}

/// The messages that are not acknowledged, in order.
#[derive(Debug)]
pub struct Sending<C> {
    messages: VecDeque<Outgoing>,
    /// The sequence number of the first of them.
    first: u32,
    /// The number of them that carry bytes of a transfer. No place is reserved for these.
    pieces: usize,
    /// The number of them that have been transmitted at least once.
    transmitted: usize,
    /// Of the transmitted ones, the number in flight, and the number to be retransmitted.
    under_way: u32,
    again: u32,
    /// Of those in flight, the number that needed a grant; and the number that may be in flight.
    pieces_under_way: u32,
    granted: u32,
    /// The number of transmissions so far, and the latest of them that is known to have arrived.
    order: u64,
    arrived_order: u64,
    /// Number of messages that have arrived.
    arrivals: u64,

    recovery: Recovery,
    round_trip: RoundTrip,
    congestion: C,
    /// The acknowledgement delay of the peer.
    acknowledgement_delay_ns: u64,
    timeouts: u32,
    probe_is_due: bool,
    /// The time at which the retransmission timer was last set.
    timer_ns: u64,
    /// No answer to the acknowledged requests can come before this time.
    answer_ns: u64,

    /// Messages transmitted for the first time.
    pub sent: u64,
    /// Messages transmitted again.
    pub retransmitted: u64,
}

impl<C: Controller> Sending<C> {
    /// Creates the sending side without messages. Acknowledgements of the peer are delayed by up to
    /// `acknowledgement_delay_ns`.
    pub fn new(
        recovery: Recovery,
        congestion: C,
        first_sequence: u32,
        acknowledgement_delay_ns: u64,
        now_ns: u64,
    ) -> Self {
        Self {
            messages: VecDeque::new(),
            first: first_sequence,
            pieces: 0,
            transmitted: 0,
            under_way: 0,
            again: 0,
            pieces_under_way: 0,
            granted: recovery.initial_window,
            order: 0,
            arrived_order: 0,
            arrivals: 0,
            recovery,
            round_trip: RoundTrip::default(),
            congestion,
            acknowledgement_delay_ns,
            timeouts: 0,
            probe_is_due: false,
            timer_ns: now_ns,
            answer_ns: 0,
            sent: 0,
            retransmitted: 0,
        }
    }

    /// Returns the number of messages that are not acknowledged.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Returns the number of them that have a reserved place. Bytes of transfers have none, because they are
    /// read from memory only as fast as they can be sent.
    pub fn places_taken(&self) -> usize {
        self.messages.len() - self.pieces
    }

    /// Reports whether one more message would be sent at once.
    pub fn is_open(&self) -> bool {
        let all = self.messages.len();
        self.again == 0
            && self.transmitted == all
            && all < MAX_WINDOW as usize
            && self.under_way < self.congestion.window()
    }

    /// Reports whether one more message that continues a bulk transfer is granted.
    pub fn is_granted(&self) -> bool {
        self.pieces_under_way < self.granted
    }

    /// Returns a number that changes with each arrival that is learnt of, and with the grant.
    pub fn progress(&self) -> u64 {
        self.arrivals.wrapping_add(u64::from(self.granted) << 48)
    }

    /// Returns the number of messages that continue bulk transfers and are in flight.
    pub fn pieces_under_way(&self) -> u32 {
        self.pieces_under_way
    }

    /// Returns the number of messages of a new transfer that need no grant.
    pub fn unasked(&self) -> u32 {
        self.recovery.initial_window
    }

    /// Takes the grant of a datagram of the peer, if it has one.
    pub fn take_grant(&mut self, granted: u8) {
        if granted > 0 {
            self.granted = granted.into();
        }
    }

    /// Notes that a store begins while no other transfer is on its way. It need not wait for its grant with its first
    /// messages. More of them go if the peer granted more before.
    pub fn begin_unasked(&mut self) {
        self.granted = self.granted.max(self.unasked());
    }

    /// Returns the number of messages that are not acknowledged and that needed a grant.
    pub fn pieces(&self) -> usize {
        self.pieces
    }

    /// Returns the sequence number of the next message to be queued.
    pub fn next_sequence(&self) -> u32 {
        self.first.wrapping_add(self.len() as u32)
    }

    /// Returns the number of requests that have never been transmitted.
    pub fn requests_not_sent(&self) -> u32 {
        self.messages.range(self.transmitted..).filter(|message| message.kind.is_request()).count() as u32
    }

    /// Queues a message from [`datagram::write`].
    pub fn enqueue(&mut self, kind: Kind, bytes: Vec<u8>) {
        let never = Transmission::default();
        let is_piece = is_piece(kind);
        let flight = Flight { state: SendState::Queued, is_piece, first: never, last: never };
        self.pieces += usize::from(is_piece);
        self.messages.push_back(Outgoing { kind, bytes, flight });
    }

    /// Takes the acknowledgement in a datagram of the peer.
    ///
    /// # Errors
    /// Returns [`AckOfUnsent`] if it covers a message that was never sent.
    pub fn acknowledge(
        &mut self,
        arrived: Arrived,
        now_ns: u64,
        buffers: &mut Buffers,
    ) -> Result<AckOutcome, AckOfUnsent> {
        let news = arrived.expected.wrapping_sub(self.first);
        if news > u32::MAX / 2 {
            return Ok(AckOutcome::Stale);
        }
        if news as usize > self.transmitted {
            return Err(AckOfUnsent);
        }
        // A round-trip sample is discarded if it is taken after the deadline, because this process may have
        // been descheduled. A sample that a retransmission or a probe carries is also discarded. The peer may
        // have paused, or the network may have lost an earlier acknowledgement.
        let is_timely = now_ns <= self.deadline() && !arrived.is_stale;
        let latest = self.order_of(arrived.latest);
        let mut sample = None;
        let mut progress = news > 0;
        for _ in 0..news {
            let Some(message) = self.messages.pop_front() else { break };
            self.transmitted -= 1;
            self.pieces -= usize::from(message.flight.is_piece);
            self.first = self.first.wrapping_add(1);
            sample = self.note_arrival(message.flight, latest).or(sample);
            buffers.give_back(message.bytes);
        }
        // Bit i stands for the message i + 1 behind the first one, which is missing.
        let mut bits = arrived.selective;
        while bits != 0 {
            let at = 1 + bits.trailing_zeros() as usize;
            bits &= bits - 1;
            if at < self.transmitted && self.messages[at].flight.state != SendState::Acknowledged {
                progress = true;
                sample = self.note_arrival(self.messages[at].flight, latest).or(sample);
                self.messages[at].flight.state = SendState::Acknowledged;
            }
        }
        if let Some(Transmission { sent_ns, .. }) = sample
            && is_timely
        {
            self.round_trip.sample(now_ns.saturating_sub(sent_ns));
        }
        self.arrived_order = self.arrived_order.max(latest);
        if !progress {
            return Ok(AckOutcome::Duplicate);
        }
        self.restart_timer(now_ns);
        self.find_losses();
        Ok(AckOutcome::Progress)
    }

    /// Returns the number of the transmission that the peer received last, from its low 16 bits. Returns 0 if
    /// the peer received none.
    fn order_of(&self, latest: u16) -> u64 {
        let ago = (self.order as u16).wrapping_sub(latest);
        self.order.saturating_sub(u64::from(ago))
    }

    /// Notes that the message of `flight` has arrived, unless that is known. Returns the transmission that
    /// brought it, if `latest` names one of those that `flight` remembers. Without `latest` this would be
    /// ambiguous for a retransmitted message (Karn and Partridge 1987).
    fn note_arrival(&mut self, flight: Flight, latest: u64) -> Option<Transmission> {
        match flight.state {
            SendState::Acknowledged => return None,
            SendState::InFlight => {
                self.under_way -= 1;
                self.pieces_under_way -= u32::from(flight.is_piece);
            }
            SendState::Queued => {
                self.again -= 1;
                self.congestion.on_spurious_loss();
            }
        }
        self.congestion.on_ack();
        self.arrivals += 1;
        flight.transmission(latest)
    }

    /// Declares lost each message that was transmitted well before one that has arrived.
    fn find_losses(&mut self) {
        let mut lost = 0;
        for Outgoing { flight, .. } in self.messages.iter_mut().take(self.transmitted) {
            let is_overtaken = flight.last.order + self.recovery.packet_threshold <= self.arrived_order;
            if is_overtaken && flight.state == SendState::InFlight {
                flight.state = SendState::Queued;
                self.under_way -= 1;
                self.pieces_under_way -= u32::from(flight.is_piece);
                self.again += 1;
                lost += 1;
            }
            if !is_overtaken && flight.first.order == flight.last.order {
                // First transmissions are in order, so all later messages were transmitted later.
                break;
            }
        }
        if lost > 0 {
            self.congestion.on_loss(lost);
        }
    }

    /// Restarts the retransmission timer and clears the count of timeouts.
    pub fn restart_timer(&mut self, now_ns: u64) {
        self.timer_ns = now_ns;
        self.timeouts = 0;
    }

    /// Notes that no answer to the messages sent can come before `at_ns`. Until then no probe asks the peer
    /// for one.
    pub fn expect_answer(&mut self, at_ns: u64) {
        self.answer_ns = self.answer_ns.max(at_ns);
    }

    /// Returns the time at which the retransmission timer expires.
    pub fn deadline(&self) -> u64 {
        let delay_ns = self.acknowledgement_delay_ns;
        let begin_ns =
            if self.messages.is_empty() { self.timer_ns.max(self.answer_ns) } else { self.timer_ns };
        begin_ns.saturating_add(match self.timeouts.checked_sub(self.recovery.tail_loss_probes) {
            None => self.round_trip.probe_ns(&self.recovery, delay_ns),
            Some(timeouts) => self.round_trip.timeout_ns(&self.recovery, delay_ns, timeouts),
        })
    }

    /// Handles the retransmission timer, if it has expired at `now_ns`. Called while an acknowledgement or an
    /// answer is outstanding.
    pub fn on_time(&mut self, now_ns: u64) {
        if now_ns < self.deadline() {
            return;
        }
        self.timer_ns = now_ns;
        self.probe_is_due = true;
        if self.timeouts >= self.recovery.tail_loss_probes && self.transmitted > 0 {
            for Outgoing { flight, .. } in self.messages.iter_mut().take(self.transmitted) {
                if flight.state == SendState::InFlight {
                    flight.state = SendState::Queued;
                }
            }
            let lost = core::mem::take(&mut self.under_way);
            self.again += lost;
            self.pieces_under_way = 0;
            // Only the first timeout in a row shrinks the window: nothing was acknowledged between it and the
            // next.
            if self.timeouts == self.recovery.tail_loss_probes {
                self.congestion.on_timeout(lost);
            }
        }
        self.timeouts = self.timeouts.saturating_add(1);
    }

    /// Returns the index of the message to be transmitted next. It is a lost one, or else a new one, as far
    /// as the congestion window allows. If neither is possible and a probe is due, it is the newest message
    /// in flight.
    pub fn next(&mut self) -> Option<usize> {
        let at = self.next_allowed().or_else(|| self.next_probe())?;
        self.probe_is_due = false;
        Some(at)
    }

    /// Reports that exactly one message can be transmitted, and for the first time.
    #[inline]
    pub fn has_one_fresh(&self) -> bool {
        self.again == 0
            && self.under_way < self.congestion.window()
            && self.transmitted + 1 == self.messages.len()
            && self.transmitted < MAX_WINDOW as usize
    }

    fn next_allowed(&self) -> Option<usize> {
        if self.under_way >= self.congestion.window() {
            return None;
        }
        if self.again > 0 {
            return self.messages.iter().position(|message| message.flight.state == SendState::Queued);
        }
        let fresh = self.transmitted;
        (fresh < self.messages.len() && fresh < MAX_WINDOW as usize).then_some(fresh)
    }

    fn next_probe(&self) -> Option<usize> {
        if !self.probe_is_due {
            return None;
        }
        self.messages.iter().rposition(|message| message.flight.state == SendState::InFlight)
    }

    /// Reports whether a probe is due that no message can be: all messages are acknowledged, and an answer is
    /// missing. The probe counts as sent.
    pub fn take_probe(&mut self) -> bool {
        core::mem::take(&mut self.probe_is_due)
    }

    /// Transmits the message at the index from [`Sending::next`], with the acknowledgement `arrived`. Returns
    /// its bytes.
    pub fn transmit(&mut self, at: usize, arrived: Arrived, now_ns: u64) -> &[u8] {
        let is_first = at == self.transmitted;
        if self.under_way == 0 {
            self.timer_ns = now_ns;
            if is_first {
                // Everything before it has arrived. Probes for a missing answer say nothing about its loss.
                self.timeouts = 0;
            }
        }
        self.order += 1;
        let now = Transmission { order: self.order, sent_ns: now_ns };
        let Outgoing { bytes, flight, .. } = &mut self.messages[at];
        if is_first {
            flight.first = now;
            self.transmitted += 1;
            self.under_way += 1;
            self.pieces_under_way += u32::from(flight.is_piece);
            self.sent += 1;
        } else {
            if flight.state == SendState::Queued {
                self.again -= 1;
                self.under_way += 1;
                self.pieces_under_way += u32::from(flight.is_piece);
            }
            self.retransmitted += 1;
        }
        flight.state = SendState::InFlight;
        flight.last = now;
        let sequence = self.first.wrapping_add(at as u32);
        let arrived = Arrived { is_stale: !is_first, ..arrived };
        datagram::stamp(bytes, sequence, self.order as u16, arrived);
        bytes
    }

    /// Forgets all messages, because the peer is lost. The next sequence number stays.
    pub fn abandon(&mut self) {
        self.first = self.next_sequence();
        self.messages = VecDeque::new();
        (self.pieces, self.transmitted) = (0, 0);
        (self.under_way, self.again, self.pieces_under_way) = (0, 0, 0);
    }

    /// Returns the memory of the messages that are not acknowledged, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.messages.capacity() * size_of::<Outgoing>()
            + self.messages.iter().map(|message| message.bytes.capacity()).sum::<usize>()
    }
}

#[cfg(test)]
mod tests;
