//! Random variation of a dial setting from message to message, and its syntax. `+10us±2us:lognormal` is a
//! mean, a standard deviation and the shape of the distribution. Without `±` on the keyboard, write
//! `+10us+-2us:lognormal`. Without a shape the distribution is normal.

use super::setting::{Setting, SettingError, Spelled, Time};
use super::table::Dial;
use crate::quantity::{self, NoTime};
use alloc::format;
use alloc::string::String;
use core::fmt;

/// The shape of a distribution about its mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// Uniform within √3 standard deviations of the mean.
    Uniform,
    /// Normal.
    #[default]
    Normal,
    /// The logarithm is normal: values are above 0 and have a long upper tail.
    Lognormal,
    /// Exponential, beginning one standard deviation below the mean.
    Exponential,
}

impl Shape {
    /// All shapes.
    pub const ALL: [Self; 4] = [Self::Uniform, Self::Normal, Self::Lognormal, Self::Exponential];

    /// Returns the name of the shape in the syntax.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Normal => "normal",
            Self::Lognormal => "lognormal",
            Self::Exponential => "exponential",
        }
    }

    /// Returns the largest standard deviation, in means. A wider exponential distribution would have values
    /// below 0. The other shapes would be distorted.
    const fn widest(self) -> f64 {
        match self {
            Self::Uniform | Self::Normal | Self::Exponential => 1.0,
            Self::Lognormal => 4.0,
        }
    }
}

/// The random variation of a dial setting from message to message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The standard deviation, in nanoseconds.
    pub deviation: f64,
    /// The shape of the distribution about the mean, which is the setting.
    pub shape: Shape,
}

impl fmt::Display for Spread {
    /// Writes the spread in the form that is parsed after a setting.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "±{}:{}", Time(self.deviation), self.shape.name())
    }
}

/// A dial setting, with its random variation if it has one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VaryingSetting {
    /// The setting; the mean if it varies.
    pub setting: Setting,
    /// The random variation from message to message, if any.
    pub spread: Option<Spread>,
}

impl VaryingSetting {
    /// Parses the setting of a dial with its spread, if there is one.
    ///
    /// # Errors
    /// Returns an error for each text that [`Setting::parse`] refuses. Returns an error if the deviation has
    /// no unit or number, is 0, or is too large for the mean. Returns an error if the shape is unknown, or if
    /// the dial cannot vary.
    pub fn parse(dial: Dial, text: &str) -> Result<Self, SettingError> {
        let text = text.trim();
        let Some((setting, spread)) = split(text) else {
            return Ok(Self { setting: Setting::parse(dial, text)?, spread: None });
        };
        let setting = Setting::parse(dial, setting.trim_end())?;
        let spread = read_spread(spread).and_then(|spread| check(dial, setting, spread).map(|()| spread));
        let spread = spread.map_err(|why| SettingError::new(format!("{dial} {text} {why}")))?;
        Ok(Self { setting, spread: Some(spread) })
    }
}

/// Splits a setting from the text after its ±, if there is one. A `+-` at the start is the sign of the
/// setting.
fn split(text: &str) -> Option<(&str, &str)> {
    let ascii = || text.match_indices("+-").find(|&(at, _)| at > 0);
    let (at, sign) = text.match_indices('±').next().or_else(ascii)?;
    Some((&text[..at], &text[at + sign.len()..]))
}

fn read_spread(text: &str) -> Result<Spread, String> {
    let (deviation, shape) = match text.split_once(':') {
        Some((deviation, name)) => (deviation, shape_named(name.trim())?),
        None => (text, Shape::default()),
    };
    let deviation = quantity::nanoseconds(deviation.trim()).map_err(|why| match why {
        NoTime::Unit => "has a deviation without a unit that is known, as in +10us±2us",
        NoTime::Number => "has a deviation that is no number with a unit, as in +10us±2us",
    })?;
    Ok(Spread { deviation, shape })
}

fn shape_named(name: &str) -> Result<Shape, String> {
    Shape::ALL.into_iter().find(|shape| shape.name() == name).ok_or_else(|| {
        let names = Shape::ALL.map(Shape::name).join(", ");
        format!("has no shape that is known: use {names}, as in +10us±2us:lognormal")
    })
}

