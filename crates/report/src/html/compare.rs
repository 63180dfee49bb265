//! A comparison on one page: the differences, the ratios with their intervals as charts and as tables, and
//! the warnings.

use super::chart::{HALF, chart, uprights, width_of};
use super::grid::{grid, heads};
use super::names::listed;
use super::parts::{cut, line, point, pretty, sound, text, with_minus};
use super::plot::{Curve, OVER_MESSAGES, Plot, Point};
use super::scale::Scale;
use super::tables::two_lines;
use crate::compare::table::{concern, judgement, layers, method, source, title as of_pair, value, words};
use crate::compare::{Change, Compared, Comparison, Pair, SideFigure, Source};
use maud::{Markup, html};
use netdyno_measure::record::Status;
use netdyno_measure::show::{NONE, Unit, bytes, number_and_interval, percent, round_number};
use netdyno_measure::stats::Interval;

/// Rows of a chart of one size.
const ROW: f64 = 26.0;
const TOP: f64 = 14.0;
/// The left end of the axis of ratios: to the right of the names, as long as these are not too long.
const LEFT: f64 = 76.0;
const LEFT_AT_MOST: f64 = 236.0;
/// The largest number of characters of a name.
const NAME_AT_MOST: usize = 32;
const RIGHT: f64 = 368.0;
/// The height of a chart over the size.
const HEIGHT: f64 = 280.0;
/// The factor by which the axis exceeds the ends of intervals.
const MARGIN: f64 = 1.03;

/// Returns the title of the page.
pub fn title(comparison: &Comparison) -> String {
    let side = |source: &Source| match &source.layer {
        Some(layer) => format!("{layer} of {}", source.name),
        None => source.name.clone(),
    };
    format!("{} against {}", side(&comparison.b), side(&comparison.a))
}

/// Returns the text above the charts.
pub fn header(comparison: &Comparison) -> Markup {
    let judgement = judgement(comparison);
    html! {
        h1 { (title(comparison)) }
        p.sub { b { "A" } " " (source(&comparison.a)) br; b { "B" } " " (source(&comparison.b)) br; (method(comparison)) }
        @if !judgement.is_empty() { p.lead { (judgement) "." } }
    }
}

/// Returns all pairs, the results of one side alone, and the warnings.
pub fn main(comparison: &Comparison) -> Markup {
    let warnings: Vec<String> = comparison
        .doubts
        .iter()
        .map(|doubt| doubt.text.clone())
        .chain(comparison.comparisons.iter().flat_map(|pair| {
            let layers = layers(pair);
            pair.doubts.iter().map(move |doubt| concern(&layers, doubt))
        }))
        .collect();
    let alone = [("A", &comparison.only_in_a), ("B", &comparison.only_in_b)];
    html! {
        @for pair in &comparison.comparisons { (section(comparison, pair)) }
        @if alone.iter().any(|(_, names)| !names.is_empty()) {
            section {
                h2 { "On one side alone" }
                @for (side, names) in alone {
                    @if !names.is_empty() { p { "Only in " (side) ": " (listed(names)) "." } }
                }
            }
        }
        @if !warnings.is_empty() {
            section {
                h2 { "Warnings" }
                ul.findings { @for warning in &warnings { li { (pretty(warning)) } } }
            }
        }
    }
}

fn section(comparison: &Comparison, pair: &Pair) -> Markup {
    let names = names(pair);
    let is_over_sizes = names.len() < pair.parameters.len();
    html! {
        section {
            h2 { (layers(pair)) }
            p.facts { (of_pair(pair)) }
            ul.findings { @for sentence in differences(pair, &names) { li { (pretty(&sentence)) } } }
            @if is_over_sizes {
                div.pair { @for name in &names { (over_sizes(pair, name)) } }
                details { summary { "Figures one by one" } (table(pair)) }
            } @else {
                div.beside { (ratios(comparison, pair)) (table(pair)) }
            }
        }
    }
}

/// Returns the parameters of a pair, each once.
fn names(pair: &Pair) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for compared in &pair.parameters {
        if !names.contains(&&compared.parameter[..]) {
            names.push(&compared.parameter);
        }
    }
    names
}

