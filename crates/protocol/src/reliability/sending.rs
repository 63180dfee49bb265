//! The sending side: it keeps messages in order, with a copy of each until it is acknowledged. It knows which
//! messages are in flight, detects losses, and runs the retransmission timer.

use super::buffers::Buffers;
use super::congestion::{Controller, MAX_WINDOW};
use super::recovery::Recovery;
use super::round_trip::RoundTrip;
use crate::frame::datagram::{self, Arrived, Kind};
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
    /// The number of transmissions so far, and the latest of them that is known to have arrived.
    order: u64,
    arrived_order: u64,

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
            order: 0,
            arrived_order: 0,
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
        let flight = Flight { state: SendState::Queued, first: never, last: never };
        self.pieces += usize::from(is_piece(kind));
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
            self.pieces -= usize::from(is_piece(message.kind));
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
            SendState::InFlight => self.under_way -= 1,
            SendState::Queued => {
                self.again -= 1;
                self.congestion.on_spurious_loss();
            }
        }
        self.congestion.on_ack();
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
        begin_ns
            + match self.timeouts.checked_sub(self.recovery.tail_loss_probes) {
                None => self.round_trip.probe_ns(&self.recovery, delay_ns),
                Some(timeouts) => self.round_trip.timeout_ns(&self.recovery, delay_ns, timeouts),
            }
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
            self.again += core::mem::take(&mut self.under_way);
            // Only the first timeout in a row shrinks the window: nothing was acknowledged between it and the
            // next.
            if self.timeouts == self.recovery.tail_loss_probes {
                self.congestion.on_timeout();
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
        if self.under_way == 0 {
            self.timer_ns = now_ns;
        }
        self.order += 1;
        let now = Transmission { order: self.order, sent_ns: now_ns };
        let is_first = at == self.transmitted;
        let Outgoing { bytes, flight, .. } = &mut self.messages[at];
        if is_first {
            flight.first = now;
            self.transmitted += 1;
            self.under_way += 1;
            self.sent += 1;
        } else {
            if flight.state == SendState::Queued {
                self.again -= 1;
                self.under_way += 1;
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

    /// Returns the memory of the messages that are not acknowledged, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.messages.capacity() * size_of::<Outgoing>()
            + self.messages.iter().map(|message| message.bytes.capacity()).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::datagram::Header;
    use crate::reliability::congestion::Relentless;
    use proptest::prelude::*;

    type Sending = super::Sending<Relentless>;

    const DELAY_NS: u64 = 1_000;
    const NOTHING: Arrived = Arrived { expected: 0, selective: 0, latest: 0, is_stale: false };

    fn queue(sending: &mut Sending, kind: Kind) {
        let header = Header {
            kind,
            handler: 0,
            connection: 7,
            sequence: 0,
            transmission: 0,
            arrived: NOTHING,
            completed: 0,
            departed: None,
        };
        let mut bytes = Vec::new();
        datagram::write(&header, &[], &[], &mut bytes);
        sending.enqueue(kind, bytes);
    }

    /// Queues `count` messages, none of which is transmitted.
    fn queued(count: u32) -> Sending {
        let recovery = Recovery::default();
        let congestion = Relentless::new(recovery.initial_window);
        let mut sending = Sending::new(recovery, congestion, 0, DELAY_NS, 0);
        (0..count).for_each(|_| queue(&mut sending, Kind::Request));
        sending
    }

    /// Transmits all messages that may be transmitted. Returns their sequence numbers.
    fn transmit(sending: &mut Sending, now_ns: u64) -> Vec<u32> {
        core::iter::from_fn(|| {
            let at = sending.next()?;
            let bytes = sending.transmit(at, NOTHING, now_ns);
            Some(datagram::parse(bytes).unwrap().header.sequence)
        })
        .collect()
    }

    /// The peer acknowledges messages, each by its last transmission.
    fn acknowledge(
        sending: &mut Sending,
        expected: u32,
        selective: u64,
        now_ns: u64,
    ) -> Result<AckOutcome, AckOfUnsent> {
        let first = sending.first;
        let is_there = |at: &usize| {
            let offset = (first + *at as u32).wrapping_sub(expected);
            offset > u32::MAX / 2 || (1..=64).contains(&offset) && selective >> (offset - 1) & 1 == 1
        };
        let there = (0..sending.transmitted).filter(is_there);
        let latest = there.map(|at| sending.messages[at].flight.last.order).max().unwrap_or(0);
        let arrived = Arrived { expected, selective, latest: latest as u16, is_stale: false };
        sending.acknowledge(arrived, now_ns, &mut Buffers::default())
    }

    fn count(sending: &Sending, state: SendState) -> usize {
        sending.messages.iter().take(sending.transmitted).filter(|m| m.flight.state == state).count()
    }

    #[test]
    fn messages_are_kept_until_they_are_acknowledged() {
        let mut sending = queued(5);
        assert_eq!(transmit(&mut sending, 0), [0, 1, 2, 3, 4]);
        acknowledge(&mut sending, 3, 0, 10).unwrap();
        assert_eq!((sending.len(), sending.under_way), (2, 2));
        // An acknowledgement that was overtaken says nothing.
        assert_eq!(acknowledge(&mut sending, 3, 0, 15), Ok(AckOutcome::Duplicate));
        assert_eq!(acknowledge(&mut sending, 1, 0, 20), Ok(AckOutcome::Stale));
        acknowledge(&mut sending, 5, 0, 30).unwrap();
        assert_eq!((sending.len(), sending.under_way, sending.next_sequence()), (0, 0, 5));
        assert_eq!((sending.sent, sending.retransmitted), (5, 0));
    }

    #[test]
    fn what_was_not_sent_cannot_have_arrived() {
        let mut sending = queued(2);
        assert_eq!(acknowledge(&mut sending, 1, 0, 0), Err(AckOfUnsent));
        transmit(&mut sending, 0);
        assert_eq!(acknowledge(&mut sending, 3, 0, 0), Err(AckOfUnsent));
        // A bit for a message that does not exist is ignored.
        acknowledge(&mut sending, 0, 1 << 1, 0).unwrap();
        assert_eq!(sending.under_way, 2);
    }

    #[test]
    fn a_message_that_three_later_ones_overtook_is_sent_again() {
        let mut sending = queued(6);
        transmit(&mut sending, 0);
        acknowledge(&mut sending, 0, 0b011, 10).unwrap();
        assert_eq!(sending.next(), None);
        acknowledge(&mut sending, 0, 0b111, 20).unwrap();
        queue(&mut sending, Kind::Request);
        assert_eq!(transmit(&mut sending, 30), [0, 6]);
        // It is lost again when messages sent after its second transmission have arrived.
        (0..2).for_each(|_| queue(&mut sending, Kind::Request));
        assert_eq!(transmit(&mut sending, 40), [7, 8]);
        acknowledge(&mut sending, 0, 0b1111_1111, 50).unwrap();
        assert_eq!(transmit(&mut sending, 60), [0]);
        acknowledge(&mut sending, 9, 0, 70).unwrap();
        assert_eq!((sending.len(), sending.under_way, sending.again), (0, 0, 0));
    }

    #[test]
    fn silence_is_answered_with_the_newest_message_then_with_all_of_them() {
        let mut sending = queued(4);
        transmit(&mut sending, 0);
        sending.on_time(sending.deadline() - 1);
        assert_eq!(sending.next(), None);
        let mut now_ns = sending.deadline();
        sending.on_time(now_ns);
        assert_eq!(transmit(&mut sending, now_ns), [3]);
        now_ns = sending.deadline();
        sending.on_time(now_ns);
        // One message, and two more for each that arrives.
        assert_eq!(transmit(&mut sending, now_ns), [0]);
        acknowledge(&mut sending, 1, 0, now_ns + 10).unwrap();
        assert_eq!(transmit(&mut sending, now_ns + 10), [1, 2]);
        assert!(!sending.take_probe());
    }

    #[test]
    fn where_nothing_can_be_sent_again_a_probe_is_due() {
        let mut sending = queued(0);
        sending.on_time(sending.deadline());
        assert_eq!(sending.next(), None);
        assert!(sending.take_probe());
        assert!(!sending.take_probe());
    }

    #[test]
    fn requests_that_were_never_transmitted_are_known() {
        let mut sending = queued(20);
        queue(&mut sending, Kind::Reply);
        assert_eq!(sending.requests_not_sent(), 20);
        assert_eq!(transmit(&mut sending, 0).len(), 16);
        assert_eq!(sending.requests_not_sent(), 4);
        acknowledge(&mut sending, 16, 0, 10).unwrap();
        assert_eq!(sending.requests_not_sent(), 4);
        transmit(&mut sending, 10);
        assert_eq!(sending.requests_not_sent(), 0);
    }

    /// Sends a message whose first transmission is acknowledged after `round_trip_ns`. Handles the timers in
    /// between. Returns the number of transmissions.
    fn exchange(sending: &mut Sending, round_trip_ns: u64, now_ns: &mut u64) -> u32 {
        sending.restart_timer(*now_ns);
        queue(sending, Kind::Request);
        let end_ns = *now_ns + round_trip_ns;
        let mut sent = transmit(sending, *now_ns).len() as u32;
        let latest = sending.order as u16;
        while sending.deadline() < end_ns {
            *now_ns = sending.deadline();
            sending.on_time(*now_ns);
            sent += transmit(sending, *now_ns).len() as u32;
        }
        *now_ns = end_ns;
        let arrived = Arrived { expected: sending.next_sequence(), latest, ..NOTHING };
        sending.acknowledge(arrived, end_ns, &mut Buffers::default()).unwrap();
        sent
    }

    #[test]
    fn round_trips_longer_than_every_timeout_are_learned() {
        for round_trip_ns in [7_000, 1_000_000, 40_000_000, 300_000_000] {
            let (mut sending, mut now_ns) = (queued(0), 0);
            (0..20).for_each(|_| assert!(exchange(&mut sending, round_trip_ns, &mut now_ns) > 0));
            assert_eq!(exchange(&mut sending, round_trip_ns, &mut now_ns), 1, "{round_trip_ns}");
        }
    }

    /// For a lost message the transmission that arrived counts, not the time until the retransmission.
    #[test]
    fn losses_do_not_lengthen_round_trips() {
        let (mut sending, mut now_ns) = (queued(0), 0);
        (0..20).for_each(|_| assert_eq!(exchange(&mut sending, 7_000, &mut now_ns), 1));
        let usual_ns = sending.deadline() - now_ns;
        for _ in 0..20 {
            sending.restart_timer(now_ns);
            queue(&mut sending, Kind::Request);
            transmit(&mut sending, now_ns);
            for _ in 0..4 {
                now_ns = sending.deadline();
                sending.on_time(now_ns);
                transmit(&mut sending, now_ns);
            }
            now_ns += 7_000;
            let all = sending.next_sequence();
            acknowledge(&mut sending, all, 0, now_ns).unwrap();
        }
        assert_eq!(sending.deadline() - now_ns, usual_ns);
    }

    #[test]
    fn an_absence_of_our_own_is_no_round_trip() {
        let (mut sending, mut now_ns) = (queued(0), 0);
        (0..20).for_each(|_| assert_eq!(exchange(&mut sending, 7_000, &mut now_ns), 1));
        let usual_ns = sending.deadline() - now_ns;
        queue(&mut sending, Kind::Request);
        transmit(&mut sending, now_ns);
        now_ns += 3_000_000_000;
        let all = sending.next_sequence();
        acknowledge(&mut sending, all, 0, now_ns).unwrap();
        assert_eq!(sending.deadline() - now_ns, usual_ns);
    }

    /// The first transmission of a retransmitted message arrives late. It says nothing about messages sent
    /// after it.
    #[test]
    fn a_late_arrival_is_no_proof_of_losses() {
        let mut sending = queued(1);
        transmit(&mut sending, 0);
        let latest = sending.order as u16;
        (0..4).for_each(|_| queue(&mut sending, Kind::Request));
        transmit(&mut sending, 10);
        let now_ns = sending.deadline();
        sending.on_time(now_ns);
        sending.on_time(sending.deadline());
        transmit(&mut sending, now_ns);
        let flying = sending.under_way;
        let arrived = Arrived { expected: 1, latest, ..NOTHING };
        sending.acknowledge(arrived, now_ns + 10, &mut Buffers::default()).unwrap();
        assert_eq!((sending.arrived_order, sending.under_way), (1, flying - 1));
    }

    proptest! {
        /// The counts agree with the states, and no loss is overlooked, for any acknowledgements at any
        /// times.
        #[test]
        fn counts_agree_with_states(
            steps in proptest::collection::vec((0_u32..4, 0_u32..4, any::<u64>(), any::<u64>(), 0_u64..200_000), 0..200),
        ) {
            let mut sending = queued(0);
            let mut now_ns = 0;
            for (more, news, some, of_these, later_ns) in steps {
                now_ns += later_ns;
                (0..more).for_each(|_| queue(&mut sending, Kind::Request));
                sending.on_time(now_ns);
                transmit(&mut sending, now_ns);
                let expected = sending.first + news.min(sending.transmitted as u32);
                acknowledge(&mut sending, expected, some & of_these, now_ns).unwrap();
                prop_assert_eq!(sending.under_way as usize, count(&sending, SendState::InFlight));
                prop_assert_eq!(sending.again as usize, count(&sending, SendState::Queued));
                let overlooked = |flight: Flight| {
                    flight.state == SendState::InFlight && flight.last.order + sending.recovery.packet_threshold <= sending.arrived_order
                };
                prop_assert!(!sending.messages.iter().any(|message| overlooked(message.flight)));
            }
        }
    }
}
