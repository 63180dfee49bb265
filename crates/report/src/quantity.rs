//! Figures for readers: three significant digits and a unit.

use netdyno_measure::stats::{Interval, median};

/// The text in place of a missing figure.
pub const NONE: &str = "–";

/// A figure larger than this has an exponent.
const PLAIN_AT_MOST: f64 = 99_999.0;
/// The largest number of decimals: no clock resolves less than a picosecond.
const DECIMALS_AT_MOST: i32 = 3;

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    /// The symbol of the unit.
    pub name: &'static str,
    /// The length of the unit, in nanoseconds.
    pub ns: f64,
}

const UNITS: [Unit; 4] = [
    Unit { name: "ns", ns: 1.0 },
    Unit { name: "µs", ns: 1e3 },
    Unit { name: "ms", ns: 1e6 },
    Unit { name: "s", ns: 1e9 },
];

impl Unit {
    /// Returns the unit in which a time has one to three digits before the decimal point.
    pub fn of(ns: f64) -> Self {
        let size = round_to_three_digits(ns).abs();
        UNITS.into_iter().rev().find(|unit| size >= unit.ns).unwrap_or(UNITS[0])
    }

    /// Returns one unit for all of `times` (ns): that of their median, without those that are 0.
    pub fn common(times: impl IntoIterator<Item = f64>) -> Self {
        let known = times.into_iter().map(f64::abs).filter(|ns| ns.is_finite() && *ns > 0.0);
        Self::of(median(known))
    }

    /// Returns a time (ns) as a number of this unit, without the unit's symbol, as `0.312`.
    pub fn number(self, ns: f64) -> String {
        number(ns / self.ns)
    }
}

/// Returns a time, as `312 ns`.
pub fn time(ns: f64) -> String {
    if !ns.is_finite() {
        return NONE.into();
    }
    let unit = Unit::of(ns);
    format!("{} {}", with_decimals(ns / unit.ns, decimals(ns / unit.ns)), unit.name)
}

