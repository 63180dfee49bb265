//! The frame of a chart, and labels that do not overlap.
//!
//! A chart is drawn in units of its natural width, in which labels are 12 high. A window shows it slightly
//! larger or smaller. If even that is too wide, the frame of the chart scrolls, and the page does not.

use super::parts::{line, text};
use super::scale::{path, spread};
use maud::{Markup, html};

/// Natural width of a chart without a neighbour: fits a window of 800 pixels, and A4.
pub const WIDE: f64 = 816.0;
/// Natural width of a chart that may have a neighbour: fits a window of 400 pixels.
pub const HALF: f64 = 390.0;

/// Smallest distance between two names along an axis.
const APART: f64 = 6.0;
/// Height of a line of labels.
const LINE: f64 = 15.0;
/// Distance from the end of the plot to a label at the end of a curve.
const LEAD: f64 = 20.0;

/// Returns a chart of that size in its frame. A screen reader reads `label`.
pub fn chart(width: f64, height: f64, label: &str, drawn: &Markup) -> Markup {
    html! {
        div.chart {
            svg viewBox={ "0 0 " (width) " " (height) } style={ "--width:" (width) } role="group" aria-label=(label) { (drawn) }
        }
    }
}

/// Estimates the width of a label in DejaVu Sans, the widest font that systems commonly install.
pub fn width_of(label: &str) -> f64 {
    let width = |c: char| match c {
        'm' | 'M' | 'w' | 'W' | '%' => 11.5,
        '+' | '=' | '<' | '>' | '≤' | '−' | '∞' => 10.1,
        'i' | 'j' | 'l' | '.' | ',' | ':' | '\'' | ' ' | '\u{a0}' => 4.0,
        'f' | 'r' | 't' | '(' | ')' | '[' | ']' | '/' | '-' => 5.0,
        c if c.is_uppercase() => 8.6,
        _ => 7.6,
    };
    label.chars().map(width).sum()
}

/// Returns names along a horizontal axis with their baseline at `y`: all of them, or every second one and
/// so on, so that none touches its neighbour.
pub fn names_along(y: f64, names: &[(f64, String)]) -> Markup {
    let every = stride(names);
    html! { @for (x, name) in names.iter().step_by(every) { (text("soft mid", *x, y, name)) } }
}

/// Returns horizontal lines at places of a vertical axis, with their names `gap` to the left.
pub fn levels((left, right): (f64, f64), gap: f64, ticks: &[(f64, String)]) -> Markup {
    html! {
        @for (at, name) in ticks {
            (line("grid", (left, *at), (right, *at)))
            (text("soft end", left - gap, at + 4.0, name))
        }
    }
}

/// Returns vertical lines at places of a horizontal axis, with their names below. The baseline of the names is
/// at `y`.
pub fn uprights((top, bottom): (f64, f64), y: f64, ticks: &[(f64, String)]) -> Markup {
    html! { @for (at, _) in ticks { (line("grid", (*at, top), (*at, bottom))) } (names_along(y, ticks)) }
}

/// Returns the smallest stride at which no drawn name touches the next one.
fn stride(names: &[(f64, String)]) -> usize {
    let are_clear = |(a, b): (&(f64, String), &(f64, String))| {
        (b.0 - a.0).abs() >= (width_of(&a.1) + width_of(&b.1)) / 2.0 + APART
    };
    let is_enough = |every: &usize| {
        let drawn = || names.iter().step_by(*every);
        drawn().zip(drawn().skip(1)).all(are_clear)
    };
    (1..=names.len()).find(is_enough).unwrap_or(1)
}

/// A label at the right of a plot, next to the end of a curve.
pub struct EndLabel<'a> {
    /// The vertical position of the end of the curve.
    pub y: f64,
    /// The class of its colour.
    pub class: &'a str,
    /// The text.
    pub label: &'a str,
}

/// Returns the width that such labels need.
pub fn room_for<'a>(labels: impl IntoIterator<Item = &'a str>) -> f64 {
    LEAD + labels.into_iter().map(width_of).fold(0.0, f64::max)
}

/// Returns the labels of curves that end at `right`, moved apart between `top` and `bottom`.
pub fn end_labels(right: f64, (top, bottom): (f64, f64), labels: &[EndLabel<'_>]) -> Markup {
    let places: Vec<f64> = labels.iter().map(|label| label.y).collect();
    let moved = spread(&places, LINE, top, bottom);
    html! {
        @for (EndLabel { y, class, label }, to) in labels.iter().zip(&moved) {
            path.lead-line d=(path([(right + 4.0, *y), (right + LEAD - 4.0, *to)])) {}
            (text(&format!("fill {class}"), right + LEAD, to + 4.0, label))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_touch_are_left_out() {
        let names =
            |apart: f64| (0..9).map(|n| (apart * f64::from(n), "1 µs".to_owned())).collect::<Vec<_>>();
        assert_eq!(stride(&names(40.0)), 1);
        assert_eq!(stride(&names(20.0)), 2);
        assert_eq!(names_along(0.0, &names(20.0)).into_string().matches("<text").count(), 5);
        assert_eq!((stride(&[]), stride(&names(0.0))), (1, 9));
    }
}
