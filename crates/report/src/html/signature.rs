//! The signature of a layer (Culler et al. 1996, figures 4 and 5): the average time per message over the
//! length of a burst, one curve for each delay between messages.
//!
//! Each parameter is drawn where the signature shows it. The curve without delay begins at o_s and ends at
//! g, or at its bound. A delayed curve ends at o_s + o_r + D.

use super::chart::{EndLabel, WIDE, chart, end_labels, levels, names_along};
use super::parts::{figure as in_words, interval_words, line, point, rect, round_time, shown, text, time};
use super::scale::{Scale, extremes, path, px};
use super::subject::Signature;
use maud::{Markup, html};
use netdyno_measure::logp::data::{Burst, Curve, LaunchData};
use netdyno_measure::record::{Limit, Parameters, Plateau};
use netdyno_measure::show::{counted, number};
use netdyno_measure::stats::{Interval, median, median_interval_of_sorted, quantile_of_sorted, sorted};

/// If the largest time exceeds the smallest by more than this factor, the axis is logarithmic.
const LINEAR_UP_TO: f64 = 40.0;
/// In the steady state the curve without delay stays within this share of its plateau.
const STEADY_WITHIN: f64 = 0.2;

const HEIGHT: f64 = 440.0;
const TOP: f64 = 66.0;
const BOTTOM: f64 = 394.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 680.0;

/// A curve over all launches.
struct Series {
    d_ns: f64,
    /// The delay as measured without messages. A message is expected to take that much longer.
    d_measured_ns: f64,
    points: Vec<Point>,
}

/// The average time per message in bursts of one length.
struct Point {
    m: usize,
    ns: f64,
    /// The interval of the median, or the range of the launches if they are too few for an interval.
    reach: Interval,
    is_interval: bool,
    launches: usize,
}

/// A signature to be drawn.
pub struct Drawn<'a> {
    /// The name, for readers of the drawing by voice.
    pub label: &'a str,
    /// The parameters, which are drawn as levels.
    pub parameters: &'a Parameters,
    /// The plateau.
    pub plateau: &'a Plateau,
    /// The data of the launches.
    pub launches: Vec<&'a LaunchData>,
    /// The confidence of intervals.
    pub confidence: f64,
}

impl<'a> Drawn<'a> {
    /// Returns the signature of a layer.
    pub fn of(subject: &'a Signature<'_>) -> Self {
        Self {
            label: &subject.label,
            parameters: &subject.result.parameters,
            plateau: &subject.found.plateau,
            launches: subject.found.launches.iter().collect(),
            confidence: subject.confidence(),
        }
    }
}

/// Returns the figure with its caption.
pub fn figure(subject: &Drawn<'_>) -> Markup {
    let series = series(subject);
    if series.iter().all(|series| series.points.is_empty()) {
        return html! { p.none { "This record holds no signature of the layer." } };
    }
    let levels = extracted(subject);
    let (x, y) = scales(&series, &levels);
    let regimes = Regimes::of(subject, &series);
    let drawn = html! {
        (regimes.bands(&x))
        (axes(&series, &x, &y))
        (regimes.onset_mark(&x))
        @for level in &levels { (level.draw(&y)) }
        @for series in series.iter().rev() { (expected(subject, series, &x, &y)) (curve(series, &x, &y)) }
        (labels(&series, &levels, &y))
        @for series in series.iter().rev() { (points(subject, series, &x, &y)) }
    };
    html! {
        figure {
            (chart(WIDE, HEIGHT, &format!("Signature of {}", subject.label), &drawn))
            (caption(subject, &regimes, &y))
        }
    }
}

