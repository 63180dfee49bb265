//! The messages that have arrived and are not due yet.

use super::parameters::EffectiveParameters;
use super::timing::Gate;
use alloc::collections::BinaryHeap;
use core::cmp::{Ordering, Reverse};

/// A queue of messages that are held until they are due.
#[derive(Debug)]
pub struct Hold<T> {
    held: BinaryHeap<Reverse<Held<T>>>,
    /// The number of messages held so far. Of two messages that are due at once, the one held first is
    /// released first.
    count: u64,
}

#[derive(Debug)]
struct Held<T> {
    due: u64,
    nth: u64,
    item: T,
}

/// A message that is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Released<T> {
    /// The message.
    pub item: T,
    /// The time of its release. The difference from now is how late the program polled.
    pub at: u64,
}

impl<T> Hold<T> {
    /// Creates an empty queue.
    pub const fn new() -> Self {
        Self { held: BinaryHeap::new(), count: 0 }
    }

    /// Holds a message until it is due. The messages of one sender are due in the order of these calls (see
    /// [`Lane`](super::timing::Lane)).
    pub fn put(&mut self, due: u64, item: T) {
        self.held.push(Reverse(Held { due, nth: self.count, item }));
        self.count += 1;
    }

    /// Releases the next message. Returns `None` if the time of its release has not come.
    pub fn take(
        &mut self,
        now: u64,
        gate: &mut Gate,
        parameters: &EffectiveParameters,
    ) -> Option<Released<T>> {
        self.next(gate).filter(|&at| at <= now)?;
        let Reverse(Held { due, item, .. }) = self.held.pop()?;
        Some(Released { item, at: gate.pass(due, parameters) })
    }

    /// Returns the time at which the next message can be released, if there is one.
    pub fn next(&self, gate: &Gate) -> Option<u64> {
        self.held.peek().map(|Reverse(next)| gate.opens(next.due))
    }

    /// Returns the next message, whether or not it can be released.
    pub fn peek(&self) -> Option<&T> {
        self.held.peek().map(|Reverse(next)| &next.item)
    }

    /// Returns the number of held messages.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Reports whether no message is held.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }
}

impl<T> Default for Hold<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Held<T> {
    fn order(&self) -> (u64, u64) {
        (self.due, self.nth)
    }
}

impl<T> PartialEq for Held<T> {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl<T> Eq for Held<T> {}

impl<T> PartialOrd for Held<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Held<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().cmp(&other.order())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dial::link::Seen;
    use crate::dial::parameters::Latency;
    use crate::dial::timing::{Departures, Lane};
    use alloc::vec;
    use alloc::vec::Vec;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn what_is_due_first_goes_first() {
        let (mut hold, mut gate) = (Hold::new(), Gate::default());
        for (due, item) in [(30, 'c'), (10, 'a'), (30, 'd'), (20, 'b')] {
            hold.put(due, item);
        }
        assert_eq!((hold.len(), hold.next(&gate)), (4, Some(10)));
        assert_eq!(hold.take(9, &mut gate, &EffectiveParameters::NONE), None);
        let out: Vec<_> =
            (0..4).map(|_| hold.take(30, &mut gate, &EffectiveParameters::NONE).unwrap().item).collect();
        assert_eq!(out, vec!['a', 'b', 'c', 'd']);
        assert!(hold.is_empty() && hold.next(&gate).is_none());
    }

    proptest! {
        /// Three senders, and a receiver that polls at arbitrary times. Each message is released once, in the
        /// order of its sender, and not early. Any two releases are at least the gap apart.
        #[test]
        fn everything_is_released_once_in_order_and_not_early(
            latency in 0..2000u64,
            recv_gap in 0..300u64,
            messages in vec((0..400u64, 0..3usize, 1..2000usize), 1..80),
            looks in vec(1..700u64, 1..20),
        ) {
            let parameters = EffectiveParameters {
                latency: Latency::After(latency),
                recv_gap,
                send_gap: 50,
                gap_per_byte: 0.5,
                ..EffectiveParameters::NONE
            };
            let (mut departures, mut lanes) = (vec![Departures::default(); 3], vec![Lane::default(); 3]);
            let (mut hold, mut gate) = (Hold::new(), Gate::default());
            let mut looks = looks.into_iter().cycle();
            let (mut now, mut look, mut out) = (0, 0, Vec::new());
            for (nth, (pause, sender, bytes)) in messages.iter().copied().enumerate() {
                now += pause;
                let departed = departures[sender].depart(now, bytes, &parameters);
                let due = lanes[sender].due(Some(departed), bytes, Seen::late(now), &parameters);
                hold.put(due, (nth, sender, departed.at));
                while look < now {
                    look += looks.next().unwrap();
                    while let Some(released) = hold.take(look, &mut gate, &parameters) {
                        prop_assert!(released.at <= look);
                        out.push(released);
                    }
                }
            }
            while let Some(at) = hold.next(&gate) {
                out.push(hold.take(at, &mut gate, &parameters).unwrap());
            }
            prop_assert_eq!(out.len(), messages.len());
            prop_assert!(out.windows(2).all(|pair| pair[1].at >= pair[0].at + recv_gap));
            prop_assert!(out.iter().all(|released| released.at >= released.item.2 + latency));
            for sender in 0..3 {
                let order: Vec<usize> = out.iter().filter(|r| r.item.1 == sender).map(|r| r.item.0).collect();
                prop_assert!(order.is_sorted(), "{order:?}");
            }
        }
    }
}
