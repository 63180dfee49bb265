//! Bounds on the time of arrival of a message, from polls of the completion queue that found nothing.
//!
//! A poll that finds nothing does not always prove that nothing has arrived. A provider that was not
//! polled for a while may need several polls to report earlier arrivals. libfabric's `tcp` needs one to
//! see that a socket is readable and one to read it. After such an absence the bound is therefore the
//! last poll before it, until a few polls in a row have found nothing. A receive that is posted now may
//! match a message that arrived earlier; the time of posting (`Seen::posted`) covers that case.

/// After so many empty polls in a row nothing is left that arrived before them.
const SURE: u8 = 3;

/// The polls of one completion queue. Times are in ticks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Looks {
    /// When the queue was last found empty.
    vain: u64,
    /// The latest time at which nothing had arrived for certain, if it is known.
    sure: Option<u64>,
    /// Empty polls in a row since the last absence.
    in_a_row: u8,
}

impl Looks {
    /// Starts with an empty queue at `now`.
    pub fn new(now: u64) -> Self {
        Self { vain: now, sure: Some(now), in_a_row: SURE }
    }

    /// Returns when the queue was last found empty.
    pub fn vain(&self) -> u64 {
        self.vain
    }

    /// Returns a time at which a message that is found now had not arrived, if one is known.
    pub fn not_at(&self) -> Option<u64> {
        self.sure
    }

    /// Records a poll at `now` that found nothing, or nothing more. A program that did not poll for
    /// longer than `away` ticks was absent.
    pub fn in_vain(&mut self, now: u64, away: u64) {
        if now.saturating_sub(self.vain) > away {
            // Messages that are found from now on may have arrived during the absence.
            (self.sure, self.in_a_row) = (self.sure.map(|_| self.vain), 0);
        } else {
            self.in_a_row = self.in_a_row.saturating_add(1);
        }
        if self.in_a_row >= SURE {
            self.sure = Some(now);
        }
        self.vain = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AWAY: u64 = 100;

    fn look(looks: &mut Looks, times: impl IntoIterator<Item = u64>) {
        times.into_iter().for_each(|now| looks.in_vain(now, AWAY));
    }

    #[test]
    fn who_looks_all_the_time_knows_by_each_look() {
        let mut looks = Looks::new(0);
        for now in (10..1000).step_by(10) {
            look(&mut looks, [now]);
            assert_eq!((looks.not_at(), looks.vain()), (Some(now), now));
        }
    }

    #[test]
    fn after_an_absence_the_look_before_it_counts_until_a_few_were_in_vain() {
        let mut looks = Looks::new(0);
        look(&mut looks, [10, 1000]);
        assert_eq!(looks.not_at(), Some(10));
        look(&mut looks, [1010, 1020]);
        assert_eq!(looks.not_at(), Some(10));
        look(&mut looks, [1030]);
        assert_eq!(looks.not_at(), Some(1030));
        // A program that polls rarely uses the poll before the last as its bound.
        look(&mut looks, [2000, 3000]);
        assert_eq!(looks.not_at(), Some(2000));
    }
}
