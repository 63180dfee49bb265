//! The findings of a sweep, for the terminal and for CSV.

mod verdict;

use crate::csv::line;
use crate::lines::Lines;
use netdyno_measure::show::{NONE, Number, Percent, Time, round_time};
use netdyno_measure::sweep::{Point as SweptPoint, Sweep, Swept};
use verdict::is_insignificant;
pub use verdict::{is_felt, verdict};

/// A slope above this many times the prediction has another cause than the counted messages.
const MOST_OF_PREDICTED: f64 = 10.0;

/// Returns the sweep as text in lines of at most `width` columns.
pub fn table(sweep: &Sweep, width: usize) -> String {
    let mut lines = Lines::of(width);
    lines.wrapped(&format!("{}, {} runs", sweep.command.join(" "), sweep.runs.len()), "", "    ");
    lines.wrapped(&format!("{}; {}", metric(sweep), sweep.place), "", "    ");
    for swept in &sweep.dials {
        lines.blank();
        lines.push(&format!("{:>14}  {:>12}  {:>9}  {:>25}", swept.dial, "median", "slowdown", "range"));
        for point in &swept.points {
            let range = format!("{} to {}", Number(point.range.lo), Number(point.range.hi));
            let [value, median] = [value(swept, point.value), metric_of(point.median)];
            lines.push(&format!("{value:>14}  {median:>12}  {:>9}  {range:>25}", slowdown(point)));
        }
        for sentence in sentences(sweep, swept) {
            lines.wrapped(&sentence, "    ", "      ");
        }
    }
    if !sweep.doubts.is_empty() {
        lines.rule();
        sweep.doubts.iter().for_each(|doubt| lines.wrapped(&format!("doubt: {doubt}"), "", "    "));
    }
    lines.rule();
    lines.wrapped(&verdict(sweep), "", "    ");
    lines.text
}

/// Describes the metric of the runs.
pub fn metric(sweep: &Sweep) -> String {
    let unit = if sweep.unit.is_empty() { String::new() } else { format!(" in {}", sweep.unit) };
    format!("{}{unit}, medians over the repetitions", sweep.metric)
}

/// Returns a value of the metric: in a column, as long as its digits are seen.
pub fn metric_of(value: f64) -> String {
    if value == 0.0 || value.abs() >= 1e-3 { format!("{value:.6}") } else { Number(value).to_string() }
}

/// Returns the slowdown at a point, if there is one.
pub fn slowdown(point: &SweptPoint) -> String {
    if point.slowdown.is_finite() { format!("{:.3}", point.slowdown) } else { NONE.into() }
}

/// Returns a value of a dial, with `+` if the dial adds and `=` if it sets.
pub fn value(swept: &Swept, value: f64) -> String {
    let sign = if swept.adds { "+" } else { "=" };
    match value {
        0.0 => "link".into(),
        _ if swept.is_per_byte() => format!("{sign}{} ns/B", Number(value)),
        _ => format!("{sign}{}", round_time(value)),
    }
}

/// Returns the unit of a dial's values.
fn per(swept: &Swept) -> &'static str {
    if swept.is_per_byte() { "ns/B" } else { "µs" }
}

/// Describes a slope with its unit, as `0.04 s per µs`.
pub fn slope_in_words(sweep: &Sweep, swept: &Swept, slope: f64) -> String {
    format!("{} {} per {}", exact(slope), sweep.unit, per(swept))
}

/// Describes the figures of a dial, in sentences.
pub fn sentences(sweep: &Sweep, swept: &Swept) -> Vec<String> {
    let mut sentences = Vec::new();
    let unit = per(swept);
    if let Some(slope) = swept.slope {
        let interval =
            swept.slope_ci.map_or(String::new(), |ci| format!(" [{}, {}]", exact(ci.lo), exact(ci.hi)));
        let straight =
            swept.linearity.map_or(String::new(), |share| format!("; a line explains {}", Percent(share)));
        let doubtful = if is_insignificant(swept) { ", a slope that cannot be told from 0" } else { "" };
        sentences.push(format!(
            "{}{interval} {} for each {unit}{doubtful}{straight}",
            exact(slope),
            sweep.unit
        ));
    }
    if let Some(predicted) = swept.predicted {
        let measured = match of_predicted(swept) {
            Some(share) => format!(", measured {} of it", Percent(share)),
            None => ", with which the slope as measured cannot be compared".into(),
        };
        let predicted = exact(predicted);
        sentences.push(format!(
            "predicted from what was counted, if each is paid for: {predicted} for each {unit}{measured}"
        ));
    } else if let Some(share) = swept.slope_per_message.filter(|_| !is_insignificant(swept)) {
        sentences
            .push(format!("that is {} of a latency for each message of the busiest rank", Number(share)));
    }
    if let Some(knee) = swept.knee {
        sentences.push(format!(
            "knee at {}: {} for each {unit} before it, {} behind it",
            value(swept, knee.at),
            exact(knee.before),
            exact(knee.after)
        ));
    }
    if is_felt(sweep, swept) {
        let tolerated = swept.tolerance.iter().map(|tolerance| {
            let slower = Percent(tolerance.slowdown);
            match tolerance.value {
                Some(at) => format!("{slower} slower at {}", value(swept, at)),
                None => format!("not {slower} slower at any value"),
            }
        });
        sentences.push(tolerated.collect::<Vec<_>>().join(", "));
    }
    sentences
}

/// Returns the slope as a share of the predicted slope. Returns `None` if the slope may be 0, if messages
/// make the program faster, or if the slope is far above the prediction: a share has no meaning then.
pub fn of_predicted(swept: &Swept) -> Option<f64> {
    let share = swept.slope? / swept.predicted.filter(|predicted| *predicted > 0.0)?;
    (!is_insignificant(swept) && (0.0..=MOST_OF_PREDICTED).contains(&share)).then_some(share)
}

/// Returns four digits of a number of any size.
fn exact(number: f64) -> String {
    if number == 0.0 || (1e-3..1e6).contains(&number.abs()) {
        format!("{number:.4}")
    } else {
        format!("{number:.3e}")
    }
}

const COLUMNS: [&str; 9] = [
    "dial",
    "value",
    "repetition",
    "metric",
    "wall_s",
    "messages",
    "most_sent",
    "most_received",
    "most_bytes",
];

/// Returns a row for each run. Values are in nanoseconds, or nanoseconds per byte.
pub fn csv(sweep: &Sweep) -> String {
    let mut text = COLUMNS.join(",") + "\r\n";
    for run in &sweep.runs {
        let cells = [
            run.dial.clone().unwrap_or_default(),
            run.value.to_string(),
            run.repetition.to_string(),
            run.metric.to_string(),
            run.wall_s.to_string(),
            run.counted.messages.to_string(),
            run.counted.most_sent.to_string(),
            run.counted.most_received.to_string(),
            run.counted.most_bytes.to_string(),
        ];
        text.push_str(&line(&cells));
    }
    text
}

/// Returns a value for a cell, if there is one.
pub fn value_or_none(swept: &Swept, at: Option<f64>) -> String {
    at.map_or(NONE.into(), |at| value(swept, at))
}

/// Describes the run time with the unmodified link.
pub fn link(sweep: &Sweep) -> String {
    let link = sweep.dials.first().and_then(|swept| swept.points.first());
    match link {
        Some(point) if sweep.unit == "s" => format!("{} with the link as it is", Time(point.median * 1e9)),
        Some(point) => format!("{} {} with the link as it is", Number(point.median), sweep.unit),
        None => String::new(),
    }
}
