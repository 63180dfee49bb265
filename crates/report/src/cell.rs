//! A figure with half of its interval as a share of it, for the columns of a terminal.

use netdyno_measure::overlap::record::Quantity;
use netdyno_measure::record::{Parameter, Status};
use netdyno_measure::show::{NONE, number, rate, time};
use netdyno_measure::stats::Interval;

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
    with_share(time(ns), ns, p.ci_ns)
}

/// Returns a bandwidth, with `≥` if the time that it follows from is an upper bound.
pub fn rate_from(bandwidth: Option<f64>, time: &Parameter) -> String {
    let bound = if time.status == Status::UpperBound { "≥ " } else { "" };
    bandwidth.map_or(NONE.into(), |bytes_per_s| format!("{bound}{}", rate(bytes_per_s)))
}

/// Returns a figure without a unit, such as a ratio, in the same form.
pub fn quantity_cell(q: &Quantity) -> String {
    let Some(value) = q.value.filter(|value| value.is_finite()) else { return NONE.into() };
    with_share(number(value), value, q.ci)
}

fn with_share(text: String, value: f64, ci: Option<Interval>) -> String {
    // A value of 0 has no share, but one without any variation.
    let share = |ci: Interval| if ci.half_width() == 0.0 { 0.0 } else { ci.half_width() / value.abs() };
    match ci.map(share) {
        Some(share) if share <= 0.005 => format!("{text} ±<1 %"),
        Some(share) if share < WIDE => format!("{text} ±{:>2.0} %", 100.0 * share),
        Some(_) => format!("{text} ±>99%"),
        None => text,
    }
}
