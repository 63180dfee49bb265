//! A stamp in 32 bits. It travels in the upper half of the remote completion data of a message, if the
//! program does not use that half.
//!
//! ```text
//! 31       30     29      28       27 ......... 0
//! stamped  added  spared  at once  time
//! ```
//!
//! The unit of the time is a grain of at least [`GRAIN_NS`]. The time wraps around after some seconds. The
//! receiver resolves this, because it knows the latest time that the stamp can mean. A message that the
//! program does not read for longer than that appears younger than it is. It waits at most for its latency. If other
//! messages of the host depart later, a message that waited for earlier ones and is read late may wait as long as those.

use super::timing::Departed;

/// The shortest grain, in nanoseconds. A stamp is wrong by about half a grain.
pub const GRAIN_NS: f64 = 10.0;

const STAMPED: u32 = 1 << 31;
const ADDED: u32 = 1 << 30;
const SPARED: u32 = 1 << 29;
const AT_ONCE: u32 = 1 << 28;
const TIME_BITS: u32 = 28;
/// A message that departed at once may seem to lie ahead by the range of stamps over this.
const PAST: u64 = 64;
const TIME: u32 = (1 << TIME_BITS) - 1;

/// The stamp of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The departure, in ticks.
    pub departed: Departed,
    /// Whether the sending program gave no completion data. The receiving program then must not see any.
    pub added: bool,
    /// Whether the dials do not apply to messages between these two processes.
    pub spared: bool,
}

/// The unit of the time in a stamp, a power of two of ticks. Both sides must use the same grain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grain {
    shift: u32,
}

impl Grain {
    /// Returns the grain for ticks of `tick_ns` nanoseconds.
    pub fn of(tick_ns: f64) -> Self {
        let mut shift = 0;
        while shift < 8 && tick_ns * f64::from(1u32 << shift) < GRAIN_NS {
            shift += 1;
        }
        Self { shift }
    }

    /// Returns the grain of another process, from its shift.
    pub const fn of_shift(shift: u32) -> Self {
        Self { shift: if shift < 8 { shift } else { 8 } }
    }

    /// Returns the binary logarithm of the grain, in ticks.
    pub const fn shift(self) -> u32 {
        self.shift
    }

    /// Returns the time after which stamps wrap around, in ticks.
    pub const fn range(self) -> u64 {
        1 << (TIME_BITS + self.shift)
    }

    /// Packs a stamp into 32 bits.
    pub fn pack(self, stamp: Stamp) -> u32 {
        // Rounded down, so that a message that departs now does not seem to depart later.
        let time = (stamp.departed.at >> self.shift) as u32 & TIME;
        let flag = |flag: u32, is_set: bool| if is_set { flag } else { 0 };
        STAMPED
            | flag(ADDED, stamp.added)
            | flag(SPARED, stamp.spared)
            | flag(AT_ONCE, stamp.departed.at_once)
            | time
    }

    /// Returns the latest departure of a message that is seen at `now`, did not wait for earlier ones, and whose bytes
    /// take `delay`. It allows for errors of clocks and of the time that the sending takes.
    pub const fn latest_at_once(self, now: u64, delay: u64) -> u64 {
        now.saturating_add(delay).saturating_add(self.range() / PAST)
    }

    /// Unpacks a stamp. Returns `None` if `packed` is not a stamp. `latest` is the latest time that the stamp can mean, in
    /// ticks, and `latest_at_once` that of a message that did not wait for earlier ones. `latest` may be later, because
    /// of other messages.
    pub fn unpack(self, packed: u32, latest: u64, latest_at_once: u64) -> Option<Stamp> {
        if packed & STAMPED == 0 {
            return None;
        }
        let latest = latest >> self.shift;
        let before = (latest as u32).wrapping_sub(packed) & TIME;
        let at = latest.saturating_sub(u64::from(before)) << self.shift;
        // The middle of the grain, unless that may be later than `latest`.
        let at = at + if self.shift == 0 || before == 0 { 0 } else { 1 << (self.shift - 1) };
        let at_once = packed & AT_ONCE != 0;
        let is_past = at_once && at > latest_at_once;
        let at = if is_past { at.saturating_sub(self.range()) } else { at };
        Some(Stamp {
            departed: Departed { at, at_once },
            added: packed & ADDED != 0,
            spared: packed & SPARED != 0,
        })
    }
}

/// Reports whether these 32 bits look like a stamp. If the program's own data do, they cannot be
/// distinguished from one.
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
            assert_eq!(Grain::of(0.4).unpack(data, 0, 0), None);
        }
    }

    /// Another process has announced a departure ahead, and the message is read late.
    #[test]
    fn what_departed_at_once_lies_in_the_past() {
        let grain = Grain::of(1.0);
        let at = 1 << 40;
        let range = grain.range();
        for (late, ahead) in [(range / 4 * 3, range / 3), (range / 10 * 9, range / 2)] {
            let of = |at_once| Stamp { departed: Departed { at, at_once }, added: false, spared: false };
            let seen = |at_once| {
                let latest_at_once = grain.latest_at_once(at + late, 0);
                let stamp = grain.unpack(grain.pack(of(at_once)), at + late + ahead, latest_at_once).unwrap();
                stamp.departed.at
            };
            assert!(seen(true).abs_diff(at) < 100, "{}", seen(true));
            assert!(seen(false) > at + late, "it may also depart later");
        }
    }

    /// The bytes of a large message over a slow link take far longer than errors of clocks.
    #[test]
    fn the_last_byte_of_a_message_may_depart_long_after_it_is_seen() {
        let grain = Grain::of(1.0);
        for delay in [1 << 20, grain.range() / 20, grain.range() / 2] {
            let (now, at) = (1 << 40, (1 << 40) + delay);
            let stamp = Stamp { departed: Departed { at, at_once: true }, added: false, spared: false };
            let latest_at_once = grain.latest_at_once(now + 100, delay);
            let seen = grain.unpack(grain.pack(stamp), at + 1000, latest_at_once).unwrap();
            assert!(seen.departed.at.abs_diff(at) < 100, "{delay}: {}", seen.departed.at);
        }
    }

    proptest! {
        #[test]
        fn what_is_packed_is_unpacked(
            at in 1u64 << 34..1 << 50, later in 0..1u64 << 32, added: bool, spared: bool, at_once: bool,
        ) {
            let grain = Grain::of(0.4);
            let departed = Departed { at, at_once };
            let stamp = grain.unpack(grain.pack(Stamp { departed, added, spared }), at + later, grain.latest_at_once(at + later, 0)).unwrap();
            prop_assert!(stamp.departed.at.abs_diff(at) <= 32 && stamp.departed.at <= at + later);
            prop_assert_eq!((stamp.added, stamp.spared, stamp.departed.at_once), (added, spared, at_once));
        }

        /// Holds for any time that the message was not read.
        #[test]
        fn no_stamp_means_a_time_to_come(at in 0..1u64 << 50, later in 0..1u64 << 50) {
            let grain = Grain::of(0.4);
            let departed = Departed { at, at_once: true };
            let stamp = grain.unpack(grain.pack(Stamp { departed, added: false, spared: false }), at + later, grain.latest_at_once(at + later, 0)).unwrap();
            prop_assert!(stamp.departed.at <= at + later);
        }
    }
}
