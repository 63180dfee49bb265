//! The charts: figures 4 to 15 of Brightwell et al. 2003, all layers in each.

use super::Subject;
use crate::html::chart::{HALF, chart};
use crate::html::parts::{parameter_tip, round_time, shown, sound, time};
use crate::html::plot::{Curve, Plot, Point, end_label};
use crate::overlap::{in_percent, in_rate, in_time};
use maud::{Markup, html};
use netdyno_measure::overlap::record::{PollPoint, Quantity, WorkPoint};
use netdyno_measure::show::{Size, percent, round_rate};

const HEIGHT: f64 = 300.0;
/// The end of an axis of shares. It leaves room for 1.
const ALL: f64 = 1.04;
const POLL_INTERVAL: &str = "poll interval";
const WORK_INTERVAL: &str = "work in a cycle, without messages";

/// Returns figure 4.
pub fn half_round_trips(subjects: &[Subject<'_>]) -> Markup {
    let curves = curves(subjects, |subject| {
        let point = |trip: &netdyno_measure::overlap::record::Trip| {
            let of = format!("{}, {}", subject.label, Size(trip.size_bytes));
            Some(Point {
                x: trip.size_bytes as f64,
                value: shown(&trip.half_rtt).filter(|ns| *ns > 0.0)?,
                ci: sound(trip.half_rtt.ci_ns),
                is_bound: false,
                tip: parameter_tip(
                    &of,
                    "half a round trip",
                    &trip.half_rtt,
                    subject.record.options.confidence,
                ),
            })
        };
        subject.overlap.trips.iter().filter_map(point).collect()
    });
    let plot = Plot::of(&curves, HALF, HEIGHT);
    let axes = plot.axes("half a round trip", round_time);
    figure(
        "Half round trips of all layers",
        &plot,
        axes,
        &curves,
        "Of one message each way, both of that size (figure 4 of Brightwell et al. 2003).",
    )
}

/// Returns figure 5.
pub fn one_way(subjects: &[Subject<'_>]) -> Markup {
    let curves = curves(subjects, |subject| {
        let point = |trip: &netdyno_measure::overlap::record::Trip| {
            let tip = format!(
                "{}, {}\n{} one way",
                subject.label,
                Size(trip.size_bytes),
                in_rate(&trip.bandwidth_bytes_per_s)
            );
            drawable(trip.size_bytes as f64, &trip.bandwidth_bytes_per_s, tip)
        };
        subject.overlap.trips.iter().filter_map(point).collect()
    });
    let plot = Plot::of(&curves, HALF, HEIGHT);
    let axes = plot.axes("bytes per second", round_rate);
    figure(
        "One-way bandwidth of all layers",
        &plot,
        axes,
        &curves,
        "Of messages in a row one way, as many under way as the layer allows (figure 5).",
    )
}

/// Returns figures 6 and 7.
pub fn polling_bandwidth(subjects: &[Subject<'_>], size_bytes: usize) -> Markup {
    let curves = polling(subjects, size_bytes, |p| &p.bandwidth_bytes_per_s);
    let plot = Plot::of(&curves, HALF, HEIGHT);
    let axes = plot.axes_over_time("bytes per second", round_rate, POLL_INTERVAL);
    figure(
        "Bandwidth while polling",
        &plot,
        axes,
        &curves,
        "Bytes received a second; as many are sent (figures 6 and 7). It falls where all that is under way arrives within an interval.",
    )
}

/// Returns figures 9 and 10.
pub fn polling_availability(subjects: &[Subject<'_>], size_bytes: usize) -> Markup {
    let curves = polling(subjects, size_bytes, |p| &p.availability);
    let plot = Plot::of(&curves, HALF, HEIGHT).linear(&curves, ALL);
    let axes = plot.axes_over_time("availability", percent, POLL_INTERVAL);
    figure(
        "Availability while polling",
        &plot,
        axes,
        &curves,
        "Time of the work without messages over that with them and all calls (figures 9 and 10).",
    )
}

/// Returns figure 8.
pub fn pww_bandwidth(subjects: &[Subject<'_>], size_bytes: usize) -> Markup {
    let curves = pww(subjects, size_bytes, |p| &p.bandwidth_bytes_per_s);
    let plot = Plot::of(&curves, HALF, HEIGHT);
    let axes = plot.axes_over_time("bytes per second", round_rate, WORK_INTERVAL);
    figure(
        "Bandwidth of post, work, wait",
        &plot,
        axes,
        &curves,
        "Bytes received a second; as many are sent (figure 8).",
    )
}

/// Returns figures 11 and 12.
pub fn pww_availability(subjects: &[Subject<'_>], size_bytes: usize) -> Markup {
    let curves = pww(subjects, size_bytes, |p| &p.availability);
    let plot = Plot::of(&curves, HALF, HEIGHT).linear(&curves, ALL);
    let axes = plot.axes_over_time("availability", percent, WORK_INTERVAL);
    figure(
        "Availability in post, work, wait",
        &plot,
        axes,
        &curves,
        "Work without messages over the whole cycle (figures 11 and 12).",
    )
}

/// Returns figures 13 to 15.
pub fn stolen(subjects: &[Subject<'_>], size_bytes: usize) -> Markup {
    let curves = pww(subjects, size_bytes, |p| &p.stolen_ns);
    let plot = Plot::of(&curves, HALF, HEIGHT).linear(&curves, 0.0);
    let axes = plot.axes_over_time("stolen from the work", round_time, WORK_INTERVAL);
    figure(
        "Stolen time",
        &plot,
        axes,
        &curves,
        "Work with messages less the same work without: what lies between the two lines of figures 13 to 15.",
    )
}

/// Returns the chart of the waiting after work.
pub fn wait(subjects: &[Subject<'_>], size_bytes: usize) -> Markup {
    let curves = pww(subjects, size_bytes, |p| &p.wait_ns);
    let plot = Plot::of(&curves, HALF, HEIGHT);
    let axes = plot.axes_over_time("waiting", round_time, WORK_INTERVAL);
    figure(
        "Waiting after work",
        &plot,
        axes,
        &curves,
        "Where messages make progress without being called, waiting goes behind work; where they do not, it stays, or moves into posting.",
    )
}

fn figure(label: &str, plot: &Plot, axes: Markup, curves: &[Curve], caption: &str) -> Markup {
    html! {
        figure {
            (chart(HALF, HEIGHT, label, &html! { (axes) (plot.draw(curves)) }))
            figcaption { (caption) }
        }
    }
}

fn curves<'a>(subjects: &'a [Subject<'a>], points: impl Fn(&'a Subject<'a>) -> Vec<Point>) -> Vec<Curve> {
    let curve = |subject: &'a Subject<'a>| {
        let mut points = points(subject);
        // Intervals of work are requested in ascending order, but their measured durations may have another
        // order.
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        Curve { class: subject.colour.clone(), label: end_label(subject.result, &subject.label), points }
    };
    subjects.iter().map(curve).collect()
}

fn polling(subjects: &[Subject<'_>], size_bytes: usize, of: impl Fn(&PollPoint) -> &Quantity) -> Vec<Curve> {
    curves(subjects, |subject| {
        let points = subject.at(size_bytes).map_or(&[][..], |size| &size.polling);
        let point = |p: &PollPoint| {
            let tip = format!(
                "{}, {} every {}\n{} available\n{} each way{}",
                subject.label,
                Size(size_bytes),
                in_time(&p.interval_ns),
                in_percent(&p.availability),
                in_rate(&p.bandwidth_bytes_per_s),
                p.others_share.value.map_or(String::new(), |share| format!(
                    "\nother threads {}",
                    percent((share * 1e3).round() / 1e3)
                ))
            );
            drawable(p.interval_ns.value?, of(p), tip)
        };
        points.iter().filter_map(point).collect()
    })
}

fn pww(subjects: &[Subject<'_>], size_bytes: usize, of: impl Fn(&WorkPoint) -> &Quantity) -> Vec<Curve> {
    curves(subjects, |subject| {
        let points = subject.at(size_bytes).map_or(&[][..], |size| &size.pww);
        let point = |p: &WorkPoint| {
            let tip = format!(
                "{}, {} with work for {}\npost {}, work {}, wait {}\nstolen {}, {} available{}",
                subject.label,
                Size(size_bytes),
                in_time(&p.alone_ns),
                in_time(&p.post_ns),
                in_time(&p.work_ns),
                in_time(&p.wait_ns),
                in_time(&p.stolen_ns),
                in_percent(&p.availability),
                p.others_ns.value.map_or(String::new(), |ns| format!("\nother threads {}", time(ns)))
            );
            drawable(p.alone_ns.value?, of(p), tip)
        };
        points.iter().filter_map(point).collect()
    })
}

/// Returns a point if it can be drawn on the logarithmic horizontal axis. The vertical axis checks its own
/// value.
fn drawable(x: f64, quantity: &Quantity, tip: String) -> Option<Point> {
    let value = quantity.value.filter(|value| value.is_finite())?;
    (x.is_finite() && x > 0.0).then(|| Point { x, value, ci: sound(quantity.ci), is_bound: false, tip })
}
