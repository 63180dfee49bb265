//! Numbers in words, for every table, page, warning and error.
//!
//! A number has three significant digits. In columns it keeps its zeros, so that digits align: `1.00 µs`.
//! In sentences, along axes and as a setting it drops them: `1 µs`. An interval has the unit and the digits
//! of its figure.

use crate::stats::{Interval, median};
use std::fmt;

/// The text in place of a missing figure.
pub const NONE: &str = "–";

/// In columns a larger number has an exponent.
const PLAIN_AT_MOST: f64 = 99_999.0;
/// The largest number of decimals of a number with a unit: no clock resolves less than a picosecond.
const DECIMALS_AT_MOST: usize = 3;
/// The largest number of decimals of a number without a unit.
const DECIMALS_OF_NUMBER: usize = 9;
/// The largest number of decimals of a measured share in percent.
const DECIMALS_OF_PERCENT: usize = 2;

/// A unit of times, rates or sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    /// The symbol of the unit.
    pub name: &'static str,
    /// The size of the unit, in nanoseconds for times.
    pub size: f64,
}

const TIMES: [Unit; 4] = [
    Unit { name: "ns", size: 1.0 },
    Unit { name: "µs", size: 1e3 },
    Unit { name: "ms", size: 1e6 },
    Unit { name: "s", size: 1e9 },
];
const RATES: [Unit; 4] = [
    Unit { name: "B/s", size: 1.0 },
    Unit { name: "kB/s", size: 1e3 },
    Unit { name: "MB/s", size: 1e6 },
    Unit { name: "GB/s", size: 1e9 },
];

impl Unit {
    /// Returns the unit in which a time has one to three digits before the decimal point.
    pub fn of(ns: f64) -> Self {
        Self::among(&TIMES, ns)
    }

    /// Returns one unit for all of `times` (ns): that of their median, without those that are 0.
    pub fn common(times: impl IntoIterator<Item = f64>) -> Self {
        let known = times.into_iter().map(f64::abs).filter(|ns| ns.is_finite() && *ns > 0.0);
        Self::of(median(known))
    }

    /// Returns a value as a number of this unit, without the unit's symbol, as `0.312`.
    pub fn number(self, value: f64) -> String {
        number(value / self.size)
    }

    fn among(units: &[Self], value: f64) -> Self {
        let rounded = round_to_three_digits(value).abs();
        units.iter().rev().find(|unit| rounded >= unit.size).copied().unwrap_or(units[0])
    }

    fn text(self, value: f64) -> String {
        let number = value / self.size;
        if !value.is_finite() {
            return NONE.into();
        }
        format!("{} {}", in_column(number, decimals(number, DECIMALS_AT_MOST)), self.name)
    }
}

/// A time in a sentence, given in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Time(pub f64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&without_zeros(&time(self.0)))
    }
}

/// A measured share in a sentence, shown in percent.
#[derive(Clone, Copy, Debug)]
pub struct Percent(pub f64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", plain(100.0 * self.0, DECIMALS_OF_PERCENT))
    }
}

/// A number without a unit in a sentence, of any length.
#[derive(Clone, Copy, Debug)]
pub struct Number(pub f64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&plain(self.0, DECIMALS_OF_NUMBER))
    }
}

/// A count of bytes: exact, in the largest unit of which it is a multiple.
#[derive(Clone, Copy, Debug)]
pub struct Bytes(pub usize);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n >= 1 << 20 && n.is_multiple_of(1 << 20) => write!(f, "{} MiB", n >> 20),
            n if n >= 1 << 10 && n.is_multiple_of(1 << 10) => write!(f, "{} KiB", n >> 10),
            n => write!(f, "{n} B"),
        }
    }
}

/// A count of bytes in the units of COMB: kB and MB of a thousand, if it is a multiple of them.
#[derive(Clone, Copy, Debug)]
pub struct Size(pub usize);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n >= 1_000_000 && n.is_multiple_of(1_000_000) => write!(f, "{} MB", n / 1_000_000),
            n if n >= 1_000 && n.is_multiple_of(1_000) => write!(f, "{} kB", n / 1_000),
            n => Bytes(n).fmt(f),
        }
    }
}

/// Returns a time, as `312 ns`.
pub fn time(ns: f64) -> String {
    Unit::of(ns).text(ns)
}

