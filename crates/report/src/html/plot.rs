//! Curves over a logarithmic axis: the common parts of the figures.

use super::chart::{EndLabel, chart, end_labels, levels, room_for, uprights};
use super::parts::{cut, line, point, round_time, text};
use super::scale::{Scale, path, reach};
use super::subject::Subject;
use maud::{Markup, html};
use netdyno_measure::show::{bytes, percent};
use netdyno_measure::stats::Interval;

/// Largest number of characters of a label at the end of a curve.
const LABEL_AT_MOST: usize = 16;
/// The axis of the size of messages.
pub const OVER_MESSAGES: Along = Along::Bytes("bytes in a message, n");

/// A point of a curve.
pub struct Point {
    /// The position on the horizontal axis.
    pub x: f64,
    /// The value.
    pub value: f64,
    /// The interval of the value, if there is one.
    pub ci: Option<Interval>,
    /// True if the value is an upper bound.
    pub is_bound: bool,
    /// The tooltip.
    pub tip: String,
}

/// A curve.
pub struct Curve {
    /// The class of its colour.
    pub class: String,
    /// The text at its end.
    pub label: String,
    /// The points, ascending.
    pub points: Vec<Point>,
}

impl Curve {
    /// Returns the curve of a subject. If its result has a label of its own, that label is enough.
    pub fn of<T>(subject: &Subject<'_, T>, points: Vec<Point>) -> Self {
        let Subject { result, label, colour, .. } = subject;
        let own = result.label.as_deref().filter(|_| *label == result.name());
        Self { class: colour.clone(), label: cut(own.unwrap_or(label), LABEL_AT_MOST), points }
    }
}

