//! One-way time and gap as bars, side by side (Culler et al. 1996, figure 6).
//!
//! The left bar of a layer is the one-way time, stacked from o_s, L and o_r. The right bar is g, hatched if
//! it is a bound. A negative part hangs below zero.

use super::chart::{levels, width_of};
use super::parts::{
    cut, figure as in_words, line, parameter_tip, rect, rect_with_tip, round_time, shown, text, time,
};
use super::scale::{Scale, px, spread};
use super::subject::Signature;
use maud::{Markup, html};
use netdyno_measure::record::{Parameter, Parameters, Status};

/// Layers share one axis if the tallest is at most this many times the lowest.
const ONE_AXIS: f64 = 6.0;

const WIDTH: f64 = 248.0;
const HEIGHT: f64 = 262.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 232.0;
const LEFT: f64 = 50.0;
const BAR: f64 = 28.0;
const ONE_WAY_AT: f64 = LEFT + 8.0;
const GAP_AT: f64 = LEFT + 144.0;

/// Returns the figure with its caption.
pub fn figure(subjects: &[Signature<'_>]) -> Markup {
    let reaches: Vec<(f64, f64)> = subjects.iter().map(|subject| reach(&subject.result.parameters)).collect();
    let highest = reaches.iter().map(|(_, hi)| *hi).fold(0.0, f64::max);
    let lowest = reaches.iter().map(|(_, hi)| *hi).filter(|hi| *hi > 0.0).fold(f64::INFINITY, f64::min);
    let shares_axis = highest <= ONE_AXIS * lowest;
    let deepest = reaches.iter().map(|(lo, _)| *lo).fold(0.0, f64::min);
    html! {
        figure {
            div.panels {
                @for (subject, own) in subjects.iter().zip(&reaches) {
                    (panel(subject, if shares_axis { (deepest, highest) } else { *own }))
                }
            }
            figcaption {
                "Left bars: the one-way time of a message, stacked from the send overhead, the flight and the "
                "receive overhead. Right bars: the gap, the least time between messages; hatched where it is only an upper bound. "
                @if subjects.len() > 1 {
                    @if shares_axis { "All layers are drawn to one scale." }
                    @else { b { "Each layer is drawn to its own scale" } "; the next figure has them on one axis." }
                }
            }
        }
    }
}

fn stack(parameters: &Parameters) -> [(&'static str, &Parameter); 3] {
    [("o_s", &parameters.o_s), ("L", &parameters.L), ("o_r", &parameters.o_r)]
}

/// Returns how far the bars of a layer extend below and above zero, in nanoseconds.
fn reach(parameters: &Parameters) -> (f64, f64) {
    let values = || stack(parameters).into_iter().filter_map(|(_, p)| shown(p));
    let up: f64 = values().filter(|ns| *ns > 0.0).sum();
    let down: f64 = values().filter(|ns| *ns < 0.0).sum();
    let g = shown(&parameters.g).unwrap_or(0.0);
    (down.min(g), up.max(g))
}

fn panel(subject: &Signature<'_>, (lo, hi): (f64, f64)) -> Markup {
    let scale = Scale::linear([lo, hi], BOTTOM, TOP);
    let zero = scale.within(0.0).unwrap_or(BOTTOM);
    html! {
        svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } width=(WIDTH) height=(HEIGHT) role="group"
            aria-label={ "One-way time and gap of " (subject.label) } {
            text.head x="0" y="14" { (cut(&subject.label, 32)) }
            (levels((LEFT, WIDTH), 6.0, &scale.named(4, round_time)))
            // Drawn before the labels, because a label may stand on the axis.
            (line("axis", (LEFT, zero), (WIDTH, zero)))
            (one_way(subject, &scale))
            (gap(subject, &scale, zero))
            (text("soft mid", ONE_WAY_AT + BAR / 2.0, BOTTOM + 18.0, "one way"))
            (text("soft mid", GAP_AT + BAR / 2.0, BOTTOM + 18.0, "gap"))
        }
    }
}

/// A part of the stack in the drawing.
struct Part<'a> {
    name: &'static str,
    parameter: &'a Parameter,
    is_negative: bool,
    from: f64,
    to: f64,
}

fn one_way(subject: &Signature<'_>, scale: &Scale) -> Markup {
    let (mut up, mut down) = (0.0, 0.0);
    let mut parts = Vec::new();
    for (name, parameter) in stack(&subject.result.parameters) {
        let Some(ns) = shown(parameter) else { continue };
        let end = if ns < 0.0 { &mut down } else { &mut up };
        let start = *end;
        *end += ns;
        if let (Some(from), Some(to)) = (scale.at(start), scale.at(*end)) {
            parts.push(Part { name, parameter, is_negative: ns < 0.0, from, to });
        }
    }
    let middles: Vec<f64> = parts.iter().map(|part| (part.from + part.to) / 2.0).collect();
    let labels = spread(&middles, 14.0, TOP, BOTTOM + 8.0);
    let right = ONE_WAY_AT + BAR;
    html! {
        @if parts.is_empty() { (text("soft", ONE_WAY_AT, BOTTOM - 8.0, "unknown")) }
        @for ((part, middle), label) in parts.iter().zip(&middles).zip(&labels) {
            @let class = format!("{} {}", if part.is_negative { "below" } else { "bar" }, part.name);
            (rect_with_tip(&class, (ONE_WAY_AT, part.from), (right, part.to), &tip(subject, part.name, part.parameter)))
            path.lead-line d={ "M" (px(right + 1.0)) " " (px(*middle)) "L" (px(right + 7.0)) " " (px(*label)) } {}
            @let says = format!("{} {}", part.name, time(shown(part.parameter).unwrap_or(0.0)));
            (on_paper(&says, right + 10.0, label + 4.0, -2.0))
            (text(&format!("fill {}", part.name), right + 10.0, label + 4.0, &says))
        }
    }
}

fn gap(subject: &Signature<'_>, scale: &Scale, zero: f64) -> Markup {
    let g = &subject.result.parameters.g;
    let middle = GAP_AT + BAR / 2.0;
    let Some(top) = shown(g).and_then(|ns| scale.at(ns)) else {
        return html! {
            (rect("mark-line", (GAP_AT, zero - 44.0), (GAP_AT + BAR, zero)))
            (text("soft mid", middle, zero - 66.0, "g cannot"))
            (text("soft mid", middle, zero - 52.0, "be seen"))
        };
    };
    let class = if g.status == Status::UpperBound { "bound g" } else { "bar g" };
    html! {
        (rect_with_tip(class, (GAP_AT, zero), (GAP_AT + BAR, top), &tip(subject, "g", g)))
        @let says = format!("g {}", in_words(g));
        (on_paper(&says, middle, top.min(zero) - 6.0, -width_of(&says) / 2.0))
        (text("fill g mid", middle, top.min(zero) - 6.0, &says))
    }
}

/// Returns the paper behind a label whose baseline is at `y`, so that no line crosses the label. The paper
/// begins at `x + from`.
fn on_paper(label: &str, x: f64, y: f64, from: f64) -> Markup {
    rect("paper", (x + from, y - 10.0), (x + from + width_of(label), y + 3.0))
}

fn tip(subject: &Signature<'_>, name: &str, p: &Parameter) -> String {
    parameter_tip(&subject.label, name, p, subject.confidence())
}
