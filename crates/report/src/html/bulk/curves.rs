//! Charts of all layers together: T(n), bandwidth, and the send overhead (Culler et al. 1996, figures 7 and
//! 10).

use super::subject::Subject;
use crate::html::chart::{HALF, WIDE, chart};
use crate::html::parts::{parameter_tip, round_time, shown, sound};
use crate::html::plot::{Curve, Plot, Point, end_label};
use maud::{Markup, html};
use netdyno_measure::bulk::record::{Bandwidth, SizeFigures};
use netdyno_measure::record::{Parameter, Status};
use netdyno_measure::show::{bytes, rate, round_rate};

const ONE_WAY: (f64, f64) = (WIDE, 400.0);
const SMALL: (f64, f64) = (HALF, 320.0);

/// Returns the chart of T(n) of all layers.
pub fn one_way(subjects: &[Subject<'_>]) -> Markup {
    let curves = curves(subjects, |subject, size| time_point(subject, size, "T", &size.T));
    html! {
        figure {
            (plot(&curves, ONE_WAY, "time on the way", "T(n) of all layers", round_time))
            figcaption { "One-way time over size, both axes logarithmic. Vertical bars: the interval of the median over launches, mostly narrower than the points." }
        }
    }
}

/// Returns the chart of the bandwidth of all layers in a stream.
pub fn bandwidth(subjects: &[Subject<'_>]) -> Markup {
    let curves = curves(subjects, rate_point);
    html! {
        figure {
            (plot(&curves, SMALL, "bytes per second", "Bandwidth of all layers", round_rate))
            figcaption {
                "n over the steady time per message of a stream: messages of n bytes one after the other, as many under way as the window allows, small replies. "
                "What one message at a time reaches, n / T(n), is in the tips."
            }
        }
    }
}

/// Returns the chart of o_s(n) of all layers.
pub fn send_overhead(subjects: &[Subject<'_>]) -> Markup {
    let curves = curves(subjects, |subject, size| time_point(subject, size, "o_s", &size.o_s));
    html! {
        figure {
            (plot(&curves, SMALL, "processor time to send", "Send overhead of all layers", round_time))
            figcaption {
                "As in figure 10 of Culler et al. 1996: a level line leaves the processor free while data move; one that rises with n means that the processor carries them."
            }
        }
    }
}

fn plot(
    curves: &[Curve],
    (width, height): (f64, f64),
    title: &str,
    label: &str,
    tick: impl Fn(f64) -> String,
) -> Markup {
    let plot = Plot::of(curves, width, height);
    chart(width, height, label, &html! { (plot.axes(title, tick)) (plot.draw(curves)) })
}

fn curves(
    subjects: &[Subject<'_>],
    point: impl Fn(&Subject<'_>, &SizeFigures) -> Option<Point>,
) -> Vec<Curve> {
    let curve = |subject: &Subject<'_>| Curve {
        class: subject.colour.clone(),
        label: end_label(subject.result, &subject.label),
        points: subject.bulk.sizes.iter().filter_map(|size| point(subject, size)).collect(),
    };
    subjects.iter().map(curve).collect()
}

/// Returns the point of a time of messages of one size.
pub fn time_point(subject: &Subject<'_>, size: &SizeFigures, name: &str, p: &Parameter) -> Option<Point> {
    let n = bytes(size.size_bytes as f64);
    Some(Point {
        x: size.size_bytes as f64,
        value: shown(p).filter(|ns| *ns > 0.0)?,
        ci: sound(p.ci_ns),
        is_bound: p.status == Status::UpperBound,
        tip: parameter_tip(&format!("{}, {n}", subject.label), name, p, subject.record.options.confidence),
    })
}

fn rate_point(subject: &Subject<'_>, size: &SizeFigures) -> Option<Point> {
    let Bandwidth { value_bytes_per_s, ci_bytes_per_s } = size.streaming;
    let is_drawable = value_bytes_per_s.is_finite() && value_bytes_per_s > 0.0;
    is_drawable.then(|| Point {
        x: size.size_bytes as f64,
        value: value_bytes_per_s,
        ci: sound(ci_bytes_per_s),
        is_bound: false,
        tip: format!(
            "{}, {}\n{} in a stream\n{} one at a time",
            subject.label,
            bytes(size.size_bytes as f64),
            rate(value_bytes_per_s),
            rate(size.single.value_bytes_per_s)
        ),
    })
}
