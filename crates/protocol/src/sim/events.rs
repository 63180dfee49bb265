//! The event queue and the virtual clock of the simulators. The unit of time is that of the simulator.
//!
//! Events happen in the order of their times. Of two events at one time, the one that was scheduled first
//! happens first.

use alloc::collections::BinaryHeap;
use core::cmp::Ordering;

/// The scheduled events, and the virtual time.
#[derive(Clone, Debug)]
pub(super) struct Events<E> {
    now: u64,
    queue: BinaryHeap<Scheduled<E>>,
    /// The number of events scheduled so far.
    count: u64,
}

#[derive(Clone, Debug)]
struct Scheduled<E> {
    at: u64,
    nth: u64,
    event: E,
}

impl<E> Events<E> {
    /// Creates an empty queue at time 0.
    pub(super) const fn new() -> Self {
        Self { now: 0, queue: BinaryHeap::new(), count: 0 }
    }

    /// Returns the virtual time.
    pub(super) const fn now(&self) -> u64 {
        self.now
    }

    /// Schedules an event at the time `at`, which has not passed.
    pub(super) fn schedule(&mut self, at: u64, event: E) {
        debug_assert!(at >= self.now, "an event at {at} is scheduled at {}", self.now);
        self.queue.push(Scheduled { at, nth: self.count, event });
        self.count += 1;
    }

    /// Schedules an event after `duration`.
    pub(super) fn schedule_after(&mut self, duration: u64, event: E) {
        self.schedule(self.now + duration, event);
    }

    /// Returns the time of the next event.
    pub(super) fn next_at(&self) -> Option<u64> {
        self.queue.peek().map(|next| next.at)
    }

    /// Advances the time to the next event and takes it.
    pub(super) fn take(&mut self) -> Option<E> {
        let Scheduled { at, event, .. } = self.queue.pop()?;
        self.now = at;
        Some(event)
    }

    /// Takes the next event until `end`. If there is none, advances the time to `end`.
    pub(super) fn take_until(&mut self, end: u64) -> Option<E> {
        if self.next_at().is_some_and(|at| at <= end) {
            return self.take();
        }
        self.now = self.now.max(end);
        None
    }
}

/// The heap has its greatest element on top, so the earliest event is the greatest.
impl<E> Ord for Scheduled<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.nth).cmp(&(self.at, self.nth))
    }
}

impl<E> PartialOrd for Scheduled<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Scheduled<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<E> Eq for Scheduled<E> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_happen_by_time_and_then_as_scheduled() {
        let mut events = Events::new();
        for (at, event) in [(30, 'c'), (10, 'a'), (30, 'd'), (20, 'b')] {
            events.schedule(at, event);
        }
        assert_eq!((events.take_until(9), events.now(), events.next_at()), (None, 9, Some(10)));
        let order = core::array::from_fn(|_| events.take().map(|event| (event, events.now())));
        assert_eq!(order, [Some(('a', 10)), Some(('b', 20)), Some(('c', 30)), Some(('d', 30)), None]);
        assert_eq!((events.take_until(40), events.now()), (None, 40));
    }
}
