//! The event queue and the virtual clock of the simulators. The unit of time is that of the simulator.
//!
//! Events happen in the order of their times. Of two events at one time, the one that was scheduled first
//! happens first.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The scheduled events, and the virtual time.
///
/// A simulator schedules a few kinds of event, and the events of each kind mostly in the order of their times:
/// a wire and a stage keep the order of messages. So the queue consists of a few runs in this order, and the
/// next event is the first of one of them. A heap takes far longer with thousands of messages in flight.
#[derive(Clone, Debug)]
pub(super) struct Events<E> {
    now: u64,
    runs: Vec<VecDeque<Scheduled<E>>>,
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
        Self { now: 0, runs: Vec::new(), count: 0 }
    }

    /// Returns the virtual time.
    pub(super) const fn now(&self) -> u64 {
        self.now
    }

    /// Schedules an event at the time `at`, which has not passed.
    pub(super) fn schedule(&mut self, at: u64, event: E) {
        debug_assert!(at >= self.now, "an event at {at} is scheduled at {}", self.now);
        let scheduled = Scheduled { at, nth: self.count, event };
        self.count += 1;
        match self.runs.iter_mut().find(|run| run.back().is_none_or(|last| last.at <= at)) {
            Some(run) => run.push_back(scheduled),
            None => self.runs.push(VecDeque::from([scheduled])),
        }
    }

    /// Schedules an event after `duration`.
    pub(super) fn schedule_after(&mut self, duration: u64, event: E) {
        self.schedule(self.now + duration, event);
    }

    /// Returns the time of the next event.
    pub(super) fn next_at(&self) -> Option<u64> {
        self.next().map(|(at, ..)| at)
    }

    /// Returns the time of the next event, its number, and its run.
    fn next(&self) -> Option<(u64, u64, usize)> {
        let mut next: Option<(u64, u64, usize)> = None;
        for (run, events) in self.runs.iter().enumerate() {
            if let Some(first) = events.front()
                && next.is_none_or(|(at, nth, _)| (first.at, first.nth) < (at, nth))
            {
                next = Some((first.at, first.nth, run));
            }
        }
        next
    }

    /// Advances the time to the next event and takes it.
    pub(super) fn take(&mut self) -> Option<E> {
        let (_, _, run) = self.next()?;
        self.take_from(run)
    }

    /// Takes the next event until `end`. If there is none, advances the time to `end`.
    pub(super) fn take_until(&mut self, end: u64) -> Option<E> {
        match self.next() {
            Some((at, _, run)) if at <= end => self.take_from(run),
            _ => {
                self.now = self.now.max(end);
                None
            }
        }
    }

    /// Advances the time to the first event of a run and takes it.
    fn take_from(&mut self, run: usize) -> Option<E> {
        let Scheduled { at, event, .. } = self.runs[run].pop_front()?;
        self.now = at;
        Some(event)
    }
}

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