fn caption(subject: &Drawn<'_>, regimes: &Regimes, y: &Scale) -> Markup {
    let plateau = match subject.plateau.limited_by {
        Limit::Gap => "the slowest stage of the layer: the plateau is g",
        Limit::Processor => "the requester's processor: g is at most the plateau",
        Limit::Window => "the number of requests that may be without a reply: g cannot be seen",
        Limit::Unknown => "not known: the longest burst did not reach a steady pace that can be trusted",
    };
    html! {
        figcaption {
            "Bold: no delay between messages (each message is still preceded by a poll, so short bursts cost o" sub { "s" } " + o" sub { "poll" } "). "
            "Grey: a delay " i { "D" } " after each message; dotted where o" sub { "s" } " + o" sub { "r" } " + " i { "D" } " is expected. "
            "What sets the plateau is " (plateau) ". "
            @if regimes.steady.is_some() { "Steady state: from where the bold curve stays within 20 % of the plateau. " }
            @else { "No burst is long enough for the bold curve to come within 20 % of the plateau, which is read off the time to the last reply. " }
            @if y.is_log() { "The vertical axis is logarithmic. " }
            "Vertical bars: the interval of the median over launches, or their range where they are too few."
        }
    }
}

fn series(subject: &Drawn<'_>) -> Vec<Series> {
    let launches = &subject.launches;
    let Some(first) = launches.iter().find(|launch| !launch.signature.is_empty()) else { return Vec::new() };
    let confidence = subject.confidence;
    first
        .signature
        .iter()
        .filter(|curve| curve.d_ns.is_finite())
        .map(|curve| Series {
            d_ns: curve.d_ns,
            d_measured_ns: median(launches.iter().flat_map(|launch| {
                let same = launch.signature.iter().find(|other| other.d_ns == curve.d_ns);
                same.map(|curve| curve.d_measured_ns.clone()).unwrap_or_default()
            })),
            points: curve
                .bursts
                .iter()
                .filter_map(|burst| Point::over(launches, curve, burst, confidence))
                .collect(),
        })
        .collect()
}

impl Point {
    fn over(launches: &[&LaunchData], curve: &Curve, burst: &Burst, confidence: f64) -> Option<Self> {
        let of = |launch: &&LaunchData| {
            let curve = launch.signature.iter().find(|other| other.d_ns == curve.d_ns)?;
            let burst = curve.bursts.iter().find(|other| other.m == burst.m && other.m > 0)?;
            let ns = (median(burst.issue_ns.iter().copied()) - launch.timer_ns) / burst.m as f64;
            ns.is_finite().then_some(ns)
        };
        let values = sorted(launches.iter().filter_map(of));
        let range = Interval { lo: *values.first()?, hi: *values.last()? };
        let interval = median_interval_of_sorted(&values, confidence);
        Some(Self {
            m: burst.m,
            ns: quantile_of_sorted(&values, 0.5),
            reach: interval.unwrap_or(range),
            is_interval: interval.is_some(),
            launches: values.len(),
        })
    }
}

/// A horizontal line at an extracted value.
struct Level {
    ns: f64,
    class: &'static str,
    label: String,
}

impl Level {
    fn draw(&self, y: &Scale) -> Markup {
        html! {
            @if let Some(at) = y.at(self.ns) { (line(&format!("line level {}", self.class), (LEFT, at), (RIGHT, at))) }
        }
    }
}

/// Returns the lines at the values of o_s and g.
fn extracted(subject: &Drawn<'_>) -> Vec<Level> {
    let mut levels = Vec::new();
    if let Some(ns) = shown(&subject.parameters.o_s) {
        levels.push(Level { ns, class: "o_s", label: format!("o_s = {}", time(ns)) });
    }
    let plateau = subject.plateau.value_ns;
    if plateau.is_finite() {
        let label = match subject.plateau.limited_by {
            Limit::Gap => format!("g = {}", time(plateau)),
            Limit::Processor => format!("g {}", in_words(&subject.parameters.g)),
            Limit::Window | Limit::Unknown => format!("plateau {}", time(plateau)),
        };
        levels.push(Level { ns: plateau, class: "g", label });
    }
    levels
}

fn scales(series: &[Series], levels: &[Level]) -> (Scale, Scale) {
    let points = || series.iter().flat_map(|series| &series.points);
    let longest = points().map(|point| point.m).max().unwrap_or(1).max(2);
    let x = Scale::between(-0.15, (longest as f64).log2(), LEFT, RIGHT);
    let medians = points().map(|point| point.ns).chain(levels.iter().map(|level| level.ns));
    let (lo, hi) = extremes(medians).unwrap_or((0.0, 1.0));
    let y = if lo > 0.0 && hi > LINEAR_UP_TO * lo {
        Scale::log([lo, hi], 1.15, BOTTOM, TOP)
    } else {
        Scale::linear([lo * 1.05, hi * 1.05], BOTTOM, TOP)
    };
    (x, y)
}

