//! The chart of all parameters of all layers on one logarithmic axis, with their intervals.

use super::chart::{WIDE, chart, uprights};
use super::parts::{cut, line, parameter_tip, point, rect, round_time, shown, sound, text, time};
use super::scale::{Scale, reach};
use super::subject::Signature;
use crate::logp::in_words;
use maud::{Markup, html};
use netdyno_measure::record::{Parameter, Status, TIMES};

const ROW: f64 = 17.0;
const BETWEEN: f64 = 12.0;
const TOP: f64 = 8.0;
/// Largest number of characters of a layer's name beside the name of a parameter, and below it.
const BESIDE: usize = 14;
const BELOW: usize = 30;
/// From left to right: the names of parameters, the names of layers, and the lane for values not above
/// zero.
const LAYERS_AT: f64 = 264.0;
const LANE: (f64, f64) = (272.0, 354.0);
const LEFT: f64 = 366.0;
const RIGHT: f64 = 790.0;

/// Returns the figure with its caption.
pub fn figure(subjects: &[Signature<'_>]) -> Markup {
    let parameters = || subjects.iter().flat_map(|s| s.result.parameters.times()).map(|(_, p)| p);
    let values = || parameters().filter_map(shown);
    let ends = parameters().filter_map(|p| Some(reach(shown(p)?, sound(p.ci_ns))));
    let scale = Scale::log(ends.flatten(), 1.3, LEFT, RIGHT);
    let are_beside = subjects.iter().all(|subject| subject.label.chars().count() <= BESIDE);
    let below = if are_beside { 0.0 } else { ROW };
    let group = below + ROW * subjects.len() as f64 + BETWEEN;
    let bottom = TOP + group * TIMES.len() as f64;
    let has_lane = values().any(|ns| ns <= 0.0);
    let drawn = html! {
        @if has_lane {
            (rect("band", (LANE.0, TOP - 6.0), (LANE.1, bottom - 4.0)))
            (text("soft mid", (LANE.0 + LANE.1) / 2.0, bottom + 14.0, "≤ 0"))
        }
        (uprights((TOP - 6.0, bottom - 4.0), bottom + 14.0, &scale.named(8, round_time)))
        @for (row, name) in TIMES.into_iter().enumerate() {
            @let words = if name == "rtt" { in_words(name).to_owned() } else { format!("{name}  {}", in_words(name)) };
            @let top = TOP + group * row as f64;
            (text(&format!("fill {name} head"), 0.0, top + 12.0, &words))
            @for (at, subject) in subjects.iter().enumerate() {
                (dot(subject, row, top + below + ROW * at as f64 + 8.0, &scale))
            }
        }
    };
    html! {
        figure {
            (chart(WIDE, bottom + 26.0, "All parameters of all layers on a logarithmic axis", &drawn))
            figcaption {
                "Every parameter on one logarithmic axis. Bars: the interval, often narrower than the point. "
                "Open points with an arrow are upper bounds."
                @if has_lane { " What is not above zero has no place on such an axis and stands in the shaded lane." }
            }
        }
    }
}

fn dot(subject: &Signature<'_>, row: usize, y: f64, scale: &Scale) -> Markup {
    let (name, p): (&str, &Parameter) = subject.result.parameters.times()[row];
    let tip = parameter_tip(&subject.label, name, p, subject.confidence());
    html! {
        (text("soft end", LAYERS_AT, y + 4.0, &cut(&subject.label, BELOW)))
        @match shown(p) {
            None => (text("soft", LEFT, y + 4.0, "cannot be seen")),
            Some(ns) if ns <= 0.0 => {
                (point(LANE.0 + 8.0, y, "3.5", &format!("open {name}"), name, &tip))
                (text(&format!("fill {name}"), LANE.0 + 15.0, y + 4.0, &time(ns)))
            },
            Some(ns) => @if let Some(x) = scale.at(ns) {
                g class=(name) {
                    @if let Some((lo, hi)) = scale.ends(p.ci_ns) { (line("whisker", (lo, y), (hi, y))) }
                    @if p.status == Status::UpperBound {
                        (line("whisker", (x - 4.0, y), (x - 17.0, y)))
                        path.line d={ "M" (x - 13.0) " " (y - 3.5) "l-4.5 3.5l4.5 3.5" } {}
                    }
                }
                (point(x, y, "3.5", &format!("{} {name}", if p.status == Status::UpperBound { "open" } else { "fill" }), name, &tip))
            },
        }
    }
}
