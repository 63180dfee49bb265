//! The receiving side: it puts messages in order and decides when to acknowledge them.

use super::buffers::Buffers;
use crate::frame::datagram::{Arrived, Datagram, Header};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The most messages that are kept ahead of a missing one: as many as the selective acknowledgement has bits.
const AHEAD: u32 = 64;

/// A message that arrived out of order: its header and all of its bytes.
type Kept = (Header, Vec<u8>);

/// The receiving side of a connection.
#[derive(Debug)]
pub struct Receiving {
    expected: u32,
    /// Bit i: the message `expected + 1 + i` is kept.
    selective: u64,
    /// The transmission that arrived last.
    latest: u16,
    /// The kept messages, from the expected one to the farthest one.
    ahead: VecDeque<Option<Kept>>,
    unacknowledged: u32,
    /// After this many messages in order, an acknowledgement is sent at once.
    acknowledge_every: u32,
    acknowledgement_delay_ns: u64,
    acknowledge_at_ns: Option<u64>,
    /// An acknowledgement must be sent at once, alone if no message carries it.
    acknowledge_now: bool,
    /// Messages delivered in order.
    pub delivered: u64,
    /// Messages that had arrived before.
    pub duplicates: u64,
    /// Messages too far ahead to be kept.
    pub beyond: u64,
}

impl Receiving {
    /// Creates the receiving side. An acknowledgement waits `acknowledgement_delay_ns` for a message that
    /// carries it, or until `acknowledge_every` messages have come.
    pub fn new(first_sequence: u32, acknowledgement_delay_ns: u64, acknowledge_every: u32) -> Self {
        Self {
            expected: first_sequence,
            selective: 0,
            latest: 0,
            ahead: VecDeque::new(),
            unacknowledged: 0,
            acknowledge_every,
            acknowledgement_delay_ns,
            acknowledge_at_ns: None,
            acknowledge_now: false,
            delivered: 0,
            duplicates: 0,
            beyond: 0,
        }
    }

    /// Returns the sequence number that is expected next.
    pub fn expected(&self) -> u32 {
        self.expected
    }

    /// Returns the acknowledgement of the messages that have arrived.
    pub fn arrived(&self) -> Arrived {
        let Self { expected, selective, latest, .. } = *self;
        Arrived { expected, selective, latest, ..Arrived::default() }
    }

    /// Takes a message. Returns true if it is the next one, which must be handled now. A message ahead of a
    /// missing one is kept.
    pub fn take(&mut self, datagram: &Datagram<'_>, now_ns: u64, buffers: &mut Buffers) -> bool {
        let offset = datagram.header.sequence.wrapping_sub(self.expected);
        self.latest = datagram.header.transmission;
        if offset == 0 {
            if self.acknowledge_at_ns.is_none() {
                self.acknowledge_at_ns = Some(now_ns + self.acknowledgement_delay_ns);
            }
            self.advance();
            return true;
        }
        // A message out of order hints at a loss, so it is acknowledged at once.
        self.acknowledge_now = true;
        if offset > u32::MAX / 2 {
            self.duplicates += 1;
        } else if offset > AHEAD {
            self.beyond += 1;
        } else if self.selective >> (offset - 1) & 1 == 1 {
            self.duplicates += 1;
        } else {
            self.keep(offset, datagram, buffers);
        }
        false
    }

    fn keep(&mut self, offset: u32, datagram: &Datagram<'_>, buffers: &mut Buffers) {
        let mut bytes = buffers.take();
        bytes.extend_from_slice(datagram.bytes);
        let at = offset as usize;
        if self.ahead.len() <= at {
            self.ahead.resize_with(at + 1, || None);
        }
        self.ahead[at] = Some((datagram.header, bytes));
        self.selective |= 1 << (offset - 1);
    }

    /// Returns the next kept message if it is in order now. It must be handled now.
    pub fn kept(&mut self) -> Option<Kept> {
        let kept = self.ahead.front_mut()?.take()?;
        self.advance();
        Some(kept)
    }

    /// Moves past the expected message.
    fn advance(&mut self) {
        self.ahead.pop_front();
        self.selective >>= 1;
        self.expected = self.expected.wrapping_add(1);
        self.delivered += 1;
        self.unacknowledged += 1;
        if self.unacknowledged >= self.acknowledge_every {
            self.acknowledge_now = true;
        }
    }

    /// Starts the acknowledgement delay, if it is not running.
    pub fn owe(&mut self, now_ns: u64) {
        self.acknowledge_at_ns.get_or_insert(now_ns + self.acknowledgement_delay_ns);
    }

    /// Requests an acknowledgement at once, because the peer asked for it.
    pub fn acknowledge_now(&mut self) {
        self.acknowledge_now = true;
    }

    /// Requests an acknowledgement at once if at least `count` messages wait for one.
    pub fn acknowledge_after(&mut self, count: u32) {
        self.acknowledge_now |= self.unacknowledged >= count;
    }

    /// Reports whether an acknowledgement must be sent at once, alone if no message carries it.
    pub fn is_due(&self) -> bool {
        self.acknowledge_now
    }

    /// Notes that a datagram with the current acknowledgement was sent. The acknowledgement delay goes on if its
    /// completion count is an older one.
    pub fn told(&mut self, is_all: bool) {
        self.unacknowledged = 0;
        self.acknowledge_now = false;
        if is_all {
            self.acknowledge_at_ns = None;
        }
    }

