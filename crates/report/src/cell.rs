//! A figure with half of its interval as a share of it, for the columns of a terminal.

use netdyno_measure::record::{Parameter, Status};
use netdyno_measure::show::{NONE, time};

/// Width of a column of such figures.
pub const WIDTH: usize = 14;
/// An interval of this share or more is not shown as a number.
const WIDE: f64 = 0.995;

/// Returns a figure as `12.3 µs ± 2 %`. All shares have the same length, so that figures are aligned.
pub fn cell(p: &Parameter) -> String {
    let Some(ns) = p.value_ns.filter(|ns| ns.is_finite()) else { return NONE.into() };
    if p.status == Status::UpperBound {
        return format!("≤ {}", time(ns));
    }
    let share = p.ci_ns.map(|ci| ci.half_width() / ns.abs());
    match share {
        Some(share) if share < 0.005 => format!("{} ±<1 %", time(ns)),
        Some(share) if share < WIDE => format!("{} ±{:>2.0} %", time(ns), 100.0 * share),
        Some(_) => format!("{} ±>99%", time(ns)),
        None => time(ns),
    }
}
