//! A sweep on one page: a plot of the slowdown for each dial, as Martin et al. (ISCA 1997) drew them.

use super::chart::{HALF, chart};
use super::parts::{colour, line, pretty};
use super::plot::{Curve, Plot, Point};
use crate::sweep::{link, metric, of_predicted, sentences, tolerated, value, verdict};
use maud::{Markup, html};
use netdyno_measure::show::{Number, Percent};
use netdyno_measure::stats::Interval;
use netdyno_measure::sweep::{SLOWDOWNS, Sweep, Swept};

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
    html! {
        div.scroll {
            table {
                thead {
                    tr {
                        th scope="col" { "dial" }
                        @for share in SLOWDOWNS { th scope="col" { (Percent(share)) " slower at" } }
                        th scope="col" { "slope" }
                        th scope="col" { "of the predicted" }
                        th scope="col" { "knee" }
                    }
                }
                tbody {
                    @for swept in &sweep.dials {
                        tr {
                            th scope="row" { (swept.dial) }
                            @for tolerance in &swept.tolerance { td { (tolerated(swept, tolerance.value)) } }
                            td { (swept.slope.map_or("–".to_owned(), |slope| format!("{slope:.4}"))) }
                            td { (share(swept)) }
                            td { (tolerated(swept, swept.knee.map(|knee| knee.at))) }
                        }
                    }
                }
            }
        }
    }
}

fn share(swept: &Swept) -> String {
    of_predicted(swept).map_or("–".to_owned(), |share| Percent(share).to_string())
}

/// Returns the plot of the slowdown over the values of a dial, with the range; 1 is the unmodified link.
fn plot(sweep: &Sweep, swept: &Swept) -> Markup {
    let link = swept.points.first().map_or(f64::NAN, |point| point.median);
    let slowdown = |metric: f64| if sweep.higher_is_better { link / metric } else { metric / link };
    let drawn: Vec<Point> = swept
        .points
        .iter()
        .map(|point| {
            let (a, b) = (slowdown(point.range.lo), slowdown(point.range.hi));
            Point {
                x: point.value,
                value: point.slowdown,
                ci: Some(Interval { lo: a.min(b), hi: a.max(b) }),
                is_bound: false,
                tip: format!(
                    "{}: {:.3} times, median {}",
                    value(swept, point.value),
                    point.slowdown,
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
    html! {
        div.scroll {
            table {
                thead { tr { @for name in ["value", "median", "least", "greatest", "slowdown", "runs"] { th scope="col" { (name) } } } }
                tbody {
                    @for point in &swept.points {
                        tr {
                            th scope="row" { (value(swept, point.value)) }
                            td { (format!("{:.6}", point.median)) }
                            td { (format!("{:.6}", point.range.lo)) }
                            td { (format!("{:.6}", point.range.hi)) }
                            td { (format!("{:.3}", point.slowdown)) }
                            td { (point.runs) }
                        }
                    }
                }
            }
        }
    }
}
