//! Values of a simulated interface as `--truth` spells them.

use crate::quantity::{self, NoTime};
use alloc::string::{String, ToString};
use core::fmt;

/// Picoseconds, the unit of virtual time.
pub type Ps = u64;

/// The longest duration, 10 s. It keeps sums of virtual time far from overflow.
const MAX_PS: f64 = 1e13;

/// The longest time for a byte, 1 ms, and the largest size, 1 GiB, for the same reason.
const MAX_PS_PER_BYTE: f64 = 1e9;

const MAX_BYTES: usize = 1 << 30;

/// The reason why a `--truth` is unusable, with a correct spelling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TruthError(String);

impl fmt::Display for TruthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for TruthError {}

pub(super) fn error(text: fmt::Arguments<'_>) -> TruthError {
    TruthError(text.to_string())
}

/// Rounds to the nearest integer. `f64::round` needs std; the value is not negative.
pub(super) fn rounded(ps: f64) -> Ps {
    (ps + 0.5) as Ps
}

pub(super) fn duration(name: &str, text: &str) -> Result<Ps, TruthError> {
    let ps = picoseconds(name, text, "")?;
    if !(0.0..=MAX_PS).contains(&ps) {
        return Err(error(format_args!("{name}={text} is out of range: 0 to 10s")));
    }
    Ok(rounded(ps))
}

pub(super) fn per_byte(name: &str, text: &str) -> Result<f64, TruthError> {
    let time = text
        .strip_suffix("/B")
        .ok_or_else(|| error(format_args!("{name}={text} is not a time for a byte, as in {name}=0.5ns/B")))?;
    let ps = picoseconds(name, time, "/B")?;
    if !(0.0..=MAX_PS_PER_BYTE).contains(&ps) {
        return Err(error(format_args!("{name}={text} is out of range: 0 to 1ms/B")));
    }
    Ok(ps)
}

/// Parses a time. `after` is the text after its unit, for the error message, such as `/B`.
fn picoseconds(name: &str, text: &str, after: &str) -> Result<f64, TruthError> {
    quantity::picoseconds(text).map_err(|why| match why {
        NoTime::Unit => {
            error(format_args!("{name}={text}{after} needs a unit: ns, us, ms or s, as in {name}=1us{after}"))
        }
        NoTime::Number => {
            error(format_args!("{name}={text}{after} is not a number with a unit, as in {name}=1us{after}"))
        }
    })
}

pub(super) fn bytes(name: &str, text: &str) -> Result<usize, TruthError> {
    let at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let unit = match unit {
        "" | "B" => Some(1),
        "KiB" => Some(1 << 10),
        "MiB" => Some(1 << 20),
        _ => None,
    };
    let count =
        number.trim().parse().ok().zip(unit).and_then(|(n, unit): (usize, usize)| n.checked_mul(unit));
    count.filter(|count| (2..=MAX_BYTES).contains(count)).ok_or_else(|| {
        error(format_args!("{name}={text} is not a size from 2B to 1024MiB, as in {name}=8KiB"))
    })
}

pub(super) fn switch(name: &str, text: &str) -> Result<bool, TruthError> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(error(format_args!("{name}={text} is neither {name}=on nor {name}=off"))),
    }
}

pub(super) fn share_of_time(name: &str, text: &str) -> Result<f64, TruthError> {
    text.parse()
        .ok()
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| error(format_args!("{name}={text} is not a share from 0 to 1")))
}

pub(super) fn count(name: &str, text: &str) -> Result<usize, TruthError> {
    text.parse()
        .ok()
        .filter(|n| (1..=1 << 20).contains(n))
        .ok_or_else(|| error(format_args!("{name}={text} is not a whole number from 1 to 1048576")))
}
