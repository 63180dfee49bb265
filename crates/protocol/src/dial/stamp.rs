//! A stamp in 32 bits, as it travels in the spare half of the data that a message brings along.
//!
//! ```text
//! 31       30     29      28       27 ......... 0
//! stamped  added  spared  at once  time
//! ```
//!
//! Time is in grains of [`GRAIN_NS`] at least, and comes round again after some seconds. Whoever
//! reads it knows the latest time that it may mean. A message that was left lying for longer than
//! that seems younger than it is, and waits for nothing but its latency.

use super::timing::Departed;

/// The shortest grain, in nanoseconds: half of it is what a stamp errs by.
pub const GRAIN_NS: f64 = 10.0;

const STAMPED: u32 = 1 << 31;
const ADDED: u32 = 1 << 30;
const SPARED: u32 = 1 << 29;
const AT_ONCE: u32 = 1 << 28;
const TIME_BITS: u32 = 28;
const TIME: u32 = (1 << TIME_BITS) - 1;

/// What a message says of its departure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// When it departed, in ticks.
    pub departed: Departed,
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

    /// As another process has chosen it.
    pub const fn of_shift(shift: u32) -> Self {
        Self { shift: if shift < 8 { shift } else { 8 } }
    }

    /// How far ticks are shifted.
    pub const fn shift(self) -> u32 {
        self.shift
    }

    /// Time that can be told apart, in ticks.
    pub const fn range(self) -> u64 {
        1 << (TIME_BITS + self.shift)
    }

    /// Packs a stamp.
    pub fn pack(self, stamp: Stamp) -> u32 {
        // Rounded down: what departs now is not to seem to depart later.
        let time = (stamp.departed.at >> self.shift) as u32 & TIME;
        let flag = |flag: u32, is_set: bool| if is_set { flag } else { 0 };
        STAMPED
            | flag(ADDED, stamp.added)
            | flag(SPARED, stamp.spared)
            | flag(AT_ONCE, stamp.departed.at_once)
            | time
    }

    /// Unpacks one, if it is one. It means no time after `latest`.
    pub fn unpack(self, packed: u32, latest: u64) -> Option<Stamp> {
        if packed & STAMPED == 0 {
            return None;
        }
        let latest = latest >> self.shift;
        let before = (latest as u32).wrapping_sub(packed) & TIME;
        let at = latest.saturating_sub(u64::from(before)) << self.shift;
        // The middle of the grain, if that is not too late.
        let at = at + if self.shift == 0 || before == 0 { 0 } else { 1 << (self.shift - 1) };
        Some(Stamp {
            departed: Departed { at, at_once: packed & AT_ONCE != 0 },
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
            assert!(grain.range() as f64 * tick_ns > 2.5e9);
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
        #[test]
        fn what_is_packed_is_unpacked(
            at in 1u64 << 34..1 << 50, later in 0..1u64 << 32, added: bool, spared: bool, at_once: bool,
        ) {
            let grain = Grain::of(0.4);
            let departed = Departed { at, at_once };
            let stamp = grain.unpack(grain.pack(Stamp { departed, added, spared }), at + later).unwrap();
            prop_assert!(stamp.departed.at.abs_diff(at) <= 32 && stamp.departed.at <= at + later);
            prop_assert_eq!((stamp.added, stamp.spared, stamp.departed.at_once), (added, spared, at_once));
        }

        /// However long it was left lying.
        #[test]
        fn no_stamp_means_a_time_to_come(at in 0..1u64 << 50, later in 0..1u64 << 50) {
            let grain = Grain::of(0.4);
            let departed = Departed { at, at_once: true };
            let stamp = grain.unpack(grain.pack(Stamp { departed, added: false, spared: false }), at + later).unwrap();
            prop_assert!(stamp.departed.at <= at + later);
        }
    }
}
