//! Acknowledgements and retries of the message layer, for a VI that may lose messages (Speight et al. 1999, section
//! 5.1). The rules know no VI: the caller sends and receives.
//!
//! Each message begins with a number. The receiver takes messages in order alone, and answers each with the number of
//! the next one that it expects. The sender keeps a copy of a message until it is acknowledged, and sends all that it
//! keeps again after a while without an answer.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Length of the number before a message, in bytes.
pub const PREFIX: usize = 8;
/// Time without an acknowledgement after which messages are sent again. It doubles each time.
const FIRST_WAIT: Duration = Duration::from_millis(2);
/// The longest such time.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// The second word of a message and of an acknowledgement.
const MESSAGE: u32 = 0;
const ACKNOWLEDGEMENT: u32 = 1;

/// What a received message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The next message for the caller, which must be acknowledged.
    Next,
    /// A message from before, which must be acknowledged again.
    Again,
    /// Nothing for the caller.
    Nothing,
}

/// The messages of a VI that are not acknowledged, and the next one that is expected.
#[derive(Debug)]
pub struct Acks {
    /// Number of the first message that is kept.
    first: u32,
    kept: VecDeque<Vec<u8>>,
    /// Number of kept messages that were sent again since the last silence.
    again: usize,
    /// When the last message was sent or acknowledged.
    heard: Instant,
    wait: Duration,
    expected: u32,
    /// Whether an acknowledgement could not be sent.
    pub is_owed: bool,
}

impl Acks {
    /// Begins with the first message each way.
    pub fn new(now: Instant) -> Self {
        let (kept, wait) = (VecDeque::new(), FIRST_WAIT);
        Self { first: 0, kept, again: usize::MAX, heard: now, wait, expected: 0, is_owed: false }
    }

    /// Returns the prefix of the next message.
    pub fn prefix(&self) -> [u8; PREFIX] {
        words(self.first.wrapping_add(self.kept.len() as u32), MESSAGE)
    }

    /// Keeps a message that was sent, with its prefix.
    pub fn keep(&mut self, message: &[u8], now: Instant) {
        if self.kept.is_empty() {
            self.heard = now;
        }
        self.kept.push_back(message.to_vec());
    }

    /// Returns the number of messages that are not acknowledged.
    pub fn kept(&self) -> usize {
        self.kept.len()
    }

    /// Returns the acknowledgement of what has come so far.
    pub fn acknowledgement(&self) -> [u8; PREFIX] {
        words(self.expected, ACKNOWLEDGEMENT)
    }

    /// Takes what has come. Returns what it is; malformed messages are nothing.
    pub fn take(&mut self, bytes: &[u8], now: Instant) -> Taken {
        let Some((prefix, _)) = bytes.split_first_chunk::<PREFIX>() else { return Taken::Nothing };
        let [a, b, c, d, e, f, g, h] = *prefix;
        let (number, kind) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
        match kind {
            MESSAGE if number == self.expected => {
                self.expected = self.expected.wrapping_add(1);
                Taken::Next
            }
            // Half of all numbers lie behind.
            MESSAGE if self.expected.wrapping_sub(number) < 1 << 31 => Taken::Again,
            ACKNOWLEDGEMENT => {
                let count = number.wrapping_sub(self.first) as usize;
                if (1..=self.kept.len()).contains(&count) {
                    self.kept.drain(..count);
                    self.first = number;
                    self.again = self.again.saturating_sub(count);
                    (self.heard, self.wait) = (now, FIRST_WAIT);
                }
                Taken::Nothing
            }
            _ => Taken::Nothing,
        }
    }

    /// Returns the time until messages are sent again; `None` if all are acknowledged.
    pub fn until_due(&self, now: Instant) -> Option<Duration> {
        if self.kept.is_empty() {
            return None;
        }
        Some((self.heard + self.wait).saturating_duration_since(now))
    }

    /// Returns the next message that is to be sent again, if it is time. The caller confirms it by [`Acks::sent_again`].
    pub fn next_again(&mut self, now: Instant) -> Option<&[u8]> {
        if self.until_due(now)?.is_zero() {
            self.again = 0;
            (self.heard, self.wait) = (now, LONGEST_WAIT.min(2 * self.wait));
        }
        self.kept.get(self.again).map(Vec::as_slice)
    }

