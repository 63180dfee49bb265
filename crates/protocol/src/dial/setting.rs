//! The syntax of a dial setting: `+10us` adds to the link's own value, `=50us` sets the link to a value.
//! `+1ns/B` and `=1GB/s` are settings of the gap per byte.

use super::table::Dial;
use crate::quantity::{self, NoTime};
use alloc::string::String;
use core::fmt;

/// A dial setting, in nanoseconds, or in nanoseconds per byte.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Setting {
    /// Adds this amount to the link's own value.
    Add(f64),
    /// Sets the link to this value.
    Set(f64),
}

/// The reason why a setting is not valid. Its text says what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingError(String);

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for SettingError {}

impl SettingError {
    pub(super) const fn new(text: String) -> Self {
        Self(text)
    }

    pub(super) fn twice(dial: Dial) -> Self {
        Self(alloc::format!("{dial} is turned twice"))
    }
}

/// Returns the dial of that name.
pub(super) fn named(name: &str) -> Result<Dial, SettingError> {
    Dial::ALL.into_iter().find(|dial| dial.name() == name).ok_or_else(|| {
        let names = Dial::ALL.map(Dial::name).join(", ");
        SettingError(alloc::format!("'{name}' is no dial: use {names}"))
    })
}

/// Returns examples of a setting, for error messages.
const fn example(dial: Dial) -> &'static str {
    if dial.is_per_byte() { "+1ns/B, =0.5ns/B or =1GB/s" } else { "+10us or =50us" }
}

/// Returns the largest setting: 1 s, or 1 µs per byte, in nanoseconds. With more, a run would take too long.
pub(super) const fn most(dial: Dial) -> f64 {
    if dial.is_per_byte() { 1e3 } else { 1e9 }
}

impl Setting {
    /// Parses the setting of a dial.
    ///
    /// # Errors
    /// Returns an error if the sign, the unit or the number is missing, or if the value is out of range.
    /// Returns an error for a bandwidth, unless it is set as the gap per byte.
    pub fn parse(dial: Dial, text: &str) -> Result<Self, SettingError> {
        let text = text.trim();
        let error = |what: &str| {
            // A sign follows the name of its dial without a space.
            let space = if text.is_empty() || text.starts_with(['+', '=']) { "" } else { " " };
            let text = alloc::format!("{dial}{space}{text} {what}, as in {}", example(dial));
            Err(SettingError(text))
        };
        let (sign, amount) = match (text.strip_prefix('+'), text.strip_prefix('=')) {
            (Some(amount), _) => (Self::Add as fn(f64) -> Self, amount),
            (_, Some(amount)) => (Self::Set as fn(f64) -> Self, amount),
            _ => return error("neither adds (+) nor sets (=)"),
        };
        let ns = match amount.strip_suffix("B/s") {
            Some(_) if !dial.is_per_byte() => return error("is a bandwidth, not a time"),
            // Bandwidths do not add up: the inverse of a sum is not the sum of the inverses.
            Some(_) if text.starts_with('+') => return error("adds a bandwidth: set one"),
            Some(_) => quantity::bytes_per_second(amount).map(|bytes_per_s| 1e9 / bytes_per_s),
            None => time_ns(dial, amount),
        };
        let ns = match ns {
            Ok(ns) => ns,
            Err(NoTime::Unit) => return error("has no unit that is known"),
            Err(NoTime::Number) => return error("is not a number with a unit"),
        };
        if !(0.0..=most(dial)).contains(&ns) {
            let longest = if dial.is_per_byte() { "1us/B" } else { "1s" };
            return error(&alloc::format!("is out of range, which is 0 to {longest}"));
        }
        Ok(sign(ns))
    }

    /// Returns the amount that is added, or the value that is set.
    pub const fn amount(self) -> f64 {
        match self {
            Self::Add(amount) | Self::Set(amount) => amount,
        }
    }

    /// Reports whether the setting leaves the link unchanged.
    pub fn is_nothing(self) -> bool {
        self == Self::Add(0.0)
    }
}

