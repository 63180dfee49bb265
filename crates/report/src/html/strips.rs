//! The spread between launches: for each parameter one point per launch, in their order, as the deviation
//! from the median.
//!
//! Deviations have the unit of the precision asked for: a share of the value. For a parameter much smaller
//! than the round trip, they are a share of the one-way time.

use super::chart::{HALF, chart, uprights};
use super::parts::{line, point, rect, sound, text, time};
use super::scale::{Scale, extremes};
use super::subject::Signature;
use crate::logp::LaunchFigures;
use maud::{Markup, html};
use netdyno_measure::record::TIMES;
use netdyno_measure::show::percent;
use netdyno_measure::stats::{Interval, median};

const LEFT: f64 = 100.0;
const RIGHT: f64 = 366.0;
const TOP: f64 = 8.0;
const ROW: f64 = 52.0;
const HEIGHT: f64 = 372.0;
/// Launches with a larger deviation are drawn at the edge.
const FARTHEST: f64 = 0.5;
/// Height of the points of a row.
const FILLED: f64 = 34.0;

/// A parameter with its deviations.
struct Strip {
    name: &'static str,
    median_ns: f64,
    /// The time that corresponds to a deviation of 1.
    unit_ns: f64,
    ci: Option<Interval>,
    /// The index and the value of each launch.
    values: Vec<(usize, f64)>,
}

impl Strip {
    fn deviation(&self, ns: f64) -> f64 {
        (ns - self.median_ns) / self.unit_ns
    }
}

/// Returns the figure with its caption.
pub fn figure(subject: &Signature<'_>, launches: &[LaunchFigures]) -> Markup {
    let strips = strips(subject, launches);
    if strips.is_empty() {
        return html! { p.none { "This record holds no launches of the layer." } };
    }
    let precision = subject.record.options.precision.abs();
    let deviations =
        strips.iter().flat_map(|strip| strip.values.iter().map(|(_, ns)| strip.deviation(*ns).abs()));
    let (_, farthest) = extremes(deviations.chain([1.5 * precision, 0.005])).unwrap_or((0.0, 0.01));
    let reach = 1.05 * farthest.min(FARTHEST);
    let x = Scale::between(-reach, reach, LEFT, RIGHT);
    let bottom = TOP + ROW * strips.len() as f64;
    let drawn = html! {
        @if let (Some(from), Some(to)) = (x.within(-precision), x.within(precision)) {
            (rect("band", (from, TOP), (to, bottom)))
        }
        (uprights((TOP, bottom), bottom + 18.0, &x.named(5, signed_percent)))
        (text("soft mid", (LEFT + RIGHT) / 2.0, bottom + 37.0, "deviation from the median"))
        @for (at, strip) in strips.iter().enumerate() { (row(strip, TOP + ROW * at as f64, &x)) }
    };
    html! {
        figure {
            (chart(HALF, HEIGHT, &format!("Spread between the launches of {}", subject.label), &drawn))
            figcaption {
                "One point per launch, the first on top. Coloured: the interval; grey: the precision asked for (±" (percent(precision)) "). "
                "Deviations are shares of the value, those of small parameters of the one-way time."
            }
        }
    }
}

fn strips(subject: &Signature<'_>, launches: &[LaunchFigures]) -> Vec<Strip> {
    let parameters = &subject.result.parameters;
    let one_way = parameters.rtt.value_ns.filter(|ns| ns.is_finite()).unwrap_or(0.0).abs() / 2.0;
    let strip = |(at, name): (usize, &'static str)| {
        let values: Vec<(usize, f64)> =
            launches.iter().filter_map(|launch| Some((launch.launch, launch.values[at]?))).collect();
        let median_ns = median(values.iter().map(|(_, ns)| *ns));
        let least = if matches!(name, "rtt" | "g") { 0.0 } else { one_way };
        let unit_ns = median_ns.abs().max(least);
        let ci = match name {
            "g" => subject.found.plateau.ci_ns,
            _ => parameters.times()[at].1.ci_ns,
        };
        (unit_ns.is_finite() && unit_ns > 0.0).then_some(Strip {
            name,
            median_ns,
            unit_ns,
            ci: sound(ci),
            values,
        })
    };
    TIMES.into_iter().enumerate().filter_map(strip).collect()
}

fn row(strip: &Strip, top: f64, x: &Scale) -> Markup {
    let middle = top + ROW / 2.0;
    let name = match strip.name {
        "rtt" => "round trip",
        "g" => "plateau",
        other => other,
    };
    let step = FILLED / strip.values.len().max(1) as f64;
    html! {
        @if top > TOP { (line("grid", (0.0, top), (RIGHT, top))) }
        (text("", 0.0, middle - 2.0, name))
        (text("soft", 0.0, middle + 13.0, &time(strip.median_ns)))
        @if let Some(ci) = strip.ci {
            @if let (Some(lo), Some(hi)) = (x.within(strip.deviation(ci.lo)), x.within(strip.deviation(ci.hi))) {
                // An interval of no width still has to be visible.
                (rect(&format!("box {}", strip.name), (lo - 0.75, top + 5.0), (hi + 0.75, top + ROW - 5.0)))
            }
        }
        @for (nth, (launch, ns)) in strip.values.iter().enumerate() {
            @if let Some(at) = x.within(strip.deviation(*ns)) {
                @let y = middle - FILLED / 2.0 + step * (nth as f64 + 0.5);
                @let tip = format!("launch {launch}: {name} {}\n{} from the median", time(*ns), signed_percent(strip.deviation(*ns)));
                (point(at, y, "2.3", &format!("fill {}", strip.name), strip.name, &tip))
            }
        }
    }
}

fn signed_percent(share: f64) -> String {
    let text = percent((share * 1e4).round() / 1e4 + 0.0);
    if share > 5e-5 { format!("+{text}") } else { text }
}
