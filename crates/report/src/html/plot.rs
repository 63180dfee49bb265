//! Curves over a logarithmic axis: what the figures have in common.

use super::chart::{EndLabel, end_labels, names_along, room_for};
use super::parts::{cut, line, point, round_time, text};
use super::scale::{Scale, path};
use crate::quantity::bytes;
use maud::{Markup, html};
use netdyno_measure::record::LayerResult;
use netdyno_measure::stats::Interval;

/// Characters of a label at the end of a curve.
const LABEL_AT_MOST: usize = 16;

/// What stands at the end of a curve, of a result that is called `name`: its own label is enough.
pub fn end_label(result: &LayerResult, name: &str) -> String {
    let own = result.label.as_deref().filter(|_| name == result.name());
    cut(own.unwrap_or(name), LABEL_AT_MOST)
}

/// A point of a curve.
pub struct Point {
    /// Where it is on the horizontal axis.
    pub x: f64,
    /// Its figure.
    pub value: f64,
    /// The interval of that, where there is one.
    pub ci: Option<Interval>,
    /// Whether the figure is an upper bound.
    pub is_bound: bool,
    /// What is said about it.
    pub tip: String,
}

/// A curve.
pub struct Curve {
    /// The class of its colour.
    pub class: String,
    /// What stands at its end.
    pub label: String,
    /// Ascending.
    pub points: Vec<Point>,
}

/// The paper of a plot and its axes.
pub struct Plot {
    /// Height of the paper.
    pub height: f64,
    /// Where the horizontal axis ends; labels stand behind it.
    pub right: f64,
    /// Sizes, or whatever the curves are over.
    pub x: Scale,
    /// Figures.
    pub y: Scale,
}

const LEFT: f64 = 66.0;
const TOP: f64 = 22.0;
const BELOW: f64 = 46.0;
/// Powers of two between two ticks of sizes.
const TICK_EVERY: usize = 2;

impl Plot {
    /// A plot in which all of `curves` have a place, with room for their labels; both axes are
    /// logarithmic.
    pub fn of(curves: &[Curve], width: f64, height: f64) -> Self {
        let right = right_of(curves, width);
        let points = || curves.iter().flat_map(|curve| &curve.points);
        let x = Scale::log(points().map(|p| p.x), 1.25, LEFT, right);
        let y = Scale::log(points().map(|p| p.value), 1.2, height - BELOW, TOP);
        Self { height, right, x, y }
    }

    /// A plot of what becomes of something as a dial is turned: both axes are linear, and begin at
    /// the link as it is.
    pub fn of_dial(curves: &[Curve], width: f64, height: f64) -> Self {
        let right = right_of(curves, width);
        let points = || curves.iter().flat_map(|curve| &curve.points);
        let x = Scale::linear(points().map(|p| p.x).chain([0.0]), LEFT, right);
        let highest = points().map(|p| p.ci.map_or(p.value, |ci| ci.hi)).fold(1.1, f64::max);
        let lowest = points().map(|p| p.ci.map_or(p.value, |ci| ci.lo)).fold(0.98, f64::min);
        let y = Scale::between(lowest, highest, height - BELOW, TOP);
        Self { height, right, x, y }
    }

    /// Grid and ticks of such a plot; `name` says a value of the dial.
    pub fn axes_over_dial(
        &self,
        title: &str,
        tick: impl Fn(f64) -> String,
        of: &str,
        name: impl Fn(f64) -> String,
    ) -> Markup {
        self.frame((title, tick), (of, name), &self.x.ticks(5))
    }

    /// The same with a linear axis for figures, from 0 to at least `to`.
    pub fn linear(self, curves: &[Curve], to: f64) -> Self {
        let values = curves.iter().flat_map(|curve| &curve.points).map(|p| p.value).chain([to]);
        Self { y: Scale::linear(values, self.height - BELOW, TOP), ..self }
    }

    /// Where the horizontal axis begins.
    pub fn left(&self) -> f64 {
        LEFT
    }

    /// The lowest place of the plot.
    pub fn bottom(&self) -> f64 {
        self.height - BELOW
    }

