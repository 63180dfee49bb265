//! The command line of LogGOPSim (Hoefler, Schneider and Lumsdaine 2010): `-L`, `-o`, `-g`,
//! `-G`, `-O` and `-S`, as integers.
//!
//! In the model a message of n bytes takes 2 o + L + (n - 1) max(G, O) from sender to receiver. In a stream
//! each message takes the larger of g + (n - 1) G and o + (n - 1) O. The model has one o for both sides: it
//! is half of o_s + o_r, less (n - 1) O of the smallest size n; g is less (n - 1) G. L is the remainder, so that the
//! round trip of the smallest size is as measured.
//! Messages of up to S bytes do not wait for a receive.

use super::curve::{Curve, Gap, Point};
use super::{ExportError, Exported};

/// The unit of all times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Nanoseconds, the unit that the simulator's tools assume.
    Ns,
    /// Picoseconds, for layers whose G is a fraction of a nanosecond.
    Ps,
}

impl TimeUnit {
    fn name(self) -> &'static str {
        match self {
            Self::Ns => "ns",
            Self::Ps => "ps",
        }
    }

    fn per_ns(self) -> f64 {
        match self {
            Self::Ns => 1.0,
            Self::Ps => 1e3,
        }
    }
}

/// A note reports a rounding that changes a parameter by more than this share.
const ROUNDED: f64 = 0.01;
/// The largest S: no message waits for a receive.
const ALL_EAGER: i32 = i32::MAX;

/// The parameters of LogGOPSim.
#[allow(non_snake_case, reason = "the notation of the LogP papers")]
struct LogGops {
    L: i32,
    o: i32,
    g: i32,
    G: i32,
    O: i32,
}

impl LogGops {
    /// Returns the time of a message of `size_bytes` from sender to receiver, in the unit of the
    /// parameters.
    fn one_way(&self, size_bytes: usize) -> f64 {
        let beyond_first = size_bytes.saturating_sub(1) as f64;
        f64::from(self.L) + 2.0 * f64::from(self.o) + beyond_first * f64::from(self.G.max(self.O))
    }
}

/// Returns the options on one line.
///
/// # Errors
/// Returns `TooLarge` if a parameter exceeds the simulator's integers.
pub fn render(curve: &Curve, unit: TimeUnit) -> Result<Exported, ExportError> {
    let mut notes = Vec::new();
    let parameters = parameters(curve, unit, &mut notes)?;
    notes.extend(departure(curve, &parameters, unit));
    notes.extend(curve.notes());
    notes.push(format!(
        "S = {ALL_EAGER}: whether a sender waits for its receiver is not measured, and no message does"
    ));
    let LogGops { L, o, g, G, O } = parameters;
    Ok(Exported { text: format!("-L {L} -o {o} -g {g} -G {G} -O {O} -S {ALL_EAGER}\n"), notes })
}

fn parameters(curve: &Curve, unit: TimeUnit, notes: &mut Vec<String>) -> Result<LogGops, ExportError> {
    let small = curve.ends().0;
    let whole = |name, ns: f64| whole(name, ns, unit);
    let mut rounded = |name, ns: f64| {
        let value = whole(name, ns)?;
        notes.extend(rounding(name, ns * unit.per_ns(), value, unit));
        Ok(value)
    };
    let (g_ns, g_note) = gap(small, &curve.layer);
    let (per_byte_ns, per_byte_note) = gap_per_byte(curve);
    let (o_per_byte_ns, o_per_byte_note) = overhead_per_byte(curve);
    // The simulator adds the time of the further bytes to o and g, which were measured with these bytes.
    let further = small.size_bytes.saturating_sub(1) as f64;
    let o = rounded("o", (small.overhead_ns() - further * o_per_byte_ns).max(0.0))?;
    let g = rounded("g", (g_ns - further * per_byte_ns).max(0.0))?;
    let per_byte = rounded("G", per_byte_ns)?;
    let o_per_byte = rounded("O", o_per_byte_ns)?;
    let without = LogGops { L: 0, o, g, G: per_byte, O: o_per_byte };
    let one_way = small.one_way_ns * unit.per_ns();
    let rest = one_way - without.one_way(small.size_bytes);
    let latency = whole("L", rest.max(0.0) / unit.per_ns())?;
    if rest < -0.5 {
        notes.push(format!(
            "L = 0: it came out as {rest:.0} {0}, as overheads and flight overlap; simulated round trips of {1} B \
             take {2:.0} {0} longer than measured",
            unit.name(),
            small.size_bytes,
            -2.0 * rest
        ));
    }
    let less = if further > 0.0 { ", less O for its further bytes (as g is less G)" } else { "" };
    notes.push(format!(
        "o is half of o_s + o_r ({:.4} and {:.4} ns at {} B){less}, and L what is left of half a round trip",
        small.o_s_ns, small.o_r_ns, small.size_bytes
    ));
    let is_all = |name: &str, ns: f64, per_byte: f64| {
        (ns > 0.0 && ns < further * per_byte).then(|| format!("{name} = 0: the further bytes take all of it"))
    };
    notes.extend(is_all("o", small.overhead_ns(), o_per_byte_ns));
    notes.extend(is_all("g", g_ns, per_byte_ns));
    notes.extend([g_note, per_byte_note, o_per_byte_note].into_iter().flatten());
    Ok(LogGops { L: latency, ..without })
}