/// Checks that a dial can vary like this. The error says why it cannot.
pub(super) fn check(dial: Dial, setting: Setting, spread: Spread) -> Result<(), String> {
    let Spread { deviation, shape } = spread;
    let mean = setting.amount();
    if dial.is_per_byte() {
        let alone = Spelled(dial, setting);
        return Err(format!("cannot vary: a receiver has to know what a byte took; use {alone} alone"));
    }
    // NaN is refused here as well.
    if !(deviation.is_finite() && deviation > 0.0) {
        return Err("has a deviation that is not above 0, as in +10us±2us".into());
    }
    let most = mean * shape.widest();
    if deviation > most {
        let (name, most) = (shape.name(), Time(most));
        return Err(format!("varies too much: a {name} deviation of this mean is {most} at most"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use proptest::prelude::*;

    #[test]
    fn a_spread_is_read_behind_its_setting() {
        let read = |text| VaryingSetting::parse(Dial::Latency, text).unwrap();
        let turned =
            |setting, deviation, shape| VaryingSetting { setting, spread: Some(Spread { deviation, shape }) };
        assert_eq!(read("+10us±2us:lognormal"), turned(Setting::Add(10e3), 2e3, Shape::Lognormal));
        assert_eq!(read("=50us+-500ns:uniform"), turned(Setting::Set(50e3), 500.0, Shape::Uniform));
        assert_eq!(
            read(" +10us ± 10us : exponential "),
            turned(Setting::Add(10e3), 10e3, Shape::Exponential)
        );
        assert_eq!(read("+10us±2µs"), turned(Setting::Add(10e3), 2e3, Shape::Normal));
        assert_eq!(read("+10us"), VaryingSetting { setting: Setting::Add(10e3), spread: None });
    }

    #[test]
    fn each_mistake_is_named() {
        for (dial, text, names) in [
            (Dial::Latency, "10us±2us", "neither adds (+)"),
            (Dial::Latency, "+-10us", "out of range"),
            (Dial::Latency, "+10±2us", "no unit"),
            (Dial::Latency, "+10us±2", "deviation without a unit"),
            (Dial::Latency, "+10us±", "deviation without a unit"),
            (Dial::Latency, "+10us±us", "deviation that is no number"),
            (Dial::Latency, "+10us±-2us", "not above 0"),
            (Dial::Latency, "+10us±0us", "not above 0"),
            (Dial::Latency, "+10us±NaNs", "without a unit"),
            (Dial::Latency, "+10us±2us:", "no shape"),
            (Dial::Latency, "+10us±2us:gauss", "use uniform, normal, lognormal, exponential"),
            (Dial::Latency, "+10us±11us:exponential", "10us at most"),
            (Dial::Latency, "+10us±41us:lognormal", "40us at most"),
            (Dial::Latency, "+10us±1us±1us", "without a unit that is known"),
            (Dial::Latency, "+0us±1us", "0ns at most"),
            (Dial::SendGap, "+10us±9999999s", "10us at most"),
            (Dial::GapPerByte, "+1ns/B±0.1ns", "cannot vary"),
            (Dial::GapPerByte, "=1GB/s+-1us:normal", "use =1ns/B alone"),
        ] {
            let message = VaryingSetting::parse(dial, text).unwrap_err().to_string();
            assert!(message.contains(names) && message.contains(dial.name()), "{text}: {message}");
            assert_eq!(message.lines().count(), 1, "{message}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(at in 0..Dial::ALL.len(), text in "[+=]?[a-z0-9.±+:-]{0,20}(±|\\+-)?[a-zµ0-9.:±-]{0,20}") {
            let _ = VaryingSetting::parse(Dial::ALL[at], &text);
        }

        #[test]
        fn what_is_written_is_read_again(
            at in 0..5usize, shape in 0..Shape::ALL.len(), amount in 1e-3..1e9f64, share in 1e-6..1.0f64, adds: bool,
        ) {
            let (dial, shape) = (Dial::ALL[at], Shape::ALL[shape]);
            let setting = if adds { Setting::Add(amount) } else { Setting::Set(amount) };
            let spread = Spread { deviation: share * amount, shape };
            let text = format!("{}{spread}", Spelled(dial, setting));
            prop_assert_eq!(VaryingSetting::parse(dial, &text), Ok(VaryingSetting { setting, spread: Some(spread) }));
        }
    }
}
