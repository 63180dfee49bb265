//! What the link itself takes of a message, learnt from when messages are seen.

/// When a message was seen for the first time.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Then.
    pub at: u64,
    /// It had not been there a while before; `None` where nobody had looked.
    pub not_at: Option<u64>,
    /// When the program had posted its last receive, where a message is not seen before it has one:
    /// a message that departed earlier may have waited for its receive.
    pub posted: Option<u64>,
    /// What messages of about its size take that come another way, if that is known: it serves where none
    /// was seen coming on this one.
    pub elsewhere: Option<u64>,
}

impl Seen {
    /// By somebody who had not looked before.
    pub const fn late(at: u64) -> Self {
        Self { at, not_at: None, posted: None, elsewhere: None }
    }

    /// When the receive of a message that departed at `stamp` was posted, if that was later.
    fn posted_after(&self, stamp: u64) -> Option<u64> {
        self.posted.filter(|&posted| posted > stamp)
    }
}

/// Sizes that are told apart: powers of two.
pub const SIZES: usize = 33;

/// Which of them.
pub fn size_class(bytes: usize) -> usize {
    ((usize::BITS - bytes.leading_zeros()) as usize).min(SIZES - 1)
}

/// What messages of a size take on the link, from the departure of the last byte until they are
/// here.
#[derive(Clone, Debug)]
pub(super) struct Own {
    /// Of those that were seen as they came.
    seen_coming: Usual,
    least: Least,
    /// Of those that may have waited for their receive, from there: they took that much at least,
    /// beyond the little that it takes to look.
    since_posted: Least,
}

/// What something usually takes: the mean of some of the latest, without what was held up.
#[derive(Clone, Debug)]
pub struct Usual {
    mean: Option<f64>,
    /// The first time may have made a connection: alone it says nothing.
    is_first: bool,
    least: Least,
}

impl Usual {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self { mean: None, is_first: true, least: Least::NONE };
    /// The weight of the latest in the mean.
    const WEIGHT: f64 = 1.0 / 16.0;
    /// What takes so many times the least was held up.
    const HELD_UP: f64 = 3.0;

    /// It took so long this time.
    pub fn note(&mut self, took: u64) {
        self.least.note(took);
        let most = self.least.get().map_or(f64::INFINITY, |least| Self::HELD_UP * least as f64 + 1.0);
        let took = (took as f64).min(most);
        self.is_first = self.mean.is_none();
        let mean = self.mean.unwrap_or(took).min(most);
        self.mean = Some(mean + Self::WEIGHT * (took - mean));
    }

    /// What it takes, once it was seen to twice.
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

    /// Notes a message that departed at `stamp`. Returns when it was here; `near` is what messages of
    /// about that size take that were seen as they came.
    pub fn note(&mut self, stamp: u64, seen: Seen, near: Option<u64>) -> u64 {
        if let Some(posted) = seen.posted_after(stamp) {
            // The time until the receive was posted is the program's. If it waits for a dialled link
            // meanwhile, the dial must not be learnt as the link's own.
            self.since_posted.note(seen.at.saturating_sub(posted));
            return stamp.saturating_add(self.get(near)).min(seen.at);
        }
        let took = seen.at.saturating_sub(stamp);
        self.least.note(took);
        let not_at = seen.not_at.unwrap_or(0);
        let unclear = seen.at.saturating_sub(not_at);
        // A message is seen as it comes by who looks more often than it takes. It has come somewhere
        // between two looks, and what is due is seen as much later: the middle is right on average.
        let often = self.seen_coming.get().map_or(took, |usual| usual.min(took));
        if seen.not_at.is_some() && unclear <= often {
            let here = seen.at - unclear / 2;
            self.seen_coming.note(here.saturating_sub(stamp));
            return here;
        }
        stamp.saturating_add(self.get(near)).clamp(not_at.min(seen.at), seen.at)
    }

    /// What messages of that size take that were seen as they came.
    pub fn seen_coming(&self) -> Option<u64> {
        self.seen_coming.get()
    }

    /// Whether a message of that size was ever seen.
    pub fn is_known(&self) -> bool {
        self.least.get().is_some()
    }

    /// What a message takes for all that is known. Where none of its size was seen as it came, the
    /// least may be as late as the program looks, and those of another size know better.
    pub fn get(&self, near: Option<u64>) -> u64 {
        let least = self.least.get().map(|least| near.map_or(least, |near| near.min(least)));
        let known = self.seen_coming.get().or(least);
        known.or(self.since_posted.get().into_iter().chain(near).max()).unwrap_or(0)
    }
}

/// The least time that one of the latest messages took: that of a program which looked at the
/// right moment. Of the latest alone, for a link does not stay as it is.
#[derive(Clone, Debug)]
struct Least {
    now: Option<u64>,
    before: Option<u64>,
    count: u32,
}

impl Least {
    /// Messages whose least counts together.
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