/// Says which parameters are larger in B, which are smaller, and which do not differ.
fn differences(pair: &Pair, names: &[&str]) -> Vec<String> {
    let of = |change: Change| {
        let with = |name: &&str| {
            let all = pair.parameters.iter().filter(|compared| compared.parameter == *name);
            let (count, sizes) = all.fold((0, 0), |(count, sizes), compared| {
                (count + usize::from(compared.change == change), sizes + 1)
            });
            match (count, sizes) {
                (0, _) => None,
                (_, 1) => Some((*name).to_owned()),
                _ => Some(format!("{name} at {count} of {sizes} sizes")),
            }
        };
        names.iter().filter_map(with).collect::<Vec<_>>()
    };
    [
        ("Larger in B", Change::Larger),
        ("Smaller in B", Change::Smaller),
        ("Not told apart, the interval holds 1", Change::Unclear),
        ("Without an interval of the ratio", Change::Unknown),
    ]
    .into_iter()
    .map(|(what, change)| (what, of(change)))
    .filter(|(_, names)| !names.is_empty())
    .map(|(what, names)| format!("{what}: {}", listed(&names)))
    .collect()
}

fn class(change: Change) -> &'static str {
    match change {
        Change::Larger => "larger",
        Change::Smaller => "smaller",
        Change::Unclear | Change::Unknown => "unclear",
    }
}

/// Returns a ratio that a logarithmic axis can show.
fn drawable(compared: &Compared) -> Option<f64> {
    compared.ratio.filter(|ratio| ratio.is_finite() && *ratio > 0.0)
}

/// Returns the values that the axis of ratios must hold: each ratio, the ends of its interval, and 1.
fn reach<'a>(all: impl IntoIterator<Item = &'a Compared>) -> Vec<f64> {
    let ends = |compared: &Compared| {
        let ci = sound(compared.ratio_ci);
        [compared.ratio, ci.map(|ci| ci.lo), ci.map(|ci| ci.hi)].into_iter().flatten().collect::<Vec<_>>()
    };
    all.into_iter().flat_map(ends).chain([1.0]).collect()
}

/// Returns the ratios of one size, a row for each parameter, with its interval.
fn ratios(comparison: &Comparison, pair: &Pair) -> Markup {
    let limit = comparison.fail_on.map(|limit| 1.0 + limit);
    let values = reach(&pair.parameters).into_iter().chain(limit);
    let names = pair.parameters.iter().map(|compared| width_of(&cut(&compared.parameter, NAME_AT_MOST)));
    let left = names.fold(LEFT, |left, width| left.max(width + 8.0)).min(LEFT_AT_MOST);
    let x = Scale::log(values, MARGIN, left, RIGHT);
    let bottom = TOP + ROW * pair.parameters.len() as f64;
    let drawn = html! {
        (uprights((TOP, bottom), bottom + 18.0, &x.named(((RIGHT - left) / 42.0) as usize, round_number)))
        @if let Some(one) = x.at(1.0) { (line("axis", (one, TOP), (one, bottom))) }
        @if let (Some(share), Some(at)) = (comparison.fail_on, limit.and_then(|limit| x.at(limit))) {
            (line("mark-line", (at, TOP), (at, bottom)))
            (limit_label(left, at, &format!("limit {}", percent(share))))
        }
        (text("soft mid", (left + RIGHT) / 2.0, bottom + 38.0, "B / A"))
        @for (at, compared) in pair.parameters.iter().enumerate() {
            (row(compared, TOP + ROW * (at as f64 + 0.5), &x))
        }
    };
    let label = format!("Ratios of {}", layers(pair));
    html! {
        figure {
            (chart(HALF, bottom + 44.0, &label, &drawn))
            figcaption {
                "The ratio of each parameter, B / A, with its " (percent(comparison.confidence)) " interval, on a logarithmic axis. "
                "A parameter differs where the interval does not hold 1."
            }
        }
    }
}

fn limit_label(left: f64, at: f64, label: &str) -> Markup {
    let within = (left + width_of(label) / 2.0, RIGHT - width_of(label) / 2.0);
    text("soft mid", at.clamp(within.0, within.1), TOP - 3.0, label)
}

