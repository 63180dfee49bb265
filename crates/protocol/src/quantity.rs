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
    let at = text.find(|c: char| c.is_ascii_alphabetic() || c == 'µ').unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let ps_per_unit = match unit {
        "ns" => 1e3,
        "us" | "µs" => 1e6,
        "ms" => 1e9,
        "s" => 1e12,
        _ => return Err(NoTime::Unit),
    };
    let value: f64 = number.trim().parse().map_err(|_| NoTime::Number)?;
    Ok(value * ps_per_unit)
}