fn place(x: &Scale, m: usize) -> Option<f64> {
    x.at((m.max(1) as f64).log2())
}

/// The three regimes of the curve without delay.
struct Regimes {
    /// The number of messages at which the first reply returns or the window is full, with its label.
    onset: Option<(f64, String)>,
    /// The shortest burst from which on the curve without delay is near its plateau.
    steady: Option<usize>,
}

impl Regimes {
    fn of(subject: &Drawn<'_>, series: &[Series]) -> Self {
        let rtt_over_o_s = match (shown(&subject.parameters.rtt), shown(&subject.parameters.o_s)) {
            (Some(rtt), Some(o_s)) if o_s > 0.0 && rtt > 0.0 => rtt / o_s,
            _ => f64::INFINITY,
        };
        let window = subject.plateau.window as f64;
        let onset = if subject.plateau.window > 0 && window <= rtt_over_o_s {
            Some((window, format!("window full at M = {window}")))
        } else {
            rtt_over_o_s.is_finite().then(|| {
                (rtt_over_o_s, format!("replies return from M = RTT / o_s = {}", number(rtt_over_o_s)))
            })
        };
        let undelayed = series.iter().find(|series| series.d_ns == 0.0);
        let steady = undelayed.and_then(|series| steady_from(&series.points, subject.plateau.value_ns));
        Self { onset, steady }
    }

    /// Returns the bands behind the curves, with their names above.
    fn bands(&self, x: &Scale) -> Markup {
        let onset = self.onset.as_ref().and_then(|(m, _)| x.within(m.max(1.0).log2())).unwrap_or(RIGHT);
        let steady = self.steady.and_then(|m| place(x, m)).unwrap_or(RIGHT).max(onset);
        let named = |from: f64, to: f64, names: [&str; 2]| {
            // A name wider than its band would appear to belong to the neighbour.
            let name = names.into_iter().find(|name| name.len() as f64 * 6.4 < to - from);
            html! { @if let Some(name) = name { (text("soft mid", (from + to) / 2.0, TOP - 10.0, name)) } }
        };
        html! {
            (rect("band", (LEFT, TOP - 24.0), (onset, BOTTOM)))
            @if self.steady.is_some() { (rect("band", (steady, TOP - 24.0), (RIGHT, BOTTOM))) }
            (named(LEFT, onset, ["send only", "send"]))
            (named(onset, steady, ["transition", ""]))
            (named(steady, RIGHT, ["steady state", "steady"]))
        }
    }

    fn onset_mark(&self, x: &Scale) -> Markup {
        let Some((m, label)) = &self.onset else { return html! {} };
        let Some(at) = x.within(m.max(1.0).log2()) else { return html! {} };
        let near_the_end = at > RIGHT - 220.0;
        html! {
            (line("mark-line", (at, TOP - 30.0), (at, BOTTOM)))
            (text(if near_the_end { "soft end" } else { "soft" }, if near_the_end { at + 3.0 } else { at - 3.0 }, TOP - 35.0, label))
        }
    }
}

/// Returns the shortest burst from which on the curve stays near the plateau.
fn steady_from(points: &[Point], plateau_ns: f64) -> Option<usize> {
    let is_near = |point: &&Point| (point.ns / plateau_ns - 1.0).abs() <= STEADY_WITHIN;
    points.iter().rev().take_while(is_near).last().map(|point| point.m)
}

/// Formats a delay; no delay is 0.
fn delay(d_ns: f64) -> String {
    if d_ns == 0.0 { "0".into() } else { time(d_ns) }
}

