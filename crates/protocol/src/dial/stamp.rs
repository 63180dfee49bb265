//! A stamp in 32 bits, as it travels in the spare half of the data that a message brings along.
//!
//! ```text
//! 31       30     29      28 ............ 0
//! stamped  added  spared  time
//! ```
//!
//! Time is in grains of [`GRAIN_NS`] at least, and comes round again after some seconds. Whoever
//! reads it knows since when he had seen everything: no message is much older than that.

/// The shortest grain, in nanoseconds: half of it is what a stamp errs by.
pub const GRAIN_NS: f64 = 10.0;

const STAMPED: u32 = 1 << 31;
const ADDED: u32 = 1 << 30;
const SPARED: u32 = 1 << 29;
const TIME_BITS: u32 = 29;
const TIME: u32 = (1 << TIME_BITS) - 1;

/// What a message says of its departure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// When its last byte has left, in ticks.
    pub departed: u64,
    /// The program had sent no data along: there is none for it.
    pub added: bool,
    /// The message goes between processes whose link is left as it is.
    pub spared: bool,
}

/// How ticks are made grains of: both sides have to agree on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grain {
    shift: u32,
}

impl Grain {
    /// For ticks of that length.
    pub fn of(tick_ns: f64) -> Self {
        let mut shift = 0;
        while shift < 8 && tick_ns * f64::from(1u32 << shift) < GRAIN_NS {
            shift += 1;
        }
        Self { shift }
    }

    /// Time that can be told apart, in ticks: a quarter of it lies before the reader's horizon.
    pub const fn range(self) -> u64 {
        1 << (TIME_BITS + self.shift)
    }

    /// How far beyond now a departure may lie, in ticks.
    pub const fn furthest(self) -> u64 {
        self.range() / 2
    }

    /// Packs a stamp.
    pub fn pack(self, stamp: Stamp) -> u32 {
        let half = if self.shift == 0 { 0 } else { 1 << (self.shift - 1) };
        let time = (stamp.departed.saturating_add(half) >> self.shift) as u32 & TIME;
        STAMPED | time | if stamp.added { ADDED } else { 0 } | if stamp.spared { SPARED } else { 0 }
    }

    /// Unpacks one, if it is one. `horizon` is a time, in ticks, at which no message was under way
    /// that departed much earlier.
    pub fn unpack(self, packed: u32, horizon: u64) -> Option<Stamp> {
        if packed & STAMPED == 0 {
            return None;
        }
        let earliest = horizon.saturating_sub(self.range() / 4) >> self.shift;
        let beyond = packed.wrapping_sub(earliest as u32) & TIME;
        Some(Stamp {
            departed: (earliest + u64::from(beyond)) << self.shift,
            added: packed & ADDED != 0,
            spared: packed & SPARED != 0,
        })
    }
}

/// Whether the program's own data leaves no room for a stamp, or would be taken for one.
pub const fn is_stamped(packed: u32) -> bool {
    packed & STAMPED != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn grains_are_fine_and_last_long() {
        for (tick_ns, shift) in [(0.4, 5), (1.0, 4), (0.25, 6), (10.0, 0), (40.0, 0)] {
            let grain = Grain::of(tick_ns);
            assert_eq!(grain.shift, shift, "{tick_ns}");
            assert!(grain.range() as f64 * tick_ns > 5e9);
        }
    }

    #[test]
    fn small_numbers_are_no_stamps() {
        for data in [0, 1, 65536, i32::MAX as u32] {
            assert!(!is_stamped(data));
            assert_eq!(Grain::of(0.4).unpack(data, 0), None);
        }
    }

    proptest! {
        /// Whenever the reader looked last, up to a second ago, and however far the departure lies
        /// in the future.
        #[test]
        fn what_is_packed_is_unpacked(
            now in 3_000_000_000u64..1 << 50, ago in 0..2_500_000_000u64, ahead in 0..1u64 << 33,
            added: bool, spared: bool,
        ) {
            let grain = Grain::of(0.4);
            let departed = now + ahead.min(grain.furthest());
            let stamp = grain.unpack(grain.pack(Stamp { departed, added, spared }), now - ago).unwrap();
            prop_assert!(stamp.departed.abs_diff(departed) <= 16);
            prop_assert_eq!((stamp.added, stamp.spared), (added, spared));
        }

        /// A program that has not looked for longer than a stamp lasts finds the message due.
        #[test]
        fn who_looks_late_does_not_wait(now in 1u64 << 40..1 << 50, slept in 0..1u64 << 38, took in 0..1u64 << 30) {
            let grain = Grain::of(0.4);
            let departed = now - took.min(slept);
            let stamp = grain.unpack(grain.pack(Stamp { departed, added: false, spared: false }), now - slept).unwrap();
            prop_assert!(stamp.departed <= departed + 16);
        }
    }
}
