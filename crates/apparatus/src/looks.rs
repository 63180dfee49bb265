//! Since when a message may have been here: what looks that found nothing say about it.
//!
//! A look that finds nothing is not always proof. A provider that was left alone for a while may need
//! several looks until it shows what had come meanwhile (libfabric's tcp: one to see that a socket has
//! something, one to read it). So what counts is the last look before the program was away, until a few
//! in a row have found nothing. That a receive which is posted now takes what came before is known by
//! the time of posting (`Seen::posted`).

/// Looks in a row, after which there is nothing that had come before them.
const SURE: u8 = 3;

/// Looks into one completion queue, in ticks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Looks {
    /// When nothing more was found last.
    vain: u64,
    /// When there surely was nothing, if that is known.
    sure: Option<u64>,
    /// Looks in vain since the program was away.
    in_a_row: u8,
}

impl Looks {
    /// Nothing is there at `now`.
    pub fn new(now: u64) -> Self {
        Self { vain: now, sure: Some(now), in_a_row: SURE }
    }

    /// When nothing more was found last.
    pub fn vain(&self) -> u64 {
        self.vain
    }

    /// When a message that is found now was surely not here, if that is known.
    pub fn not_at(&self) -> Option<u64> {
        self.sure
    }

    /// A look at `now` has found nothing, or nothing more. Who does not look for longer than `away`
    /// was away.
    pub fn in_vain(&mut self, now: u64, away: u64) {
        if now.saturating_sub(self.vain) > away {
            // What is shown from now on may have come since then.
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
        // Who looks rarely knows by the look before the last.
        look(&mut looks, [2000, 3000]);
        assert_eq!(looks.not_at(), Some(2000));
    }
}