fn row(compared: &Compared, y: f64, x: &Scale) -> Markup {
    let class = class(compared.change);
    html! {
        (text("", 0.0, y + 4.0, &cut(&compared.parameter, NAME_AT_MOST)))
        @if let Some(at) = drawable(compared).and_then(|ratio| x.at(ratio)) {
            @if let Some((lo, hi)) = x.ends(compared.ratio_ci) { g class=(class) { (line("whisker", (lo, y), (hi, y))) } }
            (point(at, y, "3.5", &format!("fill {class}"), "ratios", &tip(compared)))
        }
    }
}

fn tip(compared: &Compared) -> String {
    format!(
        "{}: B / A {}\nA {}\nB {}",
        compared.parameter,
        compared.in_words(),
        value(&compared.a, &compared.unit),
        value(&compared.b, &compared.unit)
    )
}

/// Returns the ratio of one parameter over the size.
fn over_sizes(pair: &Pair, name: &str) -> Markup {
    let all = || pair.parameters.iter().filter(|compared| compared.parameter == name);
    let point = |compared: &Compared| {
        let value = drawable(compared)?;
        let tip = format!("{}, {}", bytes(compared.size_bytes as f64), tip(compared));
        Some(Point {
            x: compared.size_bytes as f64,
            value,
            ci: sound(compared.ratio_ci),
            is_bound: false,
            tip,
        })
    };
    let mut points: Vec<Point> = all().filter_map(point).collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    let is_empty = points.is_empty();
    let curves = [Curve { class: "layer-1".into(), label: "B / A".into(), points }];
    let plot = Plot::of(&curves, HALF, HEIGHT);
    let plot = Plot { y: Scale::log(reach(all()), MARGIN, plot.bottom(), plot.top()), ..plot };
    let drawn = html! {
        (plot.axes(OVER_MESSAGES, "B / A", round_number))
        @if let Some(one) = plot.y.at(1.0) { (line("axis", (plot.left(), one), (plot.right, one))) }
        (plot.draw(&curves))
    };
    html! {
        @if !is_empty {
            div { h3 { (pretty(name)) } figure { (chart(HALF, HEIGHT, &format!("Ratios of {name} over the size"), &drawn)) } }
        }
    }
}

/// Returns every figure and its ratio. Both figures of a row have one unit.
fn table(pair: &Pair) -> Markup {
    let has_sizes = pair.parameters.iter().any(|compared| compared.size_bytes != pair.size_bytes);
    let has_verdicts = pair.parameters.iter().any(|compared| compared.verdict.is_some());
    let heads = html! {
        (heads(["parameter"]))
        @if has_sizes { (heads(["bytes"])) }
        (heads(["A", "B", "B / A"]))
        th.text scope="col" { @if has_verdicts { "verdict" } @else { "B is" } }
    };
    let rows = html! {
        @for compared in &pair.parameters {
            @let both = [&compared.a, &compared.b];
            @let unit = Unit::common(both.iter().filter_map(|figure| figure.value));
            tr {
                th scope="row" { (pretty(&compared.parameter)) }
                @if has_sizes { td { (compared.size_bytes) } }
                @for figure in both { td { (cell(figure, &compared.unit, unit)) } }
                td { (two_lines(&compared.in_words())) }
                td.text { (words(compared).replace(' ', "\u{a0}")) }
            }
        }
    };
    grid(false, &heads, &rows)
}

/// Returns a figure of one side with its interval below it. A time has the unit `time`, and a share has none.
fn cell(figure: &SideFigure, unit: &str, time: Unit) -> Markup {
    let scale = match unit {
        "ns" => time,
        "ns_per_byte" => Unit { name: "ns/B", size: 1.0 },
        _ => Unit { name: "", size: 1.0 },
    };
    let Some(value) = figure.value.filter(|value| value.is_finite() && figure.status != Status::Unobservable)
    else {
        return html! { span.none { (NONE) } };
    };
    let bound = if figure.status == Status::UpperBound { "≤ " } else { "" };
    let ends = |ci: Interval| Interval { lo: ci.lo / scale.size, hi: ci.hi / scale.size };
    let text = number_and_interval(value / scale.size, sound(figure.ci).map(ends));
    let (number, interval) = text.split_once(' ').unwrap_or((&text, ""));
    html! {
        (bound) (with_minus(number))
        @if !scale.name.is_empty() { "\u{a0}" (scale.name) }
        @if !interval.is_empty() { span.ci { (with_minus(interval)) } }
    }
}
