//! The charts: figures 4 to 15 of Brightwell et al. 2003, all layers in each.

use super::{Subject, at};
use crate::html::chart::HALF;
use crate::html::parts::{parameter_tip, round_time, shown, sound, time};
use crate::html::plot::{Along, Chart, Curve, OVER_MESSAGES, Point, Up};
use crate::overlap::{in_percent, in_rate, in_time};
use maud::html;
use netdyno_measure::overlap::record::{PollPoint, Quantity, Trip, WorkPoint};
use netdyno_measure::show::{Size, percent, round_rate};

const POLL_INTERVAL: Along = Along::Time("poll interval");
const WORK_INTERVAL: Along = Along::Time("work in a cycle, without messages");
const BANDWIDTH: Up = ("bytes per second", round_rate, None);
/// The axis leaves room for 1.
const AVAILABILITY: Up = ("availability", percent, Some(1.04));

/// Returns figures 4 and 5: messages alone.
pub fn alone(subjects: &[Subject<'_>]) -> [Chart; 2] {
    let one_way = |subject: &Subject<'_>, trip: &Trip| {
        let rate = &trip.bandwidth_bytes_per_s;
        let tip = format!("{}, {}\n{} one way", subject.label, Size(trip.size_bytes), in_rate(rate));
        drawable(trip.size_bytes as f64, rate, tip)
    };
    [
        chart(
            ["Half a round trip", "Half round trips of all layers"],
            (OVER_MESSAGES, ("half a round trip", round_time, None)),
            curves(subjects, |subject| &subject.found.trips, half_rtt),
            "Of one message each way, both of that size (figure 4 of Brightwell et al. 2003).",
        ),
        chart(
            ["One-way bandwidth", "One-way bandwidth of all layers"],
            (OVER_MESSAGES, BANDWIDTH),
            curves(subjects, |subject| &subject.found.trips, one_way),
            "Of messages in a row one way, as many under way as the layer allows (figure 5).",
        ),
    ]
}

/// Returns the point of half a round trip.
pub fn half_rtt(subject: &Subject<'_>, trip: &Trip) -> Option<Point> {
    let of = format!("{}, {}", subject.label, Size(trip.size_bytes));
    Some(Point {
        x: trip.size_bytes as f64,
        value: shown(&trip.half_rtt).filter(|ns| *ns > 0.0)?,
        ci: sound(trip.half_rtt.ci_ns),
        is_bound: false,
        tip: parameter_tip(&of, "half a round trip", &trip.half_rtt, subject.confidence()),
    })
}

/// Returns figures 6, 7, 9 and 10, and one over the other: the polling method.
pub fn polling(subjects: &[Subject<'_>], size_bytes: usize) -> [Chart; 3] {
    let of = |of: fn(&PollPoint) -> &Quantity| {
        let point = |subject: &Subject<'_>, p: &PollPoint| {
            drawable(p.interval_ns.value?, of(p), poll_tip(subject, size_bytes, p))
        };
        curves(subjects, |subject| at(subject, size_bytes).map_or(&[][..], |size| &size.polling), point)
    };
    let both = |subject: &Subject<'_>, p: &PollPoint| {
        let x = p.availability.value.filter(|share| share.is_finite())?;
        let (value, ci) = (p.bandwidth_bytes_per_s.value?, sound(p.bandwidth_bytes_per_s.ci));
        Some(Point { x, value, ci, is_bound: false, tip: poll_tip(subject, size_bytes, p) })
    };
    [
        chart(
            ["Polling: bandwidth", "Bandwidth while polling"],
            (POLL_INTERVAL, BANDWIDTH),
            of(|p| &p.bandwidth_bytes_per_s),
            "Bytes received a second; as many are sent (figures 6 and 7). It falls where all that is under way arrives within an interval.",
        ),
        chart(
            ["Polling: availability", "Availability while polling"],
            (POLL_INTERVAL, AVAILABILITY),
            of(|p| &p.availability),
            "Time of the work without messages over that with them and all calls (figures 9 and 10).",
        ),
        chart(
            ["Polling: bandwidth against availability", "Bandwidth against availability while polling"],
            (Along::Share("availability"), BANDWIDTH),
            curves(subjects, |subject| at(subject, size_bytes).map_or(&[][..], |size| &size.polling), both),
            "What is left of one where the other is taken. A layer that moves messages unaided reaches the upper right corner.",
        ),
    ]
}