    /// Notes that a message was sent again.
    pub fn sent_again(&mut self) {
        self.again += 1;
        if self.again >= self.kept.len() {
            self.again = usize::MAX;
        }
    }
}

fn words(number: u32, kind: u32) -> [u8; PREFIX] {
    let mut bytes = [0; PREFIX];
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    bytes[4..].copy_from_slice(&kind.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Two sides over a network that loses, repeats and reorders, with a clock of its own.
    struct Pair {
        sides: [Acks; 2],
        /// What is under way to each side.
        under_way: [Vec<Vec<u8>>; 2],
        got: [Vec<u8>; 2],
        now: Instant,
    }

    impl Pair {
        fn new() -> Self {
            let now = Instant::now();
            let sides = [Acks::new(now), Acks::new(now)];
            Self { sides, under_way: Default::default(), got: Default::default(), now }
        }

        fn send(&mut self, side: usize, byte: u8) {
            let message = [&self.sides[side].prefix()[..], &[byte]].concat();
            self.sides[side].keep(&message, self.now);
            self.under_way[1 - side].push(message);
        }

        fn receive(&mut self, side: usize, place: usize) {
            let message = self.under_way[side].remove(place);
            let taken = self.sides[side].take(&message, self.now);
            if taken == Taken::Next {
                self.got[side].push(message[PREFIX]);
            }
            if taken != Taken::Nothing {
                self.under_way[1 - side].push(self.sides[side].acknowledgement().to_vec());
            }
        }

        fn send_again(&mut self, side: usize) {
            self.now += LONGEST_WAIT;
            while let Some(message) = self.sides[side].next_again(self.now).map(<[u8]>::to_vec) {
                self.under_way[1 - side].push(message);
                self.sides[side].sent_again();
            }
        }
    }

    proptest! {
        #[test]
        fn every_message_arrives_once_and_in_order(steps in prop::collection::vec((0..6_u8, any::<u8>()), 0..200)) {
            let mut pair = Pair::new();
            let mut sent = [Vec::new(), Vec::new()];
            for (step, byte) in steps {
                let side = usize::from(byte & 1);
                let count = pair.under_way[side].len();
                let place = usize::from(byte) % count.max(1);
                match step {
                    0 | 1 => {
                        sent[side].push(byte);
                        pair.send(side, byte);
                    }
                    2 | 3 if count > 0 => pair.receive(side, place),
                    4 if count > 0 => drop(pair.under_way[side].remove(place)),
                    5 if count > 0 => {
                        let again = pair.under_way[side][place].clone();
                        pair.under_way[side].push(again);
                    }
                    _ => {}
                }
                for side in 0..2 {
                    prop_assert!(sent[1 - side].starts_with(&pair.got[side]));
                }
            }
            for _ in 0..3 {
                for side in 0..2 {
                    pair.send_again(side);
                }
                while let Some(side) = (0..2).find(|side| !pair.under_way[*side].is_empty()) {
                    pair.receive(side, 0);
                }
            }
            prop_assert_eq!(&pair.got[0], &sent[1]);
            prop_assert_eq!(&pair.got[1], &sent[0]);
            prop_assert_eq!([pair.sides[0].kept(), pair.sides[1].kept()], [0, 0]);
        }

        #[test]
        fn nonsense_is_nothing_or_a_message_of_the_past(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
            let mut acks = Acks::new(Instant::now());
            prop_assert_eq!(acks.take(&bytes[..bytes.len().min(PREFIX - 1)], Instant::now()), Taken::Nothing);
            let _ = acks.take(&bytes, Instant::now());
            prop_assert_eq!(acks.kept(), 0);
        }
    }

    #[test]
    fn silence_doubles_the_wait() {
        let start = Instant::now();
        let mut acks = Acks::new(start);
        assert_eq!((acks.until_due(start), acks.next_again(start)), (None, None));
        acks.keep(b"12345678a", start);
        let mut now = start;
        for wait in [2, 4, 8, 16, 32, 64, 128, 256, 512, 1000, 1000] {
            assert_eq!(acks.until_due(now), Some(Duration::from_millis(wait)));
            assert!(acks.next_again(now).is_none());
            now += Duration::from_millis(wait);
            assert!(acks.next_again(now).is_some());
            acks.sent_again();
        }
    }
}
