//! Figures in words: three significant digits and a unit.

use std::fmt;

/// A time, given in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Time(pub f64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scale, unit) = match self.0.abs() {
            ns if ns < 999.5 => (1.0, "ns"),
            ns if ns < 999.5e3 => (1e3, "µs"),
            ns if ns < 999.5e6 => (1e6, "ms"),
            _ => (1e9, "s"),
        };
        write!(f, "{} {unit}", digits(self.0 / scale))
    }
}

/// A share, shown in percent.
#[derive(Clone, Copy, Debug)]
pub struct Percent(pub f64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", digits(100.0 * self.0))
    }
}

/// A bare number.
#[derive(Clone, Copy, Debug)]
pub struct Number(pub f64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&digits(self.0))
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

/// Returns three significant digits, without exponent and without trailing zeros after the decimal point.
fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_a_unit() {
        for (ns, text) in [
            (0.0, "0 ns"),
            (4.3849, "4.38 ns"),
            (30.67, "30.7 ns"),
            (-508.1, "-508 ns"),
            (999.7, "1 µs"),
            (16999.4694, "17 µs"),
            (2.5e9, "2.5 s"),
        ] {
            assert_eq!(Time(ns).to_string(), text);
        }
        let sizes = [16, 5_000, 8_192, 100_000, 2_000_000].map(|bytes| Size(bytes).to_string());
        assert_eq!(sizes, ["16 B", "5 kB", "8 KiB", "100 kB", "2 MB"]);
        assert_eq!(Percent(0.02).to_string(), "2 %");
        assert_eq!(Percent(1.523).to_string(), "152 %");
    }
}