/// Returns a round time, such as a tick of an axis, as `50 ns`; no time is `0`.
pub fn round_time(ns: f64) -> String {
    if ns == 0.0 { "0".into() } else { Time(ns).to_string() }
}

/// Returns a rate, as `3.98 GB/s`.
pub fn rate(bytes_per_s: f64) -> String {
    Unit::among(&RATES, bytes_per_s).text(bytes_per_s)
}

/// Returns a round rate, as `50 MB/s`.
pub fn round_rate(bytes_per_s: f64) -> String {
    without_zeros(&rate(bytes_per_s))
}

/// Returns a rate of messages, as `4.31 M/s`.
pub fn per_second(value: f64) -> String {
    let (size, unit) = match value.abs() {
        v if v >= 999.5e6 => (1e9, " G/s"),
        v if v >= 999.5e3 => (1e6, " M/s"),
        v if v >= 999.5 => (1e3, " k/s"),
        _ => (1.0, "/s"),
    };
    format!("{}{unit}", number(value / size))
}

/// Returns the interval of a time in the time's unit and with its digits, as `[310, 314]`. If it would
/// exceed `width` characters, it has fewer decimals, and finally exponents.
pub fn time_interval(value_ns: f64, interval: Interval, width: usize) -> String {
    let unit = Unit::of(value_ns);
    bracketed(value_ns / unit.size, interval.lo / unit.size, interval.hi / unit.size, width)
}

/// Returns a time with its interval, as `312 ns [310, 314]`.
pub fn time_and_interval(value_ns: f64, interval: Option<Interval>) -> String {
    match interval {
        Some(interval) if value_ns.is_finite() => {
            format!("{} {}", time(value_ns), time_interval(value_ns, interval, usize::MAX))
        }
        _ => time(value_ns),
    }
}

/// Returns a measured size in bytes, as `42.6 KiB`; exact if it is a whole number of its unit.
pub fn bytes(size: f64) -> String {
    let units = [("MiB", 1024.0 * 1024.0), ("KiB", 1024.0), ("B", 1.0)];
    let (name, length) = units.into_iter().find(|(_, length)| size.abs() >= *length).unwrap_or(("B", 1.0));
    let value = size / length;
    match value {
        v if !v.is_finite() => NONE.into(),
        v if v.fract() == 0.0 && v.abs() < 1e5 => format!("{v} {name}"),
        v if length == 1.0 => format!("{} {name}", in_column(v, 0)),
        v => format!("{} {name}", in_column(v, decimals(v, DECIMALS_AT_MOST))),
    }
}

/// Returns a number without a unit, as `0.0312`.
pub fn number(value: f64) -> String {
    if value.is_finite() { in_column(value, decimals(value, DECIMALS_OF_NUMBER)) } else { NONE.into() }
}

/// Returns a round number, such as a tick of an axis, as `1.5`.
pub fn round_number(value: f64) -> String {
    without_zeros(&number(value))
}

/// Returns a number with its interval, as `0.0312 [0.0301, 0.0325]`.
pub fn number_and_interval(value: f64, interval: Option<Interval>) -> String {
    match interval {
        Some(ci) => {
            let decimals = decimals(digits_of(value, ci.lo, ci.hi), DECIMALS_OF_NUMBER);
            let end = |x: f64| if x.is_finite() { in_column(x, decimals) } else { NONE.into() };
            format!("{} [{}, {}]", number(value), end(ci.lo), end(ci.hi))
        }
        None => number(value),
    }
}

/// Returns a share that was given, such as a confidence, with all digits, as `99.99 %`.
pub fn percent(share: f64) -> String {
    if !share.is_finite() {
        return NONE.into();
    }
    format!("{} %", without_zeros(&format!("{:.3}", 100.0 * share)))
}

/// Returns the number of sizes with the first and the last of them, as `3 sizes from 1 B to 64 KiB`; `None` if there
/// is none.
pub fn sizes_between(sizes: &[usize]) -> Option<String> {
    let (&first, &last) = (sizes.first()?, sizes.last()?);
    Some(format!("{} from {} to {}", counted(sizes.len(), "size", "sizes"), Bytes(first), Bytes(last)))
}

/// Returns the count with `singular` or `plural`.
pub fn counted(count: usize, singular: &str, plural: &str) -> String {
    format!("{count} {}", if count == 1 { singular } else { plural })
}

