//! Latency, bandwidth, share of the peak, and ratios of the ways to wait, over the size.

use super::Subject;
use crate::html::chart::{HALF, WIDE};
use crate::html::parts::{colour, cut, parameter_tip, round_time, shown, sound, time};
use crate::html::plot::{Chart, Curve, OVER_MESSAGES, Point, Up};
use maud::{Markup, html};
use netdyno_measure::completion::record::CompletionTimes;
use netdyno_measure::completion::ways::{Way, Ways};
use netdyno_measure::overlap::record::Quantity;
use netdyno_measure::record::Status;
use netdyno_measure::show::{Bytes, number, number_and_interval, percent, rate, round_number, round_rate};

/// Largest number of characters of a label at the end of a curve.
const LABEL_AT_MOST: usize = 20;

/// Returns the chart of half of a round trip, with the wire time of each layer.
pub fn latency(subjects: &[Subject<'_>]) -> Chart {
    let point = |subject: &Subject<'_>, size: &CompletionTimes| {
        let value = shown(&size.half_rtt).filter(|ns| *ns > 0.0)?;
        let tip = parameter_tip(&of(subject, size), "half round trip", &size.half_rtt, subject.confidence());
        Some(Point { ci: sound(size.half_rtt.ci_ns), ..plain(size, value, tip) })
    };
    let ideal = |subject: &Subject<'_>, size: &CompletionTimes| {
        let value = size.ideal_ns()?;
        Some(plain(size, value, format!("{}: {} at the peak", of(subject, size), time(value))))
    };
    chart(
        html! { "Half of a round trip" },
        "Half of a round trip by each way to wait",
        (WIDE, 400.0),
        ("half of a round trip", round_time, None),
        beside(curves(subjects, point), "ideal", subjects, ideal),
        html! { "Both axes logarithmic. Vertical bars: the interval of the median over launches. Dotted: the ideal, the size over the peak of the way, without any cost of a message." },
    )
}

/// Returns the chart of the bandwidth of a stream, with the peak of each layer.
pub fn bandwidth(subjects: &[Subject<'_>]) -> Chart {
    let point = |subject: &Subject<'_>, size: &CompletionTimes| {
        let value = size.bandwidth()?;
        let is_bound = size.per_message.status == Status::UpperBound;
        let least = if is_bound { "at least " } else { "" };
        let tip = format!("{}: {least}{}", of(subject, size), rate(value));
        Some(Point { is_bound, ..plain(size, value, tip) })
    };
    let peak = |subject: &Subject<'_>, size: &CompletionTimes| {
        let value = size.peak_bytes_per_s.value.filter(|peak| *peak > 0.0)?;
        Some(plain(size, value, format!("{}: {} at the peak", of(subject, size), rate(value))))
    };
    chart(
        html! { "Bandwidth of a stream" },
        "Bandwidth of a stream by each way to wait",
        (WIDE, 400.0),
        ("bandwidth", round_rate, None),
        beside(curves(subjects, point), "peak", subjects, peak),
        html! { "Both axes logarithmic. The size over the time for each message. Open points: at least that, because the window sets the pace. Dotted: the peak of the way." },
    )
}

/// Returns the charts of the share of the peak, and of the ratios of the ways, as far as there are any.
pub fn against(subjects: &[Subject<'_>], ways: &[Ways<'_>]) -> Vec<Chart> {
    let all = [share(subjects), ratios(subjects, ways)];
    all.into_iter().filter(|chart| !chart.curves.is_empty()).collect()
}

fn share(subjects: &[Subject<'_>]) -> Chart {
    let point = |subject: &Subject<'_>, size: &CompletionTimes| {
        let value = size.share_of_peak.value.filter(|share| *share > 0.0)?;
        let tip = format!("{}: {} of the peak", of(subject, size), quantity(&size.share_of_peak));
        Some(Point { ci: sound(size.share_of_peak.ci), ..plain(size, value, tip) })
    };
    chart(
        html! { "Share of the peak" },
        "Bandwidth of a stream as a share of the peak",
        (HALF, 340.0),
        ("bandwidth over the peak", percent, Some(1.0)),
        curves(subjects, point),
        html! { "As in figure 3 of Speight et al. 1999. Sizes whose time per message is a bound are left out." },
    )
}

