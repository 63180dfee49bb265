//! Parses times and rates as the command line spells them: `10us`, `0.5ns`, `12.5GB/s`, `100Mbit/s`.

/// The reason why a text is not a time, or not a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoTime {
    /// The text after the number is not a known unit.
    Unit,
    /// The text before the unit is not a number.
    Number,
}

/// Parses a time, of any sign and size. Returns picoseconds.
pub(crate) fn picoseconds(text: &str) -> Result<f64, NoTime> {
    number_and_unit_ns(text).map(|(number, unit_ns)| number * (unit_ns * 1e3))
}

/// Parses a time, of any sign and size. Returns nanoseconds.
///
/// # Errors
/// The text has no number or no unit of time.
pub fn nanoseconds(text: &str) -> Result<f64, NoTime> {
    number_and_unit_ns(text).map(|(number, unit_ns)| number * unit_ns)
}

/// Parses a rate, of any sign and size. Returns bytes per second.
///
/// # Errors
/// The text has no number or no unit of a rate.
pub fn bytes_per_second(text: &str) -> Result<f64, NoTime> {
    let at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let (prefix, bytes) = match (unit.strip_suffix("B/s"), unit.strip_suffix("bit/s")) {
        (Some(prefix), _) => (prefix, 1.0),
        (_, Some(prefix)) => (prefix, 0.125),
        _ => return Err(NoTime::Unit),
    };
    let factor = match prefix {
        "" => 1.0,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "Ki" => 1024.0,
        "Mi" => 1048576.0,
        "Gi" => 1073741824.0,
        _ => return Err(NoTime::Unit),
    };
    let value: f64 = number.trim().parse().map_err(|_| NoTime::Number)?;
    Ok(value * (factor * bytes))
}

fn number_and_unit_ns(text: &str) -> Result<(f64, f64), NoTime> {
    let at = text.find(|c: char| c.is_ascii_alphabetic() || c == 'µ').unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let unit_ns = match unit {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return Err(NoTime::Unit),
    };
    let number = number.trim().parse().map_err(|_| NoTime::Number)?;
    Ok((number, unit_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_in_bytes_or_in_bits() {
        let of = bytes_per_second;
        assert_eq!((of("12.5GB/s"), of("100Mbit/s")), (Ok(12.5e9), Ok(12.5e6)));
        assert_eq!((of("1B/s"), of("8 bit/s"), of("2KiB/s")), (Ok(1.0), Ok(1.0), Ok(2048.0)));
        for text in ["1GB", "1G/s", "1Xbit/s", "1", "", "1 s"] {
            assert_eq!(of(text), Err(NoTime::Unit), "{text}");
        }
        for text in ["GB/s", "oneB/s", "1,5GB/s"] {
            assert!(of(text).is_err(), "{text}");
        }
    }
}
