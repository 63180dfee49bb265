//! The sending side: messages in order, a copy of each until it is acknowledged; what is
//! under way, what was lost, and when to suspect so.

use super::buffers::Buffers;
use super::congestion::{Congestion, MOST};
use super::receiving::Arrived;
use super::round_trip::RoundTrip;
use crate::frame::datagram;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// A message counts as lost when one that was sent so many transmissions later arrived.
const REORDERING: u64 = 3;
/// Timeouts in a row after the probe that make everything count as lost.
const PROBES: u32 = 1;

/// A peer acknowledged what was never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absurd;

/// A message on its way out.
#[derive(Debug)]
struct Outgoing {
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

/// Messages until they are acknowledged.
#[derive(Debug)]
pub struct Sending {
    messages: VecDeque<Outgoing>,
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

    round_trip: RoundTrip,
    congestion: Congestion,
    /// The peer may take its time to acknowledge.
    acknowledgement_delay_ns: u64,
    timeouts: u32,
    probe_is_due: bool,
    /// When the retransmission timer was last set.
    timer_ns: u64,

    /// Messages transmitted for the first time.
    pub sent: u64,
    /// Messages transmitted again.
    pub retransmitted: u64,
}

impl Sending {
    /// Nothing to send, to a peer whose acknowledgements wait for `acknowledgement_delay_ns`.
    pub fn new(first_sequence: u32, acknowledgement_delay_ns: u64, now_ns: u64) -> Self {
        Self {
            messages: VecDeque::new(),
            first: first_sequence,
            transmitted: 0,
            under_way: 0,
            order: 0,
            arrived_order: 0,
            recovery_order: 0,
            round_trip: RoundTrip::default(),
            congestion: Congestion::new(),
            acknowledgement_delay_ns,
            timeouts: 0,
            probe_is_due: false,
            timer_ns: now_ns,
            sent: 0,
            retransmitted: 0,
        }
    }

    /// Whether all is acknowledged.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// The sequence number of the next message to be queued.
    pub fn next_sequence(&self) -> u32 {
        self.first.wrapping_add(self.messages.len() as u32)
    }

    /// Puts a message at the end of the queue, as [`datagram::write`] left it.
    pub fn enqueue(&mut self, bytes: Vec<u8>) {
        self.messages.push_back(Outgoing { bytes, sent_ns: 0, order: 0, transmissions: 0, state: Way::Here });
    }

    /// Learns what has arrived at the peer.
    ///
    /// # Errors
    /// That cannot be.
    pub fn acknowledge(
        &mut self,
        arrived: Arrived,
        now_ns: u64,
        buffers: &mut Buffers,
    ) -> Result<(), Absurd> {
        let news = arrived.expected.wrapping_sub(self.first);
        if news > u32::MAX / 2 {
            // Older than what is known: overtaken on the way.
            return Ok(());
        }
        if news as usize > self.transmitted {
            return Err(Absurd);
        }
        let mut newest: Option<(u64, u64)> = None;
        let mut progress = news > 0;
        for _ in 0..news {
            let Some(out) = self.messages.pop_front() else { break };
            self.transmitted -= 1;
            self.first = self.first.wrapping_add(1);
            self.note_arrival(&out, &mut newest);
            buffers.give_back(out.bytes);
        }
        // Bit i stands for the message after the missing one, which is now the first.
        let mut bits = arrived.selective;
        while bits != 0 {
            let at = 1 + bits.trailing_zeros() as usize;
            bits &= bits - 1;
            if at < self.transmitted && self.messages[at].state != Way::Arrived {
                progress = true;
                let was = self.messages[at].state;
                self.messages[at].state = Way::Arrived;
                let (sent_ns, order, once) = (
                    self.messages[at].sent_ns,
                    self.messages[at].order,
                    self.messages[at].transmissions == 1,
                );
                self.count_arrival(was, sent_ns, order, once, &mut newest);
            }
        }
        if let Some((_, sent_ns)) = newest {
            self.round_trip.sample(now_ns.saturating_sub(sent_ns));
        }
        if progress {
            self.restart_timer(now_ns);
            self.find_losses();
        }
        Ok(())
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
        for out in self.messages.iter_mut().take(self.transmitted) {
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

    /// Timeouts count from now.
    pub fn restart_timer(&mut self, now_ns: u64) {
        self.timer_ns = now_ns;
        self.timeouts = 0;
    }

    /// When something is to be sent again if nothing is heard.
    pub fn deadline(&self) -> u64 {
        let delay_ns = self.acknowledgement_delay_ns;
        self.timer_ns
            + match self.timeouts.checked_sub(PROBES) {
                None => self.round_trip.probe_ns(delay_ns),
                Some(timeouts) => self.round_trip.timeout_ns(delay_ns, timeouts),
            }
    }

    /// The time has come, or passed, and something is waited for.
    pub fn on_time(&mut self, now_ns: u64) {
        if now_ns < self.deadline() {
            return;
        }
        self.timer_ns = now_ns;
        self.probe_is_due = true;
        if self.timeouts >= PROBES && self.transmitted > 0 {
            for out in self.messages.iter_mut().take(self.transmitted) {
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

    /// The place of the message to be transmitted next: one that was lost, else a new one, as
    /// far as the congestion window lets it, else, when a probe is due, the newest that is
    /// under way.
    pub fn next(&mut self) -> Option<usize> {
        let allowed = self.under_way < self.congestion.window();
        if allowed {
            let again = (0..self.transmitted).find(|&at| self.messages[at].state == Way::Here);
            let next = again.or_else(|| {
                let fresh = self.transmitted;
                (fresh < self.messages.len() && fresh < MOST as usize).then_some(fresh)
            });
            if let Some(at) = next {
                self.probe_is_due = false;
                return Some(at);
            }
        }
        if self.probe_is_due
            && let Some(at) = (0..self.transmitted).rev().find(|&at| self.messages[at].state == Way::Flying)
        {
            self.probe_is_due = false;
            return Some(at);
        }
        None
    }

    /// Whether a probe is due that no message can be: nothing of ours is unacknowledged, and
    /// yet an answer is missing. It is taken to be sent.
    pub fn take_probe(&mut self) -> bool {
        core::mem::take(&mut self.probe_is_due)
    }

    /// Transmits the message in the place that [`Sending::next`] gave, with what has arrived
    /// here: its bytes.
    pub fn transmit(&mut self, at: usize, arrived: Arrived, now_ns: u64) -> &[u8] {
        if self.under_way == 0 {
            self.timer_ns = now_ns;
        }
        self.order += 1;
        let message = &mut self.messages[at];
        if message.transmissions == 0 {
            self.transmitted += 1;
            self.sent += 1;
        } else {
            self.retransmitted += 1;
        }
        if message.state == Way::Here {
            self.under_way += 1;
        }
        message.state = Way::Flying;
        message.transmissions += 1;
        message.sent_ns = now_ns;
        message.order = self.order;
        let sequence = self.first.wrapping_add(at as u32);
        datagram::stamp(&mut message.bytes, sequence, arrived.expected, arrived.selective);
        &message.bytes
    }

    /// Memory for what is not acknowledged.
    pub fn memory_bytes(&self) -> usize {
        self.messages.capacity() * size_of::<Outgoing>()
            + self.messages.iter().map(|out| out.bytes.capacity()).sum::<usize>()
    }
}
