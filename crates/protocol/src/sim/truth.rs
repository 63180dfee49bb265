//! What a simulated interface is told to be, and how it is spelled on the command
//! line: `o_s=1us,o_r=2us,g=5us,L=7us[,capacity=64][,window=65536][,o_poll=0ns][,noise=0.05]`.

use alloc::string::{String, ToString};
use core::fmt;

/// Picoseconds, the unit of virtual time.
pub type Ps = u64;

/// The parameters of a simulated interface.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Truth {
    /// Processor time to issue a message.
    pub o_s_ps: Ps,
    /// Processor time to receive a message.
    pub o_r_ps: Ps,
    /// Processor time of a poll that finds nothing.
    pub o_poll_ps: Ps,
    /// Time a message occupies the send stage, and the receive stage.
    pub g_ps: Ps,
    /// Time from the send stage to the receive stage.
    pub l_ps: Ps,
    /// Messages that wait in front of the send stage before the issuer has to.
    pub capacity: usize,
    /// Requests that may be without a reply.
    pub window: usize,
    /// Standard deviation of every duration above, as a share of it.
    pub noise: f64,
}

/// Default length of the queue in front of the send stage.
pub const DEFAULT_CAPACITY: usize = 64;
/// Default limit of requests without a reply: far beyond what the pipeline holds.
pub const DEFAULT_WINDOW: usize = 1 << 16;
/// The noise beyond which a duration could come out negative.
pub const MAX_NOISE: f64 = 0.25;
/// The longest duration, 10 s: keeps sums of virtual time far from overflow.
const MAX_PS: f64 = 1e13;

/// Why a `--truth` cannot be used; says what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TruthError(String);

impl fmt::Display for TruthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for TruthError {}

fn error(text: fmt::Arguments<'_>) -> TruthError {
    TruthError(text.to_string())
}

impl core::str::FromStr for Truth {
    type Err = TruthError;

    fn from_str(text: &str) -> Result<Self, TruthError> {
        let (mut o_s, mut o_r, mut g, mut l, mut o_poll) = (None, None, None, None, None);
        let (mut capacity, mut window, mut noise) = (None, None, None);
        for part in text.split(',') {
            let (name, value) = part
                .split_once('=')
                .ok_or_else(|| error(format_args!("'{part}' is not NAME=VALUE, as in o_s=1us")))?;
            let (name, value) = (name.trim(), value.trim());
            let fresh = match name {
                "o_s" => o_s.replace(duration(name, value)?).is_none(),
                "o_r" => o_r.replace(duration(name, value)?).is_none(),
                "o_poll" => o_poll.replace(duration(name, value)?).is_none(),
                "g" => g.replace(duration(name, value)?).is_none(),
                "L" => l.replace(duration(name, value)?).is_none(),
                "capacity" => capacity.replace(count(name, value)?).is_none(),
                "window" => window.replace(count(name, value)?).is_none(),
                "noise" => noise.replace(share(value)?).is_none(),
                _ => {
                    return Err(error(format_args!(
                        "'{name}' is not a parameter: use o_s, o_r, g, L, o_poll, capacity, window or noise"
                    )));
                }
            };
            if !fresh {
                return Err(error(format_args!("'{name}' is given twice")));
            }
        }
        let need = |name: &str, value: Option<Ps>| {
            value.ok_or_else(|| error(format_args!("'{name}' is missing: o_s, o_r, g and L must be given")))
        };
        let truth = Self {
            o_s_ps: need("o_s", o_s)?,
            o_r_ps: need("o_r", o_r)?,
            g_ps: need("g", g)?,
            l_ps: need("L", l)?,
            o_poll_ps: o_poll.unwrap_or(0),
            capacity: capacity.unwrap_or(DEFAULT_CAPACITY),
            window: window.unwrap_or(DEFAULT_WINDOW),
            noise: noise.unwrap_or(0.0),
        };
        if truth.o_s_ps == 0 || truth.o_r_ps == 0 {
            return Err(error(format_args!("o_s and o_r must be above 0: a message takes processor time")));
        }
        Ok(truth)
    }
}

fn duration(name: &str, text: &str) -> Result<Ps, TruthError> {
    let at = text.find(|c: char| c.is_ascii_alphabetic() || c == 'µ').unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let ps_per_unit = match unit {
        "ns" => 1e3,
        "us" | "µs" => 1e6,
        "ms" => 1e9,
        "s" => 1e12,
        _ => {
            return Err(error(format_args!("{name}={text} needs a unit: ns, us, ms or s, as in {name}=1us")));
        }
    };
    let value: f64 = number
        .trim()
        .parse()
        .map_err(|_| error(format_args!("{name}={text} is not a number with a unit, as in {name}=1us")))?;
    let ps = value * ps_per_unit;
    if !(0.0..=MAX_PS).contains(&ps) {
        return Err(error(format_args!("{name}={text} is out of range: 0 to 10s")));
    }
    // `f64::round` needs std; the value is not negative.
    Ok((ps + 0.5) as Ps)
}

fn count(name: &str, text: &str) -> Result<usize, TruthError> {
    text.parse()
        .ok()
        .filter(|n| (1..=1 << 20).contains(n))
        .ok_or_else(|| error(format_args!("{name}={text} is not a whole number from 1 to 1048576")))
}

fn share(text: &str) -> Result<f64, TruthError> {
    text.parse()
        .ok()
        .filter(|x| (0.0..=MAX_NOISE).contains(x))
        .ok_or_else(|| error(format_args!("noise={text} is not a share from 0 to {MAX_NOISE}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use proptest::prelude::*;

    #[test]
    fn the_spelling_of_the_manual_parses() {
        let truth: Truth = "o_s=1us,o_r=2us,g=5us,L=7us,capacity=8,noise=0.05".parse().unwrap();
        assert_eq!(
            (truth.o_s_ps, truth.o_r_ps, truth.g_ps, truth.l_ps),
            (1_000_000, 2_000_000, 5_000_000, 7_000_000)
        );
        assert_eq!((truth.capacity, truth.window, truth.noise), (8, DEFAULT_WINDOW, 0.05));
        assert_eq!("o_s=0.5us,o_r=1.5µs,g=0ns,L=0s".parse::<Truth>().unwrap().o_s_ps, 500_000);
    }

    #[test]
    fn each_mistake_is_named() {
        for (text, names) in [
            ("", "NAME=VALUE"),
            ("o_s", "NAME=VALUE"),
            ("o_s=1", "unit"),
            ("o_s=1parsec", "unit"),
            ("o_s=us", "not a number"),
            ("o_s=-1us", "out of range"),
            ("o_s=NaNus", "unit"),
            ("o_s=1us,o_s=2us", "twice"),
            ("o_s=1us,o_r=1us,g=1us", "'L' is missing"),
            ("o_s=0ns,o_r=1us,g=1us,L=1us", "above 0"),
            ("os=1us", "not a parameter"),
            ("capacity=0", "whole number"),
            ("noise=0.5", "share"),
        ] {
            let message = format!("{}", text.parse::<Truth>().unwrap_err());
            assert!(message.contains(names), "{text}: {message}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[a-zA-Z_0-9=,.µ+-]{0,40}") {
            let _ = text.parse::<Truth>();
        }
    }
}
