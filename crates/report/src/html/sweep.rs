//! A sweep on one page: a plot of the slowdown for each dial, as Martin et al. (ISCA 1997) drew them.

use super::chart::{HALF, chart};
use super::grid::{grid, heads, row};
use super::parts::{colour, line, pretty, sound};
use super::plot::{Curve, Plot, Point};
use crate::sweep::{
    is_felt, link, metric, metric_of, of_predicted, sentences, slope_in_words, slowdown as of_point, value,
    value_or_none, verdict,
};
use maud::{Markup, html};
use netdyno_measure::show::{NONE, Number, Percent};
use netdyno_measure::stats::Interval;
use netdyno_measure::sweep::{Point as SweptPoint, SLOWDOWNS, Sweep, Swept};

const HEIGHT: f64 = 280.0;

/// The title of the page. It does not name the program, because a command line does not show which of its
/// words is the program. The whole command stands below the title.
pub const TITLE: &str = "What a program depends on";

/// Returns the header above the plots.
pub fn header(sweep: &Sweep) -> Markup {
    html! {
        h1 { (TITLE) }
        p.sub { (sweep.began) " · " (sweep.place) @if let Some(provider) = &sweep.provider { " · " (provider) } }
        p.sub { code { (sweep.command.join(" ")) } }
        p.lead { (pretty(&verdict(sweep))) "." }
    }
}

/// Returns the tables and plots of all dials.
pub fn main(sweep: &Sweep) -> Markup {
    html! {
        section {
            h2 { "How far each dial goes" }
            (tolerances(sweep))
            p.sub { (metric(sweep)) ", " (sweep.runs.len()) " runs, " (link(sweep)) }
        }
        section {
            h2 { "Slowdown" }
            div.pair {
                @for swept in &sweep.dials { div { h3 { (swept.dial) } (plot(sweep, swept)) } }
            }
        }
        @for swept in &sweep.dials {
            section {
                h2 { (swept.dial) }
                ul.findings { @for sentence in sentences(sweep, swept) { li { (pretty(&sentence)) } } }
                (points(swept))
            }
        }
        @if !sweep.doubts.is_empty() {
            section { h2 { "Doubts" } ul.findings { @for doubt in &sweep.doubts { li { (pretty(doubt)) } } } }
        }
    }
}

fn tolerances(sweep: &Sweep) -> Markup {
    let heads = html! {
        (heads(["dial"]))
        @for share in SLOWDOWNS { th scope="col" { (Percent(share)) " slower at" } }
        (heads(["slope", "of the predicted", "knee"]))
    };
    let rows = sweep.dials.iter().map(|swept| {
        let others = [
            swept.slope.map_or(NONE.into(), |slope| slope_in_words(sweep, swept, slope)),
            of_predicted(swept).map_or(NONE.into(), |share| Percent(share).to_string()),
            value_or_none(swept, swept.knee.map(|knee| knee.at)),
        ];
        // A dial that the program does not feel is not tolerated up to a value.
        let is_felt = is_felt(sweep, swept);
        let cells =
            swept.tolerance.iter().map(|tolerance| value_or_none(swept, tolerance.value.filter(|_| is_felt)));
        row(&swept.dial, cells.chain(others))
    });
    grid(false, &heads, &html! { @for row in rows { (row) } })
}

/// Returns the plot of the slowdown over the values of a dial, with the range; 1 is the unmodified link.
fn plot(sweep: &Sweep, swept: &Swept) -> Markup {
    let link = swept.points.first().map_or(f64::NAN, |point| point.median);
    let slowdown = |metric: f64| if sweep.higher_is_better { link / metric } else { metric / link };
    // A metric of 0 has no slowdown.
    let shown = swept.points.iter().filter(|point| point.slowdown.is_finite());
    let drawn: Vec<Point> = shown
        .map(|point| {
            let (a, b) = (slowdown(point.range.lo), slowdown(point.range.hi));
            Point {
                x: point.value,
                value: point.slowdown,
                ci: sound(Some(Interval { lo: a.min(b), hi: a.max(b) })),
                is_bound: false,
                tip: format!(
                    "{}: {} times, median {}",
                    value(swept, point.value),
                    of_point(point),
                    Number(point.median)
                ),
            }
        })
        .collect();
    let curves = [Curve { class: colour(0), label: "measured".into(), points: drawn }];
    let plot = Plot::of_dial(&curves, HALF, HEIGHT);
    let ends = swept.points.first().zip(swept.points.last());
    let times =
        |slowdown: f64| format!("{slowdown:.3}").trim_end_matches('0').trim_end_matches('.').to_owned();
    let drawn = html! {
        (plot.axes_over_dial("slowdown", times, &swept.dial, |at| value(swept, at)))
        @if let Some((first, last)) = ends {
            @if let (Some(from), Some(to), Some(one)) = (plot.x.at(first.value), plot.x.at(last.value), plot.y.at(1.0)) {
                (line("axis", (from, one), (to, one)))
            }
        }
        (plot.draw(&curves))
    };
    chart(HALF, HEIGHT, &format!("Slowdown over {}", swept.dial), &drawn)
}

fn points(swept: &Swept) -> Markup {
    let cells = |point: &SweptPoint| {
        let seconds = [point.median, point.range.lo, point.range.hi].map(metric_of);
        let others = [of_point(point), point.runs.to_string()];
        row(value(swept, point.value), seconds.into_iter().chain(others))
    };
    let names = ["value", "median", "least", "greatest", "slowdown", "runs"];
    grid(false, &heads(names), &html! { @for point in &swept.points { (cells(point)) } })
}
