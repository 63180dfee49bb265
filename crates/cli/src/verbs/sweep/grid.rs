//! The values of a swept dial: `+0:100:10us` gives start, end and step, `=1,2,5us` lists the values.

use crate::program::dials::DialValue;
use netdyno_protocol::dial::setting::Setting;
use netdyno_protocol::dial::table::Dial;
use std::fmt;

/// Maximum number of values of a dial.
const VALUES_AT_MOST: usize = 1000;

/// A dial and its values in a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// The dial.
    pub dial: Dial,
    /// Whether the values are added to the link's own parameter; otherwise they set it.
    pub adds: bool,
    /// The values in ascending order, in nanoseconds or nanoseconds per byte. The value 0, the unmodified
    /// link, is not included.
    pub values: Vec<f64>,
}

impl DialValue for Grid {
    const VERB: &'static str = "Sweep";

    fn describe(is_per_byte: bool) -> [&'static str; 3] {
        match is_per_byte {
            true => ["TIMES/B", "=1,2ns/B", "Or =1,2GB/s. Each byte of a message but the first."],
            false => ["TIMES", "+0:100:10us", "From, to and step, or a list as in =10,20,50us."],
        }
    }

    fn read(dial: Dial, text: &str) -> Result<Self, String> {
        let example = match dial.is_per_byte() {
            true => "as in =0.5,1,2ns/B or +0:2:0.5ns/B",
            false => "as in +0:100:10us or =10,20,50us",
        };
        let text = text.trim();
        let sign = text.get(..1).filter(|sign| ["+", "="].contains(sign));
        let sign = sign.ok_or_else(|| format!("'{text}' neither adds (+) nor sets (=), {example}"))?;
        let is_number = |c: char| c.is_ascii_digit() || ".,:".contains(c);
        let at = text[1..].find(|c| !is_number(c)).map_or(text.len(), |at| at + 1);
        let (numbers, unit) = (&text[1..at], &text[at..]);
        let number =
            |text: &str| text.parse::<f64>().map_err(|_| format!("'{text}' is not a number, {example}"));
        let amounts = match numbers.split(':').collect::<Vec<_>>()[..] {
            [from, to, step] => steps(number(from)?, number(to)?, number(step)?)
                .map_err(|why| format!("'{numbers}' {why}, {example}"))?,
            [list] => list.split(',').map(number).collect::<Result<_, _>>()?,
            _ => return Err(format!("'{numbers}' is not from:to:step, {example}")),
        };
        let mut values = Vec::new();
        for amount in amounts {
            let setting = Setting::parse(dial, &format!("{sign}{amount}{unit}"));
            match setting.map_err(|error| error.to_string())? {
                Setting::Add(value) | Setting::Set(value) => values.push(value),
            }
        }
        values.sort_by(f64::total_cmp);
        values.dedup();
        values.retain(|&value| value > 0.0);
        if values.is_empty() || values.len() > VALUES_AT_MOST {
            return Err(format!("'{text}' has {} values beyond 0, {example}", values.len()));
        }
        Ok(Self { dial, adds: sign == "+", values })
    }
}

impl Grid {
    /// Returns the setting of the dial for a value.
    pub fn setting(&self, value: f64) -> Setting {
        if self.adds { Setting::Add(value) } else { Setting::Set(value) }
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{:?}", self.dial, if self.adds { "+" } else { "=" }, self.values)
    }
}

/// Returns the values from start to end, including the end if a step reaches it. Returns the reason if there
/// are none.
fn steps(from: f64, to: f64, step: f64) -> Result<Vec<f64>, String> {
    let count = ((to - from) / step + 1e-9).floor();
    if !(step > 0.0 && count >= 0.0) {
        return Err("does not rise in steps".into());
    }
    if count >= VALUES_AT_MOST as f64 {
        return Err(format!("has more than {VALUES_AT_MOST} values: use larger steps"));
    }
    Ok((0..=count as usize).map(|nth| from + nth as f64 * step).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_lists_are_read() {
        let read = |dial, text| Grid::read(dial, text).unwrap();
        let grid = read(Dial::Latency, "+0:100:20us");
        assert_eq!((grid.adds, &grid.values[..]), (true, &[20e3, 40e3, 60e3, 80e3, 100e3][..]));
        assert_eq!(read(Dial::SendGap, "=5,1,20us").values, [1e3, 5e3, 20e3]);
        assert_eq!(read(Dial::GapPerByte, "=0:1:0.5ns/B").values, [0.5, 1.0]);
        assert_eq!(read(Dial::GapPerByte, "=1,2GB/s").values, [0.5, 1.0]);
        assert_eq!(read(Dial::Latency, "+10us").values, [10e3]);
    }

    #[test]
    fn mistakes_are_named() {
        for (text, names) in [
            ("0:100:10us", "neither adds"),
            ("+0:100us", "from:to:step"),
            ("+0:100:0us", "does not rise"),
            ("+100:0:10us", "does not rise"),
            ("+0:1000000:1us", "more than 1000 values: use larger steps"),
            ("+0:100:10", "no unit"),
            ("+1,x,3us", "not a number"),
            ("+0us", "0 values beyond 0"),
            ("+,us", "not a number"),
            ("", "neither adds"),
        ] {
            let error = Grid::read(Dial::Latency, text).unwrap_err();
            assert!(error.contains(names), "{text}: {error}");
        }
    }
}
