//! The time that counts for peers.

use std::time::{Duration, Instant};

/// Nanoseconds in which this side paid attention. A program that did not poll for long is
/// not to take its own absence for the silence of its peers, so of one pause only a part
/// counts.
#[derive(Debug)]
pub(crate) struct Clock {
    last: Instant,
    now_ns: u64,
    most: Duration,
}

impl Clock {
    /// A clock that counts at most a quarter of `patience` for one pause.
    pub(crate) fn new(patience: Duration) -> Self {
        let most = (patience / 4).max(Duration::from_millis(1));
        Self { last: Instant::now(), now_ns: 0, most }
    }

    /// The longest pause that counts whole.
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
