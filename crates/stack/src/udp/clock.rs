//! The clock of peer timeouts.

use std::time::{Duration, Instant};

/// Counts the nanoseconds in which this process polled. One pause between two readings counts only in
/// part, because a process that did not poll must not take its own absence for silence of its peers.
#[derive(Debug)]
pub(crate) struct Clock {
    last: Instant,
    now_ns: u64,
    most: Duration,
}

impl Clock {
    /// Returns a clock that counts at most a quarter of `timeout` for one pause.
    pub(crate) fn new(timeout: Duration) -> Self {
        let most = (timeout / 4).max(Duration::from_millis(1));
        Self { last: Instant::now(), now_ns: 0, most }
    }

    /// Returns the longest pause that counts in full.
    pub(crate) fn longest_pause(&self) -> Duration {
        self.most
    }

    #[inline]
    pub(crate) fn now_ns(&mut self) -> u64 {
        let now = Instant::now();
        let passed = now.saturating_duration_since(self.last).min(self.most);
        self.last = now;
        self.now_ns += passed.as_nanos() as u64;
        self.now_ns
    }
}
