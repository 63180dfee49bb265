//! Times as they are written on the command line: `10us`, `0.5ns`.

/// Why a text is no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoTime {
    /// What follows the number is no unit of time.
    Unit,
    /// What stands before the unit is no number.
    Number,
}

/// A time in picoseconds, of any sign and size.
pub(crate) fn picoseconds(text: &str) -> Result<f64, NoTime> {
    number_and_unit_ns(text).map(|(number, unit_ns)| number * (unit_ns * 1e3))
}

/// The same in nanoseconds.
pub(crate) fn nanoseconds(text: &str) -> Result<f64, NoTime> {
    number_and_unit_ns(text).map(|(number, unit_ns)| number * unit_ns)
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