/// Returns a round time, such as a tick of an axis, without trailing zeros, as `50 ns`.
pub fn round_time(ns: f64) -> String {
    let text = time(ns);
    match text.split_once(' ') {
        _ if ns == 0.0 => "0".into(),
        Some((digits, unit)) if digits.contains('.') => {
            format!("{} {unit}", digits.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

/// Returns a round rate without trailing zeros, as `50 MB/s`.
pub fn round_rate(bytes_per_s: f64) -> String {
    let text = rate(bytes_per_s);
    match text.split_once(' ') {
        Some((digits, unit)) if digits.contains('.') => {
            format!("{} {unit}", digits.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

/// Returns the interval of a figure in the figure's unit and with its digits, as `[310, 314]`. If it would
/// exceed `width` characters, it has fewer decimals, and finally exponents.
pub fn time_interval(value_ns: f64, interval: Interval, width: usize) -> String {
    let unit = Unit::of(value_ns);
    bracketed(value_ns / unit.ns, interval.lo / unit.ns, interval.hi / unit.ns, width)
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

/// Returns a size in bytes, as `4.00 KiB`; exact if it is a whole number of its unit.
pub fn bytes(size: f64) -> String {
    let units = [("MiB", 1024.0 * 1024.0), ("KiB", 1024.0), ("B", 1.0)];
    let (name, length) = units.into_iter().find(|(_, length)| size.abs() >= *length).unwrap_or(("B", 1.0));
    let value = size / length;
    match value {
        v if !v.is_finite() => NONE.into(),
        v if v.fract() == 0.0 && v.abs() < 1e5 => format!("{v} {name}"),
        v => format!("{} {name}", with_decimals(v, if length == 1.0 { 0 } else { decimals(v) })),
    }
}

/// Returns a rate, as `3.98 GB/s`.
pub fn rate(bytes_per_s: f64) -> String {
    if !bytes_per_s.is_finite() {
        return NONE.into();
    }
    let size = round_to_three_digits(bytes_per_s).abs();
    let units = [("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3)];
    let (name, length) = units.into_iter().find(|(_, length)| size >= *length).unwrap_or(("B/s", 1.0));
    format!("{} {name}", with_decimals(bytes_per_s / length, decimals(bytes_per_s / length)))
}

/// Returns a number without a unit, as `0.0312`.
pub fn number(value: f64) -> String {
    if value.is_finite() { with_decimals(value, ratio_decimals(value)) } else { NONE.into() }
}

/// Returns a round number, such as a tick of an axis, without trailing zeros, as `1.5`.
pub fn round_number(value: f64) -> String {
    let text = number(value);
    let is_fraction = text.contains('.') && !text.contains('e');
    if is_fraction { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Returns a number with its interval, as `0.0312 [0.0301, 0.0325]`.
pub fn number_and_interval(value: f64, interval: Option<Interval>) -> String {
    let end = |x: f64| {
        if x.is_finite() { with_decimals(x, ratio_decimals(value)) } else { NONE.into() }
    };
    match interval {
        Some(ci) => format!("{} [{}, {}]", number(value), end(ci.lo), end(ci.hi)),
        None => number(value),
    }
}

/// Returns a share, as `95 %`.
pub fn percent(share: f64) -> String {
    if !share.is_finite() {
        return NONE.into();
    }
    let text = format!("{:.3}", 100.0 * share);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Returns the count with `singular` or `plural`.
pub fn counted(count: usize, singular: &str, plural: &str) -> String {
    format!("{count} {}", if count == 1 { singular } else { plural })
}

fn bracketed(value: f64, lo: f64, hi: f64, width: usize) -> String {
    if !(value.is_finite() && lo.is_finite() && hi.is_finite()) {
        return NONE.into();
    }
    // A figure of 0 has no digits of its own.
    let most = decimals(if value == 0.0 { lo.abs().max(hi.abs()) } else { value });
    let plain = (0..=most).rev().map(|d| format!("[{}, {}]", with_decimals(lo, d), with_decimals(hi, d)));
    // The space is omitted before the digits are.
    let narrow = std::iter::once_with(|| format!("[{},{}]", with_decimals(lo, 0), with_decimals(hi, 0)));
    let shortest = std::iter::once_with(|| format!("[{lo:.0e}, {hi:.0e}]"));
    plain
        .chain(narrow)
        .chain(shortest)
        .find(|text| text.chars().count() <= width)
        .unwrap_or_else(|| "[…]".into())
}

fn with_decimals(value: f64, decimals: usize) -> String {
    if value.abs() > PLAIN_AT_MOST {
        return format!("{value:.0e}");
    }
    let text = format!("{value:.decimals$}");
    // A negative figure that rounds to 0 is shown as 0.
    if text.bytes().all(|b| matches!(b, b'-' | b'0' | b'.')) { text.replace('-', "") } else { text }
}

/// Returns the number of decimals that show three significant digits of a time.
pub fn decimals(value: f64) -> usize {
    digits_behind_point(value).clamp(0, DECIMALS_AT_MOST) as usize
}

fn ratio_decimals(value: f64) -> usize {
    digits_behind_point(value).clamp(0, 9) as usize
}

fn digits_behind_point(value: f64) -> i32 {
    let rounded = round_to_three_digits(value).abs();
    if rounded > 0.0 && rounded.is_finite() { 2 - rounded.log10().floor() as i32 } else { 0 }
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
    fn sizes_and_rates_have_a_unit() {
        let sizes = [1.0, 512.0, 4096.0, 15_360.0, 43_571.7, 4_194_304.0, -5.3, f64::NAN].map(bytes);
        assert_eq!(sizes, ["1 B", "512 B", "4 KiB", "15 KiB", "42.6 KiB", "4 MiB", "-5 B", "–"]);
        let rates = [12.0, 999.6e3, 3.98e9, 0.0, f64::INFINITY].map(rate);
        assert_eq!(rates, ["12.0 B/s", "1.00 MB/s", "3.98 GB/s", "0 B/s", "–"]);
    }

    #[test]
    fn a_round_time_has_no_empty_digits() {
        let texts = [0.0, 50.0, 100.0, 2e6, 2500.0, 0.2].map(round_time);
        assert_eq!(texts, ["0", "50 ns", "100 ns", "2 ms", "2.5 µs", "0.2 ns"]);
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
        assert_eq!(number(f64::NAN), "–");
        assert_eq!(
            (percent(0.95), percent(0.999), percent(0.02)),
            ("95 %".into(), "99.9 %".into(), "2 %".into())
        );
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
            let unit = UNITS.iter().find(|unit| unit.name == name).unwrap();
            let back = digits.parse::<f64>().unwrap() * unit.ns;
            prop_assert!((back / value - 1.0).abs() < 0.0051, "{shown} for {value}");
        }
    }
}
