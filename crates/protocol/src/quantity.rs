//! Parses times as the command line spells them: `10us`, `0.5ns`.

/// The reason why a text is not a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoTime {
    /// The text after the number is not a known unit of time.
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