    /// Forgets the kept messages, because the peer is lost.
    pub fn abandon(&mut self) {
        (self.ahead, self.selective) = (VecDeque::new(), 0);
    }

    /// Returns the time at which the acknowledgement delay ends, if it is running.
    pub fn deadline(&self) -> Option<u64> {
        self.acknowledge_at_ns
    }

    /// Requests an acknowledgement if its delay has ended at `now_ns`.
    pub fn on_time(&mut self, now_ns: u64) {
        if self.acknowledge_at_ns.is_some_and(|at_ns| at_ns <= now_ns) {
            self.acknowledge_now = true;
        }
    }

    /// Returns the memory of the kept messages, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.ahead.capacity() * size_of::<Option<Kept>>()
            + self.ahead.iter().flatten().map(|(_, bytes)| bytes.capacity()).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::datagram::{self, Kind};
    use crate::reliability::recovery::Recovery;
    use proptest::prelude::*;

    const DELAY_NS: u64 = 1_000;

    fn receiving() -> (Receiving, Buffers) {
        (Receiving::new(0, DELAY_NS, Recovery::default().acknowledge_every), Buffers::default())
    }

    fn message(sequence: u32) -> Vec<u8> {
        let header = Header {
            kind: Kind::Request,
            handler: 0,
            connection: 7,
            sequence,
            transmission: 9,
            arrived: Arrived::default(),
            completed: 0,
            departed: None,
        };
        let mut bytes = Vec::new();
        datagram::write(&header, &[u64::from(sequence)], b"payload", &mut bytes);
        datagram::stamp(&mut bytes, sequence, 9, Arrived::default());
        bytes
    }

    /// Receives a message. Returns the sequence numbers of the messages that are handled then.
    fn arrive(receiving: &mut Receiving, buffers: &mut Buffers, sequence: u32, now_ns: u64) -> Vec<u32> {
        let bytes = message(sequence);
        if !receiving.take(&datagram::parse(&bytes).unwrap(), now_ns, buffers) {
            assert_eq!(receiving.kept(), None);
            return Vec::new();
        }
        let mut handled = alloc::vec![sequence];
        while let Some((header, bytes)) = receiving.kept() {
            assert_eq!(bytes, message(header.sequence));
            handled.push(header.sequence);
        }
        handled
    }

    #[test]
    fn what_is_ahead_waits_for_its_turn() {
        let (mut receiving, mut buffers) = receiving();
        for (sequence, selective) in [(2, 0b10), (4, 0b1010), (1, 0b1011), (64, 1 << 63 | 0b1011)] {
            assert_eq!(arrive(&mut receiving, &mut buffers, sequence, 0), []);
            assert_eq!(
                receiving.arrived(),
                Arrived { expected: 0, selective, latest: 9, ..Arrived::default() }
            );
        }
        assert_eq!(arrive(&mut receiving, &mut buffers, 0, 0), [0, 1, 2]);
        assert_eq!(
            receiving.arrived(),
            Arrived { expected: 3, selective: 1 << 60 | 1, latest: 9, ..Arrived::default() }
        );
        assert_eq!(arrive(&mut receiving, &mut buffers, 3, 0), [3, 4]);
        assert_eq!(receiving.delivered, 5);
    }

    #[test]
    fn what_came_before_or_is_too_far_ahead_is_not_taken() {
        let (mut receiving, mut buffers) = receiving();
        for sequence in [0, 0, 2, 2, u32::MAX, 1 + AHEAD + 1] {
            arrive(&mut receiving, &mut buffers, sequence, 0);
        }
        assert_eq!((receiving.duplicates, receiving.beyond), (3, 1));
        assert_eq!(
            receiving.arrived(),
            Arrived { expected: 1, selective: 1, latest: 9, ..Arrived::default() }
        );
    }

    #[test]
    fn acknowledgements_wait_unless_something_is_missing_or_many_are_owed() {
        let (mut receiving, mut buffers) = receiving();
        assert_eq!(receiving.deadline(), None);
        arrive(&mut receiving, &mut buffers, 0, 50);
        arrive(&mut receiving, &mut buffers, 1, 60);
        assert_eq!((receiving.deadline(), receiving.is_due()), (Some(50 + DELAY_NS), false));
        receiving.on_time(50 + DELAY_NS);
        assert!(receiving.is_due());
        receiving.told(true);
        assert_eq!((receiving.deadline(), receiving.is_due()), (None, false));

        arrive(&mut receiving, &mut buffers, 3, 70);
        assert!(receiving.is_due());
        receiving.told(true);

        for sequence in [2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16] {
            arrive(&mut receiving, &mut buffers, sequence, 80);
            assert!(!receiving.is_due(), "{sequence}");
        }
        arrive(&mut receiving, &mut buffers, 17, 80);
        assert!(receiving.is_due());
    }

    proptest! {
        #[test]
        fn all_come_once_and_in_order(order in proptest::collection::vec(0_u32..AHEAD, 0..400)) {
            let (mut receiving, mut buffers) = receiving();
            let mut handled = Vec::new();
            for sequence in order.into_iter().chain(0..AHEAD) {
                handled.extend(arrive(&mut receiving, &mut buffers, sequence, 0));
            }
            prop_assert_eq!(handled, (0..AHEAD).collect::<Vec<_>>());
            prop_assert_eq!(receiving.arrived(), Arrived { expected: AHEAD, selective: 0, latest: 9, ..Arrived::default() });
        }
    }
}