/// Returns figures 8 and 11 to 15, and the waiting: post, work, wait.
pub fn pww(subjects: &[Subject<'_>], size_bytes: usize) -> [Chart; 4] {
    let of = |of: fn(&WorkPoint) -> &Quantity| {
        let point = |subject: &Subject<'_>, p: &WorkPoint| {
            drawable(p.alone_ns.value?, of(p), work_tip(subject, size_bytes, p))
        };
        curves(subjects, |subject| at(subject, size_bytes).map_or(&[][..], |size| &size.pww), point)
    };
    [
        chart(
            ["Post, work, wait: bandwidth", "Bandwidth of post, work, wait"],
            (WORK_INTERVAL, BANDWIDTH),
            of(|p| &p.bandwidth_bytes_per_s),
            "Bytes received a second; as many are sent (figure 8).",
        ),
        chart(
            ["Post, work, wait: availability", "Availability in post, work, wait"],
            (WORK_INTERVAL, AVAILABILITY),
            of(|p| &p.availability),
            "Work without messages over the whole cycle (figures 11 and 12).",
        ),
        chart(
            ["Post, work, wait: stolen time", "Stolen time"],
            (WORK_INTERVAL, ("stolen from the work", round_time, Some(0.0))),
            of(|p| &p.stolen_ns),
            "Work with messages less the same work without: what lies between the two lines of figures 13 to 15.",
        ),
        chart(
            ["Post, work, wait: the wait", "Waiting after work"],
            (WORK_INTERVAL, ("waiting", round_time, None)),
            of(|p| &p.wait_ns),
            "Where messages make progress without being called, waiting goes behind work; where they do not, it stays, or moves into posting.",
        ),
    ]
}

fn chart([heading, label]: [&str; 2], axes: (Along, Up), curves: Vec<Curve>, caption: &str) -> Chart {
    let (heading, caption) = (html! { (heading) }, html! { (caption) });
    Chart { heading, label: label.into(), size: (HALF, 300.0), axes, curves, caption }
}

/// Returns a curve for each layer, through the points of what `all` returns.
fn curves<'a, T: 'a>(
    subjects: &[Subject<'a>],
    all: impl Fn(&Subject<'a>) -> &'a [T],
    point: impl Fn(&Subject<'_>, &T) -> Option<Point>,
) -> Vec<Curve> {
    let curve = |subject: &Subject<'a>| {
        let mut points: Vec<Point> = all(subject).iter().filter_map(|of| point(subject, of)).collect();
        // Intervals of work are requested in ascending order, but their measured durations may have another
        // order.
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        Curve::of(subject, points)
    };
    subjects.iter().map(curve).collect()
}

fn poll_tip(subject: &Subject<'_>, size_bytes: usize, p: &PollPoint) -> String {
    let others = p.others_share.value.map(|_| format!("\nother threads {}", in_percent(&p.others_share)));
    format!(
        "{}, {} every {}\n{} available\n{} each way{}",
        subject.label,
        Size(size_bytes),
        in_time(&p.interval_ns),
        in_percent(&p.availability),
        in_rate(&p.bandwidth_bytes_per_s),
        others.unwrap_or_default()
    )
}

fn work_tip(subject: &Subject<'_>, size_bytes: usize, p: &WorkPoint) -> String {
    let others = p.others_ns.value.map(|ns| format!("\nother threads {}", time(ns)));
    format!(
        "{}, {} with work for {}\npost {}, work {}, wait {}\nstolen {}, {} available{}",
        subject.label,
        Size(size_bytes),
        in_time(&p.alone_ns),
        in_time(&p.post_ns),
        in_time(&p.work_ns),
        in_time(&p.wait_ns),
        in_time(&p.stolen_ns),
        in_percent(&p.availability),
        others.unwrap_or_default()
    )
}

/// Returns a point if it can be drawn on the logarithmic horizontal axis. The vertical axis checks its own
/// value.
fn drawable(x: f64, quantity: &Quantity, tip: String) -> Option<Point> {
    let value = quantity.value.filter(|value| value.is_finite())?;
    (x.is_finite() && x > 0.0).then(|| Point { x, value, ci: sound(quantity.ci), is_bound: false, tip })
}