fn ratios(subjects: &[Subject<'_>], all_ways: &[Ways<'_>]) -> Chart {
    let curve = |ways: &Ways<'_>, way: &Way<'_>, nth: usize| {
        let name = format!("{}, {} / {}", ways.layer, way.name, ways.base.name);
        let points = ways.sizes().filter_map(|size_bytes| {
            let ratio = ways.ratio(way, size_bytes);
            let value = ratio.value.filter(|value| *value > 0.0)?;
            let tip = format!("{name}, {}: {}", Bytes(size_bytes), quantity(&ratio));
            Some(Point { x: size_bytes as f64, value, ci: sound(ratio.ci), is_bound: false, tip })
        });
        let label = match (all_ways.len(), ways.others.len()) {
            (1, _) => way.name.to_owned(),
            (_, 1) => ways.layer.to_owned(),
            _ => format!("{} {}", ways.layer, way.name),
        };
        Curve {
            class: class(subjects, ways, way, nth),
            label: cut(&label, LABEL_AT_MOST),
            points: points.collect(),
        }
    };
    let all = all_ways.iter().flat_map(|ways| ways.others.iter().map(move |way| (ways, way)));
    let base = base_of(all_ways);
    chart(
        html! { "Each way over " (base) },
        "Half of a round trip of each way over that of another",
        (HALF, 340.0),
        ("half round trip over another", round_number, None),
        all.enumerate().map(|(nth, (ways, way))| curve(ways, way, nth)).collect(),
        html! { "Both axes logarithmic; paired by launch. Figure 5 of Speight et al. 1999 has the inverse. Above 1, " (base) " is faster." },
    )
}

/// Names the way that the others are compared with.
fn base_of<'a>(all_ways: &[Ways<'a>]) -> &'a str {
    match all_ways {
        _ if all_ways.iter().all(|ways| ways.base.polls()) => "polling",
        [first, others @ ..] if others.iter().all(|ways| ways.base.name == first.base.name) => {
            first.base.name
        }
        _ => "the first way",
    }
}

/// Returns the colour of a way: that of its result.
fn class(subjects: &[Subject<'_>], ways: &Ways<'_>, way: &Way<'_>, nth: usize) -> String {
    let is_it = |subject: &&Subject<'_>| {
        subject.result.layer == ways.layer && subject.result.label.as_deref() == Some(way.name)
    };
    subjects.iter().find(is_it).map_or_else(|| colour(nth), |subject| subject.colour.clone())
}

/// Returns the curves and the dotted lines of a bound: one for all layers if it is the same, else one for each.
fn beside(
    mut curves: Vec<Curve>,
    name: &str,
    subjects: &[Subject<'_>],
    point: impl Fn(&Subject<'_>, &CompletionTimes) -> Option<Point>,
) -> Vec<Curve> {
    let firsts: Vec<&Subject<'_>> = firsts(subjects);
    for (nth, subject) in firsts.iter().enumerate() {
        let is_again = firsts[..nth].iter().any(|other| other.found.peak == subject.found.peak);
        let points: Vec<Point> = subject.found.sizes.iter().filter_map(|size| point(subject, size)).collect();
        if !is_again && !points.is_empty() {
            let label = if nth == 0 { name.into() } else { format!("{name}, {}", subject.result.layer) };
            curves.push(Curve { class: "plain expected".into(), label: cut(&label, LABEL_AT_MOST), points });
        }
    }
    curves
}

/// Returns the first result of each layer of each record.
fn firsts<'s, 'a>(subjects: &'s [Subject<'a>]) -> Vec<&'s Subject<'a>> {
    let is_first = |at: usize| {
        let subject = &subjects[at];
        let is_like = |other: &Subject<'_>| {
            other.result.layer == subject.result.layer && std::ptr::eq(other.record, subject.record)
        };
        !subjects[..at].iter().any(is_like)
    };
    (0..subjects.len()).filter(|&at| is_first(at)).map(|at| &subjects[at]).collect()
}

fn curves(
    subjects: &[Subject<'_>],
    point: impl Fn(&Subject<'_>, &CompletionTimes) -> Option<Point>,
) -> Vec<Curve> {
    let points = |subject: &Subject<'_>| -> Vec<Point> {
        subject.found.sizes.iter().filter_map(|size| point(subject, size)).collect()
    };
    let curve = |subject: &Subject<'_>| {
        let curve = Curve::of(subject, points(subject));
        // Among several layers the way to wait does not say which curve it is.
        if firsts(subjects).len() == 1 {
            curve
        } else {
            Curve { label: cut(&subject.label, LABEL_AT_MOST), ..curve }
        }
    };
    subjects.iter().map(curve).filter(|curve| !curve.points.is_empty()).collect()
}

fn chart(
    heading: Markup,
    label: &str,
    size: (f64, f64),
    up: Up,
    curves: Vec<Curve>,
    caption: Markup,
) -> Chart {
    Chart { heading, label: label.into(), size, axes: (OVER_MESSAGES, up), curves, caption }
}

fn plain(size: &CompletionTimes, value: f64, tip: String) -> Point {
    Point { x: size.size_bytes as f64, value, ci: None, is_bound: false, tip }
}

fn of(subject: &Subject<'_>, size: &CompletionTimes) -> String {
    format!("{}, {}", subject.label, Bytes(size.size_bytes))
}

fn quantity(of: &Quantity) -> String {
    let value = of.value.unwrap_or(f64::NAN);
    if of.ci.is_some() { number_and_interval(value, of.ci) } else { number(value) }
}
