//! Text and shapes that several parts of the page use.

use maud::{Markup, html};
use netdyno_measure::record::{Parameter, Status};
use netdyno_measure::show::{self, percent};
use netdyno_measure::stats::Interval;

/// Colours that tell layers apart.
pub const COLOURS: usize = 9;

/// Returns the class of the colour of the layer that comes after `before` others.
pub fn colour(before: usize) -> String {
    format!("layer-{}", before % COLOURS + 1)
}

/// Names with a subscript.
const SUBSCRIPTED: [&str; 5] = ["o_poll", "o_s", "o_r", "g_s", "g_r"];

/// Splits a text into plain pieces and names with a subscript: letter and index.
fn pieces(text: &str) -> Vec<(&str, Option<(&str, &str)>)> {
    let mut pieces = Vec::new();
    let mut from = 0;
    let mut found: Vec<(usize, &str)> = SUBSCRIPTED
        .iter()
        .flat_map(|name| text.match_indices(name))
        .filter(|found| is_word(text, found))
        .collect();
    found.sort_unstable();
    for (at, name) in found {
        pieces.push((&text[from..at], name.split_once('_')));
        from = at + name.len();
    }
    pieces.push((&text[from..], None));
    pieces
}

/// Reports whether a match is a whole word.
fn is_word(text: &str, (at, name): &(usize, &str)) -> bool {
    let is_inside = |c: char| c.is_alphanumeric() || c == '_';
    !text[..*at].ends_with(is_inside) && !text[at + name.len()..].starts_with(is_inside)
}

/// Returns a text for HTML, in which `o_s` is set as o with an index.
pub fn pretty(text: &str) -> Markup {
    let text = with_minus(text);
    html! {
        @for (plain, index) in pieces(&text) { (plain) @if let Some((letter, index)) = index { i { (letter) } sub { (index) } } }
    }
}

/// Returns the same for an SVG `text`.
pub fn pretty_svg(text: &str) -> Markup {
    let text = with_minus(text);
    html! {
        @for (at, (plain, index)) in pieces(&text).into_iter().enumerate() {
            // The text after an index returns to the line.
            @if at > 0 && !plain.is_empty() { tspan dy="-3" { (plain) } } @else { (plain) }
            @if let Some((letter, index)) = index {
                @if at > 0 && plain.is_empty() { tspan dy="-3" { (letter) } } @else { (letter) }
                tspan dy="3" font-size="9" { (index) }
            }
        }
    }
}

/// Replaces the hyphen before digits by a minus, which is as wide as a digit.
pub fn with_minus(text: &str) -> String {
    let before_digit = |at: usize| text[at + 1..].starts_with(|c: char| c.is_ascii_digit());
    let after_gap = |at: usize| at == 0 || text[..at].ends_with([' ', '[', '≤']);
    let minus =
        |(at, c): (usize, char)| if c == '-' && before_digit(at) && after_gap(at) { '−' } else { c };
    text.char_indices().map(minus).collect()
}

/// Returns a time for text in the page. The unit stays in the line of its number.
pub fn time(ns: f64) -> String {
    unbroken(&with_minus(&show::time(ns)))
}

/// Returns a round time, for axes and options.
pub fn round_time(ns: f64) -> String {
    unbroken(&with_minus(&show::round_time(ns)))
}

fn unbroken(text: &str) -> String {
    text.replace(' ', "\u{a0}")
}

/// Returns the value of a parameter, if it has one that can be shown.
pub fn shown(p: &Parameter) -> Option<f64> {
    p.value_ns.filter(|ns| ns.is_finite() && p.status != Status::Unobservable)
}

/// Returns a parameter in words, with `≤` if it is a bound.
pub fn figure(p: &Parameter) -> String {
    match (p.status, shown(p)) {
        (Status::UpperBound, Some(ns)) => format!("≤ {}", time(ns)),
        (_, Some(ns)) => time(ns),
        (_, None) => show::NONE.into(),
    }
}

/// Returns an interval that can be drawn.
pub fn sound(interval: Option<Interval>) -> Option<Interval> {
    interval.filter(|ci| ci.lo.is_finite() && ci.hi.is_finite())
}