fn gap(small: &Point, layer: &str) -> (f64, Option<String>) {
    match small.g {
        Gap::Measured(ns) => (ns, None),
        Gap::AtMost(ns) => {
            let text = "g is an upper bound: something else set the pace, and simulated message rates are a \
                        lower limit";
            (ns, Some(text.into()))
        }
        Gap::Unknown => {
            (0.0, Some(format!("g = 0: {layer} has no figure of it; overhead alone limits message rates")))
        }
    }
}

/// Returns G. If it is not measured, it is the rise of the one-way time per byte.
fn gap_per_byte(curve: &Curve) -> (f64, Option<String>) {
    match curve.per_byte_ns {
        Gap::Measured(ns) => (ns, None),
        Gap::AtMost(ns) => {
            (ns, Some("G is an upper bound: something else set the pace of the largest messages".into()))
        }
        Gap::Unknown => rise_per_byte(curve),
    }
}

fn rise_per_byte(curve: &Curve) -> (f64, Option<String>) {
    let (small, large) = curve.ends();
    let bytes = (large.size_bytes - small.size_bytes) as f64;
    if bytes == 0.0 {
        let text = format!(
            "G = 0: it is not measured, and every message costs what one of {} B does",
            small.size_bytes
        );
        return (0.0, Some(text));
    }
    let rise = (large.one_way_ns - small.one_way_ns) / bytes;
    let range = format!("from {} to {} B", small.size_bytes, large.size_bytes);
    if rise < 0.0 {
        return (0.0, Some(format!("G = 0: it is not measured, and the one-way time falls {range}")));
    }
    let text = format!(
        "G is the rise of the one-way time {range}, {rise:.4} ns per byte: the gap itself is not measured"
    );
    (rise, Some(text))
}

fn overhead_per_byte(curve: &Curve) -> (f64, Option<String>) {
    let (small, large) = curve.ends();
    let bytes = (large.size_bytes - small.size_bytes) as f64;
    if bytes == 0.0 {
        return (0.0, None);
    }
    let rise = (large.overhead_ns() - small.overhead_ns()) / bytes;
    let range = format!("from {} to {} B", small.size_bytes, large.size_bytes);
    if rise < 0.0 {
        return (0.0, Some(format!("O = 0: o falls {range}")));
    }
    (rise, Some(format!("O is the rise of o {range}")))
}

fn whole(parameter: &'static str, ns: f64, unit: TimeUnit) -> Result<i32, ExportError> {
    let value = (ns * unit.per_ns()).round();
    if value > f64::from(i32::MAX) {
        return Err(ExportError::TooLarge { parameter, value: format!("{value}"), unit: unit.name() });
    }
    Ok(value as i32)
}

fn rounding(parameter: &str, exact: f64, value: i32, unit: TimeUnit) -> Option<String> {
    let off = (f64::from(value) - exact).abs();
    let hint = if unit == TimeUnit::Ns { ": --time-unit ps keeps it" } else { "" };
    let text = format!("{parameter} = {value}, rounded from {exact:.4} {}{hint}", unit.name());
    (off > ROUNDED * exact.abs()).then_some(text)
}

/// Describes the largest deviation of the model's one-way time from the measured one.
fn departure(curve: &Curve, parameters: &LogGops, unit: TimeUnit) -> Option<String> {
    let share =
        |point: &Point| parameters.one_way(point.size_bytes) / (point.one_way_ns * unit.per_ns()) - 1.0;
    let worst = curve.points.iter().max_by(|a, b| share(a).abs().total_cmp(&share(b).abs()))?;
    let text = format!(
        "the one-way time by these parameters is off by up to {:+.1} %, at {} B",
        100.0 * share(worst),
        worst.size_bytes
    );
    (share(worst).abs() > ROUNDED).then_some(text)
}