/// Returns the number whose digits an interval is shown with. A figure of 0 has no digits of its own.
fn digits_of(value: f64, lo: f64, hi: f64) -> f64 {
    if value == 0.0 { lo.abs().max(hi.abs()) } else { value }
}

fn bracketed(value: f64, lo: f64, hi: f64, width: usize) -> String {
    if !(value.is_finite() && lo.is_finite() && hi.is_finite()) {
        return NONE.into();
    }
    let most = decimals(digits_of(value, lo, hi), DECIMALS_AT_MOST);
    let plain = (0..=most).rev().map(|d| format!("[{}, {}]", in_column(lo, d), in_column(hi, d)));
    // The space is omitted before the digits are.
    let narrow = std::iter::once_with(|| format!("[{},{}]", in_column(lo, 0), in_column(hi, 0)));
    let shortest = std::iter::once_with(|| format!("[{lo:.0e}, {hi:.0e}]"));
    plain
        .chain(narrow)
        .chain(shortest)
        .find(|text| text.chars().count() <= width)
        .unwrap_or_else(|| "[…]".into())
}

/// Returns a number without trailing zeros and without an exponent.
fn plain(value: f64, most: usize) -> String {
    if value.is_finite() { without_zeros(&fixed(value, decimals(value, most))) } else { NONE.into() }
}

fn in_column(value: f64, decimals: usize) -> String {
    if value.abs() > PLAIN_AT_MOST { format!("{value:.0e}") } else { fixed(value, decimals) }
}

fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    // A negative figure that rounds to 0 is shown as 0.
    if text.bytes().all(|b| matches!(b, b'-' | b'0' | b'.')) { text.replace('-', "") } else { text }
}

/// Removes the zeros at the end of the decimals of a number, which may have a unit behind it.
pub fn without_zeros(text: &str) -> String {
    let (digits, unit) = text.split_at(text.find(' ').unwrap_or(text.len()));
    if !digits.contains('.') || digits.contains('e') {
        return text.into();
    }
    format!("{}{unit}", digits.trim_end_matches('0').trim_end_matches('.'))
}

/// Returns the number of decimals that show three significant digits, at most `most`.
fn decimals(value: f64, most: usize) -> usize {
    let rounded = round_to_three_digits(value).abs();
    let behind_point =
        if rounded > 0.0 && rounded.is_finite() { 2 - rounded.log10().floor() as i32 } else { 0 };
    usize::try_from(behind_point).unwrap_or(0).min(most)
}

