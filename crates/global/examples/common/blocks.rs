//! The distribution of places over ranks, in blocks: each rank has as many as any other one, or one more.

use std::ops::Range;

/// Places from 0, distributed over ranks.
#[derive(Clone, Copy, Debug)]
pub struct Blocks {
    places: u64,
    ranks: u64,
}

impl Blocks {
    /// Returns the distribution of `places` over `ranks`.
    pub fn new(places: u64, ranks: u32) -> Self {
        Self { places, ranks: u64::from(ranks) }
    }

    /// Returns the places of a rank.
    pub fn of(self, rank: u32) -> Range<u64> {
        let begin = |rank: u64| rank * self.places / self.ranks;
        begin(u64::from(rank))..begin(u64::from(rank) + 1)
    }

    /// Returns the rank that has a place, and the index of the place at that rank.
    #[allow(dead_code, reason = "a program that sends to counted places does not need it")]
    pub fn find(self, place: u64) -> (u32, u64) {
        // The last rank that begins at this place or before it.
        let rank = (((place + 1) * self.ranks - 1) / self.places) as u32;
        (rank, place - self.of(rank).start)
    }
}