/// Returns the tooltip of a parameter.
pub fn parameter_tip(of: &str, name: &str, p: &Parameter, confidence: f64) -> String {
    let mut lines = vec![format!("{of}: {name}"), figure(p)];
    if let (Some(ns), Some(ci)) = (shown(p), sound(p.ci_ns)) {
        lines.push(interval_words(ns, ci, confidence));
    }
    lines.push(format!("{} samples, {}", p.samples, show::counted(p.launches, "launch", "launches")));
    lines.join("\n")
}

/// Returns an interval with its confidence, as `95 % interval [310, 314] ns`.
pub fn interval_words(value_ns: f64, ci: Interval, confidence: f64) -> String {
    let bracket = with_minus(&show::time_interval(value_ns, ci, usize::MAX));
    let figures = unbroken(&format!("{bracket} {}", show::Unit::of(value_ns).name));
    format!("{} interval {figures}", unbroken(&percent(confidence)))
}

/// Returns a parameter with its interval in words.
pub fn in_full(p: &Parameter, confidence: f64) -> String {
    match (shown(p), sound(p.ci_ns)) {
        (Some(ns), Some(ci)) => format!("{} ({})", figure(p), interval_words(ns, ci, confidence)),
        _ => figure(p),
    }
}

/// Returns a tooltip in one line, for a screen reader.
pub fn spoken(tip: &str) -> String {
    tip.replace('\n', ", ")
}

/// Returns a point that shows `tip` on hover and on focus.
pub fn point(x: f64, y: f64, radius: &str, class: &str, series: &str, tip: &str) -> Markup {
    html! {
        circle class={ "pt " (class) } cx=(super::scale::px(x)) cy=(super::scale::px(y)) r=(radius)
            data-series=(series) data-tip=(tip) role="img" aria-label=(spoken(tip)) {}
    }
}

/// Returns a straight line.
pub fn line(class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) -> Markup {
    use super::scale::px;
    html! { line class=(class) x1=(px(x1)) y1=(px(y1)) x2=(px(x2)) y2=(px(y2)) {} }
}

/// Returns a text in a plot.
pub fn text(class: &str, x: f64, y: f64, text: &str) -> Markup {
    use super::scale::px;
    html! { text class=(class) x=(px(x)) y=(px(y)) { (pretty_svg(text)) } }
}

/// Returns a rectangle between two opposite corners.
pub fn rect(class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) -> Markup {
    use super::scale::px;
    html! {
        rect class=(class) x=(px(x1.min(x2))) y=(px(y1.min(y2))) width=(px((x2 - x1).abs())) height=(px((y2 - y1).abs())) {}
    }
}

/// Returns a rectangle with a tooltip.
pub fn rect_with_tip(class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64), tip: &str) -> Markup {
    use super::scale::px;
    html! {
        rect class={ "pt " (class) } x=(px(x1.min(x2))) y=(px(y1.min(y2))) width=(px((x2 - x1).abs()))
            height=(px((y2 - y1).abs())) data-series="bars" data-tip=(tip) role="img" aria-label=(spoken(tip)) {}
    }
}

/// Returns `text`, cut to `most` characters.
pub fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.into();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// Returns the hatching of bounds, defined once for the page.
pub fn patterns() -> Markup {
    html! {
        svg width="0" height="0" style="position:absolute" aria-hidden="true" focusable="false" {
            defs {
                pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)" {
                    line x1="0" y1="0" x2="0" y2="5" stroke="#8c8c86" stroke-width="1.6" {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_set_low() {
        assert_eq!(
            pretty("g, o_s + o_poll").into_string(),
            "g, <i>o</i><sub>s</sub> + <i>o</i><sub>poll</sub>"
        );
        let svg = pretty_svg("o_s = 1").into_string();
        assert_eq!(svg, "o<tspan dy=\"3\" font-size=\"9\">s</tspan><tspan dy=\"-3\"> = 1</tspan>");
        assert_eq!(pretty("<b>").into_string(), "&lt;b&gt;");
        assert_eq!(pretty("g_r").into_string(), "<i>g</i><sub>r</sub>");
        assert_eq!(pretty("long_send, no_s").into_string(), "long_send, no_s");
    }

    #[test]
    fn only_signs_become_minus() {
        assert_eq!(with_minus("-2.4 µs [-2.5, -2.3], am-3, 1e-9"), "−2.4 µs [−2.5, −2.3], am-3, 1e-9");
    }

    #[test]
    fn long_names_are_cut() {
        assert_eq!((cut("abc", 3), cut("abcd", 3)), ("abc".into(), "ab…".into()));
    }
}