    /// The highest place of the plot.
    pub fn top(&self) -> f64 {
        TOP
    }

    /// Grid, ticks, and what the vertical axis is of; `tick` says a figure. Over sizes of messages.
    pub fn axes(&self, title: &str, tick: impl Fn(f64) -> String) -> Markup {
        self.axes_over_bytes(title, tick, "bytes in a message, n")
    }

    /// The same over sizes of what `of` names.
    pub fn axes_over_bytes(&self, title: &str, tick: impl Fn(f64) -> String, of: &str) -> Markup {
        let (lo, hi) = self.x.domain();
        let sizes = (0..usize::BITS as usize).step_by(TICK_EVERY).map(|log| (1u64 << log) as f64);
        let sizes: Vec<f64> = sizes.filter(|size| (lo..=hi).contains(size)).collect();
        self.frame((title, tick), (of, bytes), &sizes)
    }

    /// The same over times, which `of` names.
    pub fn axes_over_time(&self, title: &str, tick: impl Fn(f64) -> String, of: &str) -> Markup {
        self.frame((title, tick), (of, round_time), &self.x.ticks(6))
    }

    fn frame(
        &self,
        (title, tick): (&str, impl Fn(f64) -> String),
        (of, name): (&str, impl Fn(f64) -> String),
        along: &[f64],
    ) -> Markup {
        let places: Vec<(f64, String)> =
            along.iter().filter_map(|value| Some((self.x.at(*value)?, name(*value)))).collect();
        html! {
            @for value in self.y.ticks(7) {
                @if let Some(at) = self.y.at(value) {
                    (line("grid", (LEFT, at), (self.right, at)))
                    (text("soft end", LEFT - 8.0, at + 4.0, &tick(value)))
                }
            }
            @for (at, _) in &places { (line("grid", (*at, TOP), (*at, self.bottom()))) }
            (names_along(self.bottom() + 18.0, &places))
            (line("axis", (LEFT, self.bottom()), (self.right, self.bottom())))
            (text("soft mid", (LEFT + self.right) / 2.0, self.bottom() + 38.0, of))
            (text("soft", 0.0, 12.0, title))
        }
    }

    /// The lines of all curves, then their intervals, points and names.
    pub fn draw(&self, curves: &[Curve]) -> Markup {
        self.draw_beside(curves, Vec::new())
    }

    /// The same, where other lines end at the right as well, with labels of their own.
    pub fn draw_beside<'a>(&self, curves: &'a [Curve], others: Vec<EndLabel<'a>>) -> Markup {
        let place = |p: &Point| Some((self.x.at(p.x)?, self.y.at(p.value)?));
        let end = |curve: &'a Curve| {
            let (_, y) = curve.points.iter().rev().find_map(place)?;
            Some(EndLabel { y, class: &curve.class, label: &curve.label })
        };
        let labels: Vec<EndLabel<'_>> = curves.iter().filter_map(end).chain(others).collect();
        html! {
            @for curve in curves {
                path class={ "line " (curve.class) } d=(path(curve.points.iter().filter_map(place))) {}
            }
            @for curve in curves {
                @for p in &curve.points { @if let Some(at) = place(p) { (self.mark(curve, p, at)) } }
            }
            (end_labels(self.right, (TOP, self.bottom()), &labels))
        }
    }

    fn mark(&self, curve: &Curve, p: &Point, (x, y): (f64, f64)) -> Markup {
        let reach = p.ci.and_then(|ci| Some((self.y.within(ci.lo)?, self.y.within(ci.hi)?)));
        let kind = if p.is_bound { "open" } else { "fill" };
        html! {
            @if let Some((lo, hi)) = reach {
                @if (lo - hi).abs() > 1.0 { g class=(curve.class) { (line("whisker", (x, lo), (x, hi))) } }
            }
            (point(x, y, "2.6", &format!("{kind} {}", curve.class), &curve.label, &p.tip))
        }
    }
}

/// Where the horizontal axis of a plot ends that has room for the labels of `curves`.
fn right_of(curves: &[Curve], width: f64) -> f64 {
    width - room_for(curves.iter().map(|curve| &curve.label[..]))
}
