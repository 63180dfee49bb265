//! The times of one layer over the size: T(n) with the classic line, the overheads, and the pace of a
//! stream.

use super::Subject;
use super::curves::time_point;
use crate::html::chart::{WIDE, chart, width_of};
use crate::html::parts::{figure as in_words, round_time, sound, text, time};
use crate::html::plot::{Curve, OVER_MESSAGES, Plot, Point};
use crate::html::scale::{path, spread};
use maud::{Markup, html};
use netdyno_measure::bulk::record::{Classic, SizeFigures};
use netdyno_measure::record::Limit;
use netdyno_measure::show::bytes;

const HEIGHT: f64 = 420.0;
/// Number of points of the classic line, which is curved on logarithmic axes.
const STEPS: usize = 120;

/// Returns the figure with its caption.
pub fn figure(subject: &Subject<'_>) -> Markup {
    let curves = curves(subject);
    let plot = Plot::of(&curves, WIDE, HEIGHT);
    let drawn = html! {
        (plot.axes(OVER_MESSAGES, "time", round_time))
        (changes(subject, &plot))
        @for (class, fit) in classics(subject) { path class={ "line expected " (class) } d=(classic(fit, &plot)) {} }
        (plot.draw(&curves))
    };
    html! {
        figure {
            (chart(WIDE, HEIGHT, &format!("Times of {} over the size", subject.label), &drawn))
            figcaption {
                "Dotted: the classic line T" sub { "0" } " + n / R∞ of T(n) and of transfer(n), fitted to all sizes without weights; where it leaves the points, T"
                sub { "0" } " is no time of the layer. Stream: the steady time per message; g(n) is that, or at most that (open points), or hidden by the window (left out). "
                "What is not above zero has no place on logarithmic axes."
                @if !subject.found.changes.is_empty() { " Dashed uprights: where T(n) leaves its line." }
            }
        }
    }
}

fn curves(subject: &Subject<'_>) -> Vec<Curve> {
    let curve = |name: &'static str,
                 class: &str,
                 label: &str,
                 of: fn(&SizeFigures) -> &netdyno_measure::record::Parameter| Curve {
        class: class.into(),
        label: label.into(),
        points: subject
            .found
            .sizes
            .iter()
            .filter_map(|size| time_point(subject, size, name, of(size)))
            .collect(),
    };
    vec![
        curve("T", "rtt", "T(n)", |size| &size.T),
        curve("transfer", "transfer", "transfer(n)", |size| &size.transfer),
        curve("o_s", "o_s", "o_s(n)", |size| &size.o_s),
        curve("o_r", "o_r", "o_r(n)", |size| &size.o_r),
        Curve {
            class: "g".into(),
            label: "stream, g(n)".into(),
            points: subject.found.sizes.iter().filter_map(|size| steady(subject, size)).collect(),
        },
    ]
}

fn steady(subject: &Subject<'_>, size: &SizeFigures) -> Option<Point> {
    let plateau = &size.plateau;
    let by = match plateau.limited_by {
        Limit::Gap => format!("g {}", in_words(&size.g)),
        Limit::Processor => format!("the processor sets the pace: g {}", in_words(&size.g)),
        Limit::Window | Limit::Unknown => return None,
    };
    let is_drawable = plateau.value_ns.is_finite() && plateau.value_ns > 0.0;
    is_drawable.then(|| Point {
        x: size.size_bytes as f64,
        value: plateau.value_ns,
        ci: sound(plateau.ci_ns),
        is_bound: plateau.limited_by == Limit::Processor,
        tip: format!(
            "{}, {}\na message every {} in a stream\n{by}",
            subject.label,
            bytes(size.size_bytes as f64),
            time(plateau.value_ns)
        ),
    })
}

/// Returns the classic fits with the classes of their colours.
fn classics<'a>(subject: &Subject<'a>) -> impl Iterator<Item = (&'static str, &'a Classic)> {
    let of_transfer = subject.found.classic_of_transfer.as_ref();
    [("plain", &subject.found.classic)].into_iter().chain(of_transfer.map(|fit| ("transfer", fit)))
}

/// Returns the path of the classic model, as far as it is above zero.
fn classic(fit: &Classic, plot: &Plot) -> String {
    let (lo, hi) = plot.x.domain();
    // Without a peak rate the line is level.
    let slope = fit.R_inf.map_or(0.0, |peak| 1e9 / peak.value_bytes_per_s);
    let places = (0..=STEPS).filter_map(|step| {
        let n = lo * (hi / lo).powf(step as f64 / STEPS as f64);
        let ns = fit.T0_ns + n * slope;
        let y = plot.y.at(ns).filter(|y| (plot.top()..=plot.bottom()).contains(y))?;
        Some((plot.x.at(n)?, y))
    });
    path(places)
}

/// Returns vertical marks where T(n) leaves its line, with their sizes above, moved apart if they would
/// touch.
fn changes(subject: &Subject<'_>, plot: &Plot) -> Markup {
    let at = |bytes_at: usize| Some((plot.x.at(bytes_at as f64)?, bytes(bytes_at as f64)));
    let marks: Vec<(f64, String)> =
        subject.found.changes.iter().filter_map(|change| at(change.at_most_bytes)).collect();
    let places: Vec<f64> = marks.iter().map(|(x, _)| *x).collect();
    let widest = marks.iter().map(|(_, size)| width_of(size)).fold(0.0, f64::max);
    let moved = spread(&places, widest, plot.left() + widest / 2.0, plot.right - widest / 2.0);
    html! {
        @for ((x, size), to) in marks.iter().zip(&moved) {
            path.mark-line d=(path([(*to, plot.top() - 2.0), (*x, plot.top() + 10.0), (*x, plot.bottom())])) {}
            (text("soft mid halo", *to, plot.top() - 6.0, size))
        }
    }
}