/// Rounds first, so that 999.6 ns is 1.00 µs, not 1000 ns.
fn round_to_three_digits(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_time_has_three_digits_and_a_unit() {
        for (ns, text) in [
            (0.0, "0 ns"),
            (0.0123, "0.012 ns"),
            (0.5, "0.500 ns"),
            (6.018, "6.02 ns"),
            (9.996, "10.0 ns"),
            (34.14, "34.1 ns"),
            (312.4, "312 ns"),
            (999.4, "999 ns"),
            (999.6, "1.00 µs"),
            (15_234.0, "15.2 µs"),
            (2e6, "2.00 ms"),
            (1.5e9, "1.50 s"),
            (3e12, "3000 s"),
            (-34.14, "-34.1 ns"),
            (-1e-9, "0.000 ns"),
            (f64::NAN, "–"),
            (f64::INFINITY, "–"),
        ] {
            assert_eq!(time(ns), text, "{ns}");
        }
    }

    #[test]
    fn a_sentence_has_no_empty_digits() {
        for (ns, text) in [
            (0.0, "0 ns"),
            (4.3849, "4.38 ns"),
            (30.67, "30.7 ns"),
            (-508.1, "-508 ns"),
            (999.7, "1 µs"),
            (16999.4694, "17 µs"),
            (2.5e9, "2.5 s"),
            (f64::NAN, "–"),
        ] {
            assert_eq!(Time(ns).to_string(), text);
        }
        let sizes = [16, 5_000, 8_192, 100_000, 2_000_000].map(|bytes| Size(bytes).to_string());
        assert_eq!(sizes, ["16 B", "5 kB", "8 KiB", "100 kB", "2 MB"]);
        let shares = [0.02, 1.523, 0.000_123, -1e-9].map(|share| Percent(share).to_string());
        assert_eq!(shares, ["2 %", "152 %", "0.01 %", "0 %"]);
        assert_eq!([1.5, 0.0523, 1_234_567.0].map(|n| Number(n).to_string()), ["1.5", "0.0523", "1234567"]);
        let times = [0.0, 50.0, 100.0, 2e6, 2500.0, 0.2].map(round_time);
        assert_eq!(times, ["0", "50 ns", "100 ns", "2 ms", "2.5 µs", "0.2 ns"]);
    }

    #[test]
    fn sizes_and_rates_have_a_unit() {
        let sizes = [1.0, 512.0, 4096.0, 15_360.0, 43_571.7, 4_194_304.0, -5.3, f64::NAN].map(bytes);
        assert_eq!(sizes, ["1 B", "512 B", "4 KiB", "15 KiB", "42.6 KiB", "4 MiB", "-5 B", "–"]);
        let rates = [12.0, 999.6e3, 3.98e9, 0.0, f64::INFINITY].map(rate);
        assert_eq!(rates, ["12.0 B/s", "1.00 MB/s", "3.98 GB/s", "0 B/s", "–"]);
        let messages = [4.307e6, 999.9e3, 123.4, 2e9].map(per_second);
        assert_eq!(messages, ["4.31 M/s", "1.00 M/s", "123/s", "2.00 G/s"]);
    }

    #[test]
    fn an_interval_has_the_unit_and_the_digits_of_its_figure() {
        let text = |value, lo, hi, width| time_interval(value, Interval { lo, hi }, width);
        assert_eq!(text(312.0, 310.2, 314.0, 12), "[310, 314]");
        assert_eq!(text(1020.0, 998.0, 1050.0, 12), "[1.00, 1.05]");
        assert_eq!(text(-9.2, -9.34, -8.12, 12), "[-9.3, -8.1]");
        assert_eq!(text(0.0, 0.0, 0.25, 20), "[0.000, 0.250]");
        assert_eq!(text(1.0, 0.9, 5e9, 12), "[0.90, 5e9]");
        assert_eq!(text(1.0, f64::NAN, 5.0, 12), "–");
        assert_eq!(time_and_interval(5.0, None), "5.00 ns");
    }

    #[test]
    fn a_ratio_keeps_its_digits() {
        assert_eq!(number(0.031_24), "0.0312");
        assert_eq!(number(48.71), "48.7");
        assert_eq!(
            number_and_interval(0.0312, Some(Interval { lo: 0.0301, hi: 0.0325 })),
            "0.0312 [0.0301, 0.0325]"
        );
        // A figure of 0 has the digits of its interval.
        let around_0 = Interval { lo: -0.005, hi: 0.0052 };
        assert_eq!(number_and_interval(0.0, Some(around_0)), "0 [-0.00500, 0.00520]");
        assert_eq!(number(f64::NAN), "–");
        assert_eq!([0.95, 0.999, 0.02, 0.9999].map(percent), ["95 %", "99.9 %", "2 %", "99.99 %"]);
    }

    #[test]
    fn times_that_stand_together_share_a_unit() {
        let unit = Unit::common([f64::NAN, 0.0, 312.0, -4_500.0, 1.2e6]);
        assert_eq!(unit.name, "µs");
        assert_eq!(
            [312.0, -4_500.0, 1.2e6, f64::NAN].map(|ns| unit.number(ns)),
            ["0.312", "-4.50", "1200", "–"]
        );
        assert_eq!(Unit::common([]).name, "ns");
    }

    proptest! {
        #[test]
        fn no_figure_is_long(value in any::<f64>(), lo in any::<f64>(), hi in any::<f64>()) {
            prop_assert!(time(value).chars().count() <= 9, "{}", time(value));
            prop_assert!(rate(value).chars().count() <= 12, "{}", rate(value));
            let text = time_interval(value, Interval { lo, hi }, 12);
            prop_assert!(text.chars().count() <= 12, "{text}");
        }

        #[test]
        fn what_is_shown_is_near_what_is_meant(value in 1e-1..1e11f64) {
            let shown = time(value);
            let (digits, name) = shown.split_once(' ').unwrap();
            let unit = TIMES.iter().find(|unit| unit.name == name).unwrap();
            let back = digits.parse::<f64>().unwrap() * unit.size;
            prop_assert!((back / value - 1.0).abs() < 0.0051, "{shown} for {value}");
        }
    }
}