fn axes(series: &[Series], x: &Scale, y: &Scale) -> Markup {
    let mut sizes: Vec<usize> =
        series.iter().flat_map(|series| &series.points).map(|point| point.m).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let places: Vec<(f64, String)> =
        sizes.iter().filter_map(|m| Some((place(x, *m)?, m.to_string()))).collect();
    html! {
        (levels((LEFT, RIGHT), 8.0, &y.named(6, round_time)))
        (line("axis", (LEFT, BOTTOM), (RIGHT, BOTTOM)))
        @for (at, _) in &places { (line("axis", (*at, BOTTOM), (*at, BOTTOM + 4.0))) }
        (names_along(BOTTOM + 18.0, &places))
        (text("soft mid", (LEFT + RIGHT) / 2.0, BOTTOM + 38.0, "messages in a burst, M"))
        (text("soft", 0.0, 12.0, "time per message"))
    }
}

fn class(series: &Series) -> &'static str {
    if series.d_ns == 0.0 { "plain" } else { "delayed" }
}

fn curve(series: &Series, x: &Scale, y: &Scale) -> Markup {
    let places = series.points.iter().filter_map(|point| Some((place(x, point.m)?, y.at(point.ns)?)));
    let weight = if series.d_ns == 0.0 { "stroke-width:2.25" } else { "stroke-width:1.25" };
    html! {
        path class={ "line " (class(series)) } style=(weight) d=(path(places)) {}
        g class=(class(series)) {
            @for point in &series.points {
                @if let (Some(x), Some((lo, hi))) = (place(x, point.m), y.ends(Some(point.reach))) {
                    @if (lo - hi).abs() > 1.0 { (line("whisker", (x, lo), (x, hi))) }
                }
            }
        }
    }
}

/// Returns the expected end of a delayed curve, over its last two doublings.
fn expected(subject: &Drawn<'_>, series: &Series, x: &Scale, y: &Scale) -> Markup {
    let parameters = subject.parameters;
    let [.., third_last, _, last] = &series.points[..] else { return html! {} };
    let (Some(o_s), Some(o_r)) = (shown(&parameters.o_s), shown(&parameters.o_r)) else { return html! {} };
    let plateau = subject.plateau.value_ns;
    let level = o_s + o_r + series.d_measured_ns;
    // A delay shorter than the idle time of a message has no effect in the steady state.
    if series.d_ns == 0.0 || !level.is_finite() || level < plateau {
        return html! {};
    }
    html! {
        @if let (Some(from), Some(to), Some(at)) = (place(x, third_last.m), place(x, last.m), y.at(level)) {
            (line("line expected o_r", (from, at), (to, at)))
        }
    }
}

fn points(subject: &Drawn<'_>, series: &Series, x: &Scale, y: &Scale) -> Markup {
    let confidence = subject.confidence;
    let tip = |point: &Point| {
        let kind = if point.is_interval {
            interval_words(point.ns, point.reach, confidence)
        } else {
            format!("range {} to {}", time(point.reach.lo), time(point.reach.hi))
        };
        let launches = counted(point.launches, "launch", "launches");
        format!(
            "M = {}, D = {}\n{} a message\n{kind}\n{launches}",
            point.m,
            delay(series.d_ns),
            time(point.ns)
        )
    };
    let name = px(series.d_ns);
    html! {
        @for at in &series.points {
            @if let (Some(x), Some(y)) = (place(x, at.m), y.at(at.ns)) {
                (point(x, y, if series.d_ns == 0.0 { "3.2" } else { "2.4" }, &format!("fill {}", class(series)), &name, &tip(at)))
            }
        }
    }
}

/// Returns the labels of curves and levels at the right, moved apart.
fn labels(series: &[Series], levels: &[Level], y: &Scale) -> Markup {
    let mut labels: Vec<(f64, &str, String)> = Vec::new();
    for series in series {
        let end = series.points.last().and_then(|point| y.at(point.ns));
        labels.extend(end.map(|at| (at, class(series), format!("D = {}", delay(series.d_ns)))));
    }
    for level in levels {
        labels.extend(y.at(level.ns).map(|at| (at, level.class, level.label.clone())));
    }
    let labels: Vec<EndLabel<'_>> =
        labels.iter().map(|(y, class, label)| EndLabel { y: *y, class, label }).collect();
    end_labels(RIGHT, (TOP - 4.0, BOTTOM), &labels)
}