/// The horizontal axis of a chart, with what it shows.
#[derive(Clone, Copy)]
pub enum Along {
    /// Sizes, with a tick for every second power of two.
    Bytes(&'static str),
    /// Times.
    Time(&'static str),
    /// Shares, on a linear axis from 0 to at least 1.
    Share(&'static str),
}

/// The vertical axis of a chart: what it shows, how a value is written, and the value that a linear axis
/// reaches at least. Without that value the axis is logarithmic.
pub type Up = (&'static str, fn(f64) -> String, Option<f64>);

/// A chart of curves: what it shows, and not how it is drawn. The horizontal axis is logarithmic, except for shares.
pub struct Chart {
    /// The heading above it.
    pub heading: Markup,
    /// The text that a screen reader reads.
    pub label: String,
    /// Width and height.
    pub size: (f64, f64),
    /// Both axes.
    pub axes: (Along, Up),
    /// The curves.
    pub curves: Vec<Curve>,
    /// The text below it.
    pub caption: Markup,
}

impl Chart {
    /// Returns the chart with its caption.
    pub fn figure(&self) -> Markup {
        let ((width, height), (along, (title, tick, linear_to))) = (self.size, self.axes);
        let plot = Plot::of(&self.curves, width, height);
        let plot = if let Along::Share(_) = along { plot.over_shares(&self.curves) } else { plot };
        let plot = linear_to.map_or(plot, |to| plot.linear(&self.curves, to));
        let drawn = html! { (plot.axes(along, title, tick)) (plot.draw(&self.curves)) };
        html! { figure { (chart(width, height, &self.label, &drawn)) figcaption { (self.caption) } } }
    }
}

/// Returns charts in pairs, each below its heading.
pub fn pairs(charts: &[Chart]) -> Markup {
    html! {
        @for pair in charts.chunks(2) {
            div.pair { @for chart in pair { div { h3 { (chart.heading) } (chart.figure()) } } }
        }
    }
}

/// The paper of a plot, and its axes.
#[derive(Clone, Copy)]
pub struct Plot {
    /// Height of the paper.
    pub height: f64,
    /// The right end of the horizontal axis; labels stand to the right of it.
    pub right: f64,
    /// The horizontal axis.
    pub x: Scale,
    /// The vertical axis.
    pub y: Scale,
}

const LEFT: f64 = 66.0;
const TOP: f64 = 22.0;
const BELOW: f64 = 46.0;
/// One tick of sizes for this many powers of two.
const TICK_EVERY: usize = 2;

impl Plot {
    /// Returns a plot that contains all of `curves`, with room for their labels. Both axes are logarithmic.
    pub fn of(curves: &[Curve], width: f64, height: f64) -> Self {
        let right = right_of(curves, width);
        let points = || curves.iter().flat_map(|curve| &curve.points);
        let x = Scale::log(points().map(|p| p.x), 1.25, LEFT, right);
        let y = Scale::log(points().flat_map(|p| reach(p.value, p.ci)), 1.2, height - BELOW, TOP);
        Self { height, right, x, y }
    }

    /// Returns a plot over the values of a dial. Both axes are linear, and the horizontal one begins at the
    /// unmodified link.
    pub fn of_dial(curves: &[Curve], width: f64, height: f64) -> Self {
        let right = right_of(curves, width);
        let points = || curves.iter().flat_map(|curve| &curve.points);
        let x = Scale::linear(points().map(|p| p.x).chain([0.0]), LEFT, right);
        let highest = points().map(|p| p.ci.map_or(p.value, |ci| ci.hi)).fold(1.1, f64::max);
        let lowest = points().map(|p| p.ci.map_or(p.value, |ci| ci.lo)).fold(0.98, f64::min);
        let y = Scale::between(lowest, highest, height - BELOW, TOP);
        Self { height, right, x, y }
    }

    /// Returns the plot with a linear vertical axis, from 0 to at least `to`.
    fn linear(self, curves: &[Curve], to: f64) -> Self {
        let points = curves.iter().flat_map(|curve| &curve.points);
        let ends = |p: &Point| p.ci.into_iter().flat_map(|ci| [ci.lo, ci.hi]);
        let values = points.flat_map(|p| ends(p).chain([p.value])).chain([to]);
        Self { y: Scale::linear(values, self.height - BELOW, TOP), ..self }
    }

    /// Returns the plot with a linear horizontal axis, from 0 to at least 1.
    fn over_shares(self, curves: &[Curve]) -> Self {
        let shares = curves.iter().flat_map(|curve| &curve.points).map(|p| p.x).chain([1.04]);
        Self { x: Scale::linear(shares, LEFT, self.right), ..self }
    }

    /// Returns the left end of the horizontal axis.
    pub fn left(&self) -> f64 {
        LEFT
    }

    /// Returns the lower edge of the plot.
    pub fn bottom(&self) -> f64 {
        self.height - BELOW
    }

    /// Returns the upper edge of the plot.
    pub fn top(&self) -> f64 {
        TOP
    }

    /// Returns grid, ticks and titles; `tick` formats a value of the vertical axis.
    pub fn axes(&self, along: Along, title: &str, tick: impl Fn(f64) -> String) -> Markup {
        match along {
            Along::Time(of) => self.frame((title, tick), (of, round_time), &self.x.ticks(6)),
            Along::Share(of) => self.frame((title, tick), (of, percent), &self.x.ticks(6)),
            Along::Bytes(of) => {
                let (lo, hi) = self.x.domain();
                let sizes = (0..usize::BITS as usize).step_by(TICK_EVERY).map(|log| (1u64 << log) as f64);
                let sizes: Vec<f64> = sizes.filter(|size| (lo..=hi).contains(size)).collect();
                self.frame((title, tick), (of, bytes), &sizes)
            }
        }
    }

    /// Returns the same over the values of a dial; `name` formats a value of the dial.
    pub fn axes_over_dial(
        &self,
        title: &str,
        tick: impl Fn(f64) -> String,
        of: &str,
        name: impl Fn(f64) -> String,
    ) -> Markup {
        self.frame((title, tick), (of, name), &self.x.ticks(5))
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
            (levels((LEFT, self.right), 8.0, &self.y.named(7, tick)))
            (uprights((TOP, self.bottom()), self.bottom() + 18.0, &places))
            (line("axis", (LEFT, self.bottom()), (self.right, self.bottom())))
            (text("soft mid", (LEFT + self.right) / 2.0, self.bottom() + 38.0, of))
            (text("soft", 0.0, 12.0, title))
        }
    }

    /// Returns the lines of all curves, then their intervals, points and labels.
    pub fn draw(&self, curves: &[Curve]) -> Markup {
        self.draw_beside(curves, Vec::new())
    }

    /// Returns the same if other lines with labels also end at the right.
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
        let kind = if p.is_bound { "open" } else { "fill" };
        html! {
            @if let Some((lo, hi)) = self.y.ends(p.ci) {
                @if (lo - hi).abs() > 1.0 { g class=(curve.class) { (line("whisker", (x, lo), (x, hi))) } }
            }
            (point(x, y, "2.6", &format!("{kind} {}", curve.class), &curve.label, &p.tip))
        }
    }
}

/// Returns the right end of the horizontal axis that leaves room for the labels of `curves`.
fn right_of(curves: &[Curve], width: f64) -> f64 {
    width - room_for(curves.iter().map(|curve| &curve.label[..]))
}
