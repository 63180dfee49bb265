//! Estimates the link's own time for a message, from the times at which messages are first seen.

/// The time at which a message was first seen, and what the receiver knows about its arrival.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// The time at which the message was first seen.
    pub at: u64,
    /// An earlier time at which the message was not there; `None` if the receiver had not polled.
    pub not_at: Option<u64>,
    /// The time at which the program posted its last receive, on links where a message is seen only once it
    /// has one. A message that departed earlier may have waited for its receive.
    pub posted: Option<u64>,
    /// The time that messages of about this size take on another path, if known. It is used if no message was
    /// seen coming on this path.
    pub elsewhere: Option<u64>,
}

impl Seen {
    /// Describes a message that was seen at `at` by a receiver that had not polled before.
    pub const fn late(at: u64) -> Self {
        Self { at, not_at: None, posted: None, elsewhere: None }
    }

    /// Returns the time at which the receive was posted, if the message departed before, at `stamp`.
    fn posted_after(&self, stamp: u64) -> Option<u64> {
        self.posted.filter(|&posted| posted > stamp)
    }
}

/// The number of size classes, which are powers of two.
pub const SIZES: usize = 33;

/// Returns the size class of a message.
pub fn size_class(bytes: usize) -> usize {
    ((usize::BITS - bytes.leading_zeros()) as usize).min(SIZES - 1)
}

/// The link's own time for messages of one size class, from the departure of the last byte to the arrival.
#[derive(Clone, Debug)]
pub(super) struct Own {
    /// Of messages that were seen coming: the receiver polled more often than they took.
    seen_coming: Usual,
    /// Of all messages that did not wait for their receive.
    least: Least,
    /// The time from the posted receive, for messages that may have waited for it. The link took at least
    /// that, apart from the short time of a poll.
    since_posted: Least,
}

/// A usual time: a moving average in which interrupted times are capped.
#[derive(Clone, Debug)]
pub struct Usual {
    mean: Option<f64>,
    /// Only one time was noted. It may include making a connection, so alone it says nothing.
    is_first: bool,
    least: Least,
}

impl Usual {
    /// No time was noted.
    pub const UNKNOWN: Self = Self { mean: None, is_first: true, least: Least::NONE };
    /// The weight of the latest time in the average.
    const WEIGHT: f64 = 1.0 / 16.0;
    /// Times are capped at this multiple of the least. A longer time was interrupted.
    const HELD_UP: f64 = 3.0;

    /// Notes a time.
    pub fn note(&mut self, took: u64) {
        self.least.note(took);
        let most = self.least.get().map_or(f64::INFINITY, |least| Self::HELD_UP * least as f64 + 1.0);
        let took = (took as f64).min(most);
        self.is_first = self.mean.is_none();
        let mean = self.mean.unwrap_or(took).min(most);
        self.mean = Some(mean + Self::WEIGHT * (took - mean));
    }

    /// Returns the usual time, once two times were noted.
    pub fn get(&self) -> Option<u64> {
        self.mean.filter(|_| !self.is_first).map(|mean| (mean + 0.5) as u64)
    }
}

impl Default for Usual {
    fn default() -> Self {
        Self::UNKNOWN
    }
}

impl Own {
    pub const NONE: Self =
        Self { seen_coming: Usual::UNKNOWN, least: Least::NONE, since_posted: Least::NONE };

    /// Notes a message that departed at `stamp`. Returns the time of its arrival. `near` is the usual time of
    /// messages of about that size that were seen coming.
    pub fn note(&mut self, stamp: u64, seen: Seen, near: Option<u64>) -> u64 {
        if let Some(posted) = seen.posted_after(stamp) {
            // The time until the receive was posted belongs to the program. If the program waited for a
            // dialled link meanwhile, the dial must not be learnt as part of the link.
            self.since_posted.note(seen.at.saturating_sub(posted));
            return stamp.saturating_add(self.get(near)).min(seen.at);
        }
        let took = seen.at.saturating_sub(stamp);
        self.least.note(took);
        let not_at = seen.not_at.unwrap_or(0);
        let unclear = seen.at.saturating_sub(not_at);
        // A receiver sees a message coming if it polls more often than the message takes. The message arrived
        // between two polls. A message that is due is noticed with the same delay, so the middle between the
        // polls is right on average.
        let often = self.seen_coming.get().map_or(took, |usual| usual.min(took));
        if seen.not_at.is_some() && unclear <= often {
            let here = seen.at - unclear / 2;
            self.seen_coming.note(here.saturating_sub(stamp));
            return here;
        }
        stamp.saturating_add(self.get(near)).clamp(not_at.min(seen.at), seen.at)
    }

    /// Returns the usual time of messages of this size that were seen coming.
    pub fn seen_coming(&self) -> Option<u64> {
        self.seen_coming.get()
    }

    /// Reports whether a message of this size was seen that did not wait for its receive.
    pub fn is_known(&self) -> bool {
        self.least.get().is_some()
    }

    /// Returns when a message arrives that departs at `stamp` and was seen at `seen_at`, which may be earlier: the
    /// link carries it at once, even if its departure waits for others. If no message was ever seen coming, the
    /// estimate may be how long the receiver was away. So the message is not held for the link beyond its departure
    /// and the time at which it was seen.
    pub fn arrival(&self, stamp: u64, seen_at: u64, near: Option<u64>) -> u64 {
        let arrival = stamp.saturating_add(self.get(near));
        match self.seen_coming().or(near) {
            Some(_) => arrival,
            None => arrival.min(stamp.max(seen_at)),
        }
    }

    /// Returns the best estimate of the link's own time for a message. If none of its size was seen coming,
    /// the least time may include how late the program polled. Then a shorter time of another size is better.
    pub fn get(&self, near: Option<u64>) -> u64 {
        let least = self.least.get().map(|least| near.map_or(least, |near| near.min(least)));
        let known = self.seen_coming.get().or(least);
        known.or(self.since_posted.get().into_iter().chain(near).max()).unwrap_or(0)
    }
}

/// The least time of the recent messages. It is the time of a program that polled at the right moment. Old
/// messages do not count, because a link changes.
#[derive(Clone, Debug)]
struct Least {
    now: Option<u64>,
    before: Option<u64>,
    count: u32,
}

impl Least {
    /// The number of messages in a period. The current and the previous period count.
    const LATEST: u32 = 1024;

    const NONE: Self = Self { now: None, before: None, count: 0 };

    fn note(&mut self, took: u64) {
        if self.count == Self::LATEST {
            (self.before, self.now, self.count) = (self.now, None, 0);
        }
        self.now = Some(self.now.map_or(took, |now| now.min(took)));
        self.count += 1;
    }

    fn get(&self) -> Option<u64> {
        match (self.now, self.before) {
            (Some(now), Some(before)) => Some(now.min(before)),
            (now, before) => now.or(before),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_held_up_at_first_is_forgotten() {
        let mut usual = Usual::UNKNOWN;
        usual.note(10_000_000);
        assert_eq!(usual.get(), None);
        (0..60).for_each(|_| usual.note(1000));
        assert!(usual.get().unwrap() < 1100, "{usual:?}");
    }
}
