//! Charts of ratios over a count, with the line of the model.

use super::interval_of;
use crate::html::chart::{EndLabel, HALF, chart, end_labels, levels, names_along};
use crate::html::parts::{line, point, shown, sound, text, time};
use crate::html::scale::{Scale, path};
use maud::{Markup, html};
use netdyno_measure::contention::record::{Contention, Quotient};
use netdyno_measure::show::{number, per_second, round_number};

const HEIGHT: f64 = 290.0;
const LEFT: f64 = 48.0;
/// Labels of the model and of the measurement stand to its right.
const RIGHT: f64 = 300.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 244.0;
/// The largest number of counts named along the axis.
const COUNTS_AT_MOST: usize = 16;

/// A ratio at a count.
struct Point {
    count: usize,
    ratio: Quotient,
    model: f64,
    tip: String,
}

/// Returns the chart of g(K) / g(1) (Culler et al. 1996, table 5).
pub fn many_to_one(found: &Contention, confidence: f64) -> Markup {
    let points = found.many_to_one.iter().map(|at| Point {
        count: at.requesters,
        ratio: at.ratio,
        model: at.model,
        tip: format!(
            "{} to one: g(K) / g(1) {}\n{}\n{} per message; slowest / fastest {}",
            at.requesters,
            number(at.ratio.value),
            interval_of(&at.ratio, confidence),
            shown(&at.gap).map_or("no time".into(), time),
            number(at.slowest_over_fastest.value)
        ),
    });
    html! {
        figure {
            (over_count(&points.collect::<Vec<_>>(), "requesters K", "g(K) / g(1)", "model: K"))
            figcaption {
                "Time per message of one of K requesters over that of one alone, in the same launch. "
                "Dotted: by the LogP model the receiver takes one message in a gap, so that each of K waits K gaps."
            }
        }
    }
}

/// Returns the chart of the message rate of several pairs over that of one.
pub fn rates(found: &Contention, confidence: f64) -> Markup {
    let points = found.rates.iter().map(|rate| Point {
        count: rate.pairs,
        ratio: rate.ratio,
        model: rate.model,
        tip: format!(
            "{} at once: {} of one pair's messages\n{}\n{} in all",
            rate.pairs,
            number(rate.ratio.value),
            interval_of(&rate.ratio, confidence),
            per_second(rate.messages_per_s.value)
        ),
    });
    html! {
        figure {
            (over_count(&points.collect::<Vec<_>>(), "pairs", "messages, of one pair's", "model"))
            figcaption {
                "What pairs get through together over what one gets through alone, in the same launch. "
                "Dotted: by the LogP model pairs do not notice each other."
            }
        }
    }
}

fn over_count(points: &[Point], of: &str, what: &str, model: &str) -> Markup {
    let known: Vec<&Point> =
        points.iter().filter(|point| point.ratio.launches > 0 && point.ratio.value.is_finite()).collect();
    let most = points.iter().map(|point| point.count).max().unwrap_or(1);
    let x = Scale::between(0.0, most as f64 + 0.35, LEFT, RIGHT);
    let ends = known.iter().flat_map(|point| {
        let ci = sound(point.ratio.ci);
        [point.ratio.value, ci.map_or(0.0, |ci| ci.hi)]
    });
    let models = points.iter().map(|point| point.model).filter(|model| model.is_finite());
    let y = Scale::linear(ends.chain(models.clone()).map(|value| value * 1.06), BOTTOM, TOP);
    let model_path =
        path(points.iter().filter_map(|point| Some((x.at(point.count as f64)?, y.within(point.model)?))));
    let stride = most.div_ceil(COUNTS_AT_MOST).max(1);
    let counts: Vec<(f64, String)> = (stride..=most)
        .step_by(stride)
        .filter_map(|count| Some((x.at(count as f64)?, count.to_string())))
        .collect();
    let end_of_model = points.last().and_then(|last| y.within(last.model));
    let end_of_measured = known.last().and_then(|last| y.within(last.ratio.value));
    let ends = [(end_of_model, "plain", model), (end_of_measured, "g", "measured")];
    let ends: Vec<EndLabel<'_>> =
        ends.into_iter().filter_map(|(y, class, label)| Some(EndLabel { y: y?, class, label })).collect();
    let drawn = html! {
        (levels((LEFT, RIGHT), 6.0, &y.named(6, round_number)))
        (line("axis", (LEFT, BOTTOM), (RIGHT, BOTTOM)))
        (names_along(BOTTOM + 18.0, &counts))
        (text("soft mid", (LEFT + RIGHT) / 2.0, BOTTOM + 38.0, of))
        (text("soft", 0.0, 12.0, what))
        path.line.expected.plain d=(model_path) {}
        (end_labels(RIGHT, (TOP, BOTTOM), &ends))
        @for point_of in &known {
            @if let (Some(at), Some(level)) = (x.at(point_of.count as f64), y.within(point_of.ratio.value)) {
                @if let Some((lo, hi)) = y.ends(point_of.ratio.ci) { g.g { (line("whisker", (at, lo), (at, hi))) } }
                (point(at, level, "3.5", "fill g", "ratio", &point_of.tip))
            }
        }
    };
    chart(HALF, HEIGHT, &format!("{what} over {of}"), &drawn)
}