fn time_ns(dial: Dial, text: &str) -> Result<f64, NoTime> {
    let time = if dial.is_per_byte() { text.strip_suffix("/B").ok_or(NoTime::Unit)? } else { text };
    quantity::nanoseconds(time)
}

/// A dial setting, written in the form that is parsed.
pub struct Spelled(pub Dial, pub Setting);

impl fmt::Display for Spelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(dial, setting) = self;
        let (sign, amount) = match setting {
            Setting::Add(amount) => ('+', amount),
            Setting::Set(amount) => ('=', amount),
        };
        match dial.is_per_byte() {
            true => write!(f, "{sign}{amount}{}", dial.unit_ns()),
            false => write!(f, "{sign}{}", Time(*amount)),
        }
    }
}

/// Nanoseconds, written so that parsing returns the same bits.
pub(super) struct Time(pub(super) f64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(ns) = *self;
        let us = ns / 1e3;
        if ns >= 1e3 && us * 1e3 == ns { write!(f, "{us}us") } else { write!(f, "{ns}ns") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::ToString;
    use proptest::prelude::*;

    #[test]
    fn the_spelling_of_the_manual_parses() {
        let read = |dial, text| Setting::parse(dial, text).unwrap();
        assert_eq!(read(Dial::Latency, "+10us"), Setting::Add(10_000.0));
        assert_eq!(read(Dial::SendGap, "=0.5ms"), Setting::Set(500_000.0));
        assert_eq!(read(Dial::RecvOverhead, "+0ns"), Setting::Add(0.0));
        assert!(read(Dial::RecvOverhead, "+0ns").is_nothing());
        assert_eq!(read(Dial::GapPerByte, "+1ns/B"), Setting::Add(1.0));
        assert_eq!(read(Dial::GapPerByte, "=1GB/s"), Setting::Set(1.0));
        assert_eq!(read(Dial::GapPerByte, "=100MB/s"), Setting::Set(10.0));
        assert_eq!(read(Dial::GapPerByte, "=1MiB/s"), Setting::Set(1e9 / 1048576.0));
    }

    #[test]
    fn each_mistake_is_named() {
        for (dial, text, names) in [
            (Dial::Latency, "10us", "latency 10us neither adds (+)"),
            (Dial::Latency, "", "latency neither adds (+)"),
            (Dial::Latency, "=nan", "latency=nan has no unit"),
            (Dial::Latency, " +nan ", "latency+nan has no unit"),
            (Dial::Latency, "+10", "no unit"),
            (Dial::Latency, "+us", "not a number"),
            (Dial::Latency, "+-1us", "out of range"),
            (Dial::Latency, "=2s", "0 to 1s, as in"),
            (Dial::Latency, "+NaNus", "no unit"),
            (Dial::Latency, "=1GB/s", "is a bandwidth"),
            (Dial::GapPerByte, "+1ns", "no unit"),
            (Dial::GapPerByte, "+1GB/s", "adds a bandwidth"),
            (Dial::GapPerByte, "=0GB/s", "out of range"),
            (Dial::GapPerByte, "=-1GB/s", "out of range"),
            (Dial::GapPerByte, "=1XB/s", "no unit"),
            (Dial::GapPerByte, "+2s/B", "out of range"),
        ] {
            let message = Setting::parse(dial, text).unwrap_err().to_string();
            assert!(message.contains(names) && message.contains(example(dial)), "{text}: {message}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(at in 0..Dial::ALL.len(), text in "[+=]?[a-zA-Z0-9.,µ/-]{0,20}") {
            let _ = Setting::parse(Dial::ALL[at], &text);
        }

        #[test]
        fn what_is_written_is_read_again(at in 0..Dial::ALL.len(), share in 0.0..1.0f64, adds: bool) {
            let dial = Dial::ALL[at];
            let amount = share * most(dial);
            let setting = if adds { Setting::Add(amount) } else { Setting::Set(amount) };
            prop_assert_eq!(Setting::parse(dial, &format!("{}", Spelled(dial, setting))), Ok(setting));
        }
    }
}
