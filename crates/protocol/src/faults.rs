//! The fault injector for the datagrams of one sender: loss, duplication, reordering, corruption.
//!
//! It is seeded and reads no clock. So the simulator and the wrapper around a real socket inject the same
//! faults. On the command line:
//! `loss=0.01,dup=0.01,reorder=0.02,corrupt=0.001[,burst=0.001]`.

use crate::random::Random;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

/// The probability of each fault, from 0 to 1, for each datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
    /// The datagram is lost.
    pub loss: f64,
    /// The datagram is delivered twice.
    pub duplicate: f64,
    /// The datagram is delayed, so that later ones overtake it.
    pub reorder: f64,
    /// Some bits of the datagram are flipped, or it is truncated.
    pub corrupt: f64,
    /// A loss burst begins, in which most datagrams are lost.
    pub burst: f64,
}

/// The longest loss burst.
const BURST_AT_MOST_NS: u64 = 5_000_000;
/// The probability of loss during a burst.
const BURST_LOSS: f64 = 0.9;
/// The share of corrupted datagrams that are truncated.
const CUT: f64 = 0.2;

impl Faults {
    /// No fault happens.
    pub const NONE: Self = Self { loss: 0.0, duplicate: 0.0, reorder: 0.0, corrupt: 0.0, burst: 0.0 };
}

/// The reason why the value of `--faults` is not valid. Its text says what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultsError(String);

impl fmt::Display for FaultsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for FaultsError {}

fn error(text: fmt::Arguments<'_>) -> FaultsError {
    FaultsError(text.to_string())
}

impl core::str::FromStr for Faults {
    type Err = FaultsError;

    fn from_str(text: &str) -> Result<Self, FaultsError> {
        let mut faults = Self::NONE;
        let mut given = Vec::new();
        for part in text.split(',') {
            let (name, value) = part
                .split_once('=')
                .ok_or_else(|| error(format_args!("'{part}' is not NAME=PROBABILITY, as in loss=0.01")))?;
            let (name, value) = (name.trim(), value.trim());
            let place = match name {
                "loss" => &mut faults.loss,
                "dup" => &mut faults.duplicate,
                "reorder" => &mut faults.reorder,
                "corrupt" => &mut faults.corrupt,
                "burst" => &mut faults.burst,
                _ => {
                    return Err(error(format_args!(
                        "'{name}' is not a fault: use loss, dup, reorder, corrupt or burst"
                    )));
                }
            };
            *place = value
                .parse()
                .ok()
                .filter(|p| (0.0..=1.0).contains(p))
                .ok_or_else(|| error(format_args!("{name}={value} is not a probability from 0 to 1")))?;
            if given.contains(&name) {
                return Err(error(format_args!("'{name}' is given twice")));
            }
            given.push(name);
        }
        Ok(faults)
    }
}

impl fmt::Display for Faults {
    /// Writes the faults in the form that is parsed, without those of probability 0.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [
            ("loss", self.loss),
            ("dup", self.duplicate),
            ("reorder", self.reorder),
            ("corrupt", self.corrupt),
            ("burst", self.burst),
        ];
        let mut happening = all.iter().filter(|(_, p)| *p > 0.0);
        match happening.next() {
            Some((name, p)) => write!(f, "{name}={p}")?,
            None => f.write_str("loss=0")?,
        }
        happening.try_for_each(|(name, p)| write!(f, ",{name}={p}"))
    }
}

/// The fault injector of one sender. It draws the faults from a seed.
#[derive(Clone, Debug)]
pub struct FaultInjector {
    random: Random,
    faults: Faults,
    /// The longest delay of a reordered datagram.
    hold_at_most_ns: u64,
    /// The end of the current loss burst.
    bad_until_ns: u64,
}

impl FaultInjector {
    /// Creates a fault injector that draws from `seed` and delays a datagram by less than `hold_at_most_ns`.
    pub fn new(faults: Faults, hold_at_most_ns: u64, seed: u64) -> Self {
        Self { random: Random::new(seed), faults, hold_at_most_ns, bad_until_ns: 0 }
    }

    /// Injects faults into a datagram. Calls `pass` for each copy that is delivered: none, one or two. The
    /// second argument of `pass` is the delay of the copy, in nanoseconds.
    pub fn inject(&mut self, datagram: &[u8], now_ns: u64, mut pass: impl FnMut(&[u8], u64)) {
        if self.is_lost(now_ns) {
            return;
        }
        for _ in 0..=u32::from(self.random.chance(self.faults.duplicate)) {
            let held_ns = if self.random.chance(self.faults.reorder) {
                self.random.below(self.hold_at_most_ns)
            } else {
                0
            };
            if self.random.chance(self.faults.corrupt) {
                pass(&self.damaged(datagram), held_ns);
            } else {
                pass(datagram, held_ns);
            }
        }
    }

    fn is_lost(&mut self, now_ns: u64) -> bool {
        if self.random.chance(self.faults.burst) {
            self.bad_until_ns = now_ns + self.random.below(BURST_AT_MOST_NS);
        }
        let is_bad = now_ns < self.bad_until_ns;
        self.random.chance(if is_bad { BURST_LOSS } else { self.faults.loss })
    }

    fn damaged(&mut self, datagram: &[u8]) -> Vec<u8> {
        let mut bytes = datagram.to_vec();
        if self.random.chance(CUT) {
            bytes.truncate(self.random.below(bytes.len() as u64) as usize);
            return bytes;
        }
        for _ in 0..=self.random.below(4) {
            let at = self.random.below(bytes.len() as u64) as usize;
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << self.random.below(8);
            }
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use proptest::prelude::*;

    #[test]
    fn the_spelling_of_the_manual_parses() {
        let faults: Faults = "loss=0.01,dup=0.01,reorder=0.02,corrupt=0.001".parse().unwrap();
        let expected = Faults { loss: 0.01, duplicate: 0.01, reorder: 0.02, corrupt: 0.001, ..Faults::NONE };
        assert_eq!(faults, expected);
        assert_eq!(format!("{faults}"), "loss=0.01,dup=0.01,reorder=0.02,corrupt=0.001");
        assert_eq!("loss=0".parse(), Ok(Faults::NONE));
    }

    #[test]
    fn each_mistake_is_named() {
        for (text, names) in [
            ("", "NAME=PROBABILITY"),
            ("loss", "NAME=PROBABILITY"),
            ("loss=1%", "from 0 to 1"),
            ("loss=1.5", "from 0 to 1"),
            ("loss=-0.1", "from 0 to 1"),
            ("loss=NaN", "from 0 to 1"),
            ("lost=0.1", "not a fault"),
            ("loss=0.1,loss=0.1", "twice"),
            ("loss=0.1,", "NAME=PROBABILITY"),
        ] {
            let message = format!("{}", text.parse::<Faults>().unwrap_err());
            assert!(message.contains(names), "{text}: {message}");
        }
    }

    proptest! {
        #[test]
        fn whatever_parses_is_shown_as_it_is_read(
            text in "(loss|dup|reorder|corrupt|burst|x)=[0-9.e-]{1,5}(,(loss|dup|burst)=[0-9.e]{1,4}){0,2}",
        ) {
            if let Ok(faults) = text.parse::<Faults>() {
                prop_assert_eq!(format!("{faults}").parse(), Ok(faults));
            }
        }
    }

    /// Each fault occurs with its probability, and no other fault occurs with it.
    #[test]
    fn faults_come_as_often_as_asked() {
        const COUNT: usize = 20_000;
        let run = |faults: Faults| {
            let mut injector = FaultInjector::new(faults, 1000, 1);
            let (mut passed, mut held, mut damaged) = (0, 0, 0);
            for n in 0..COUNT as u64 {
                let datagram = [7; 60];
                injector.inject(&datagram, n * 10_000, |bytes, held_ns| {
                    passed += 1;
                    held += usize::from(held_ns > 0);
                    damaged += usize::from(bytes != datagram);
                });
            }
            (passed, held, damaged)
        };
        let about = |count: usize, share: f64| (count as f64 / COUNT as f64 - share).abs() < 0.01;
        assert_eq!(run(Faults::NONE), (COUNT, 0, 0));
        let (passed, held, damaged) = run(Faults { loss: 0.1, ..Faults::NONE });
        assert!(about(passed, 0.9) && held + damaged == 0);
        let (passed, held, damaged) = run(Faults { duplicate: 0.1, ..Faults::NONE });
        assert!(about(passed, 1.1) && held + damaged == 0);
        let (passed, held, damaged) = run(Faults { reorder: 0.1, ..Faults::NONE });
        assert!(passed == COUNT && about(held, 0.1) && damaged == 0);
        let (passed, held, damaged) = run(Faults { corrupt: 0.1, ..Faults::NONE });
        assert!(passed == COUNT && held == 0 && about(damaged, 0.1));
        let (passed, ..) = run(Faults { burst: 0.01, ..Faults::NONE });
        assert!(passed < COUNT * 8 / 10, "bad times take most");
    }
}
