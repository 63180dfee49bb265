//! Charts of all layers together: T(n), bandwidth, the send overhead, and the time and the bandwidth of single
//! transfers (Culler et al. 1996, figures 7 and 10).

use super::Subject;
use crate::html::chart::{HALF, WIDE};
use crate::html::parts::{parameter_tip, round_time, shown, sound};
use crate::html::plot::{Chart, Curve, OVER_MESSAGES, Point};
use maud::html;
use netdyno_measure::bulk::record::{Bandwidth, SizeFigures};
use netdyno_measure::record::{Parameter, Status};
use netdyno_measure::show::{bytes, rate, round_rate};

/// Returns the chart of T(n) of all layers.
pub fn one_way(subjects: &[Subject<'_>]) -> Chart {
    Chart {
        heading: html! { "Time on the way: T(n), half of a round trip of n bytes both ways" },
        label: "T(n) of all layers".into(),
        size: (WIDE, 400.0),
        axes: (OVER_MESSAGES, ("time on the way", round_time, None)),
        curves: curves(subjects, |subject, size| time_point(subject, size, "T", &size.T)),
        caption: html! { "One-way time over size, both axes logarithmic. Vertical bars: the interval of the median over launches, mostly narrower than the points." },
    }
}

/// Returns the charts of the bandwidth in a stream and of o_s(n), of all layers.
pub fn others(subjects: &[Subject<'_>]) -> [Chart; 2] {
    let size = (HALF, 320.0);
    let bandwidth = Chart {
        heading: html! { "Bandwidth" },
        label: "Bandwidth of all layers".into(),
        size,
        axes: (OVER_MESSAGES, ("bytes per second", round_rate, None)),
        curves: curves(subjects, |subject, size| rate_point(subject, size, Some(&size.streaming))),
        caption: html! {
            "n over the steady time per message of a stream: transfers of n bytes one after the other, as many under way as the window allows, small messages the other way. "
            "What one message at a time reaches, n / T(n), is in the tips."
        },
    };
    let overhead = Chart {
        heading: html! { "Send overhead o" sub { "s" } "(n)" },
        label: "Send overhead of all layers".into(),
        size,
        axes: (OVER_MESSAGES, ("processor time to send", round_time, None)),
        curves: curves(subjects, |subject, size| time_point(subject, size, "o_s", &size.o_s)),
        caption: html! { "As in figure 10 of Culler et al. 1996: a level line leaves the processor free while data move; one that rises with n means that the processor carries them." },
    };
    [bandwidth, overhead]
}

/// Returns the charts of the time and of the bandwidth of single transfers, of all layers. Records of earlier
/// versions have no transfers.
pub fn transfers(subjects: &[Subject<'_>]) -> Option<[Chart; 2]> {
    let size = (HALF, 320.0);
    let time = Chart {
        heading: html! { "Time of a transfer: n bytes one way, a small message the other" },
        label: "transfer(n) of all layers".into(),
        size,
        axes: (OVER_MESSAGES, ("time until the reply", round_time, None)),
        curves: curves(subjects, |subject, size| time_point(subject, size, "transfer", &size.transfer)),
        caption: html! { "As in figure 7 (a) of Culler et al. 1996: from the start of a transfer of n bytes until its end is known." },
    };
    let bandwidth = Chart {
        heading: html! { "Bandwidth of single transfers" },
        label: "Bandwidth of single transfers of all layers".into(),
        size,
        axes: (OVER_MESSAGES, ("bytes per second", round_rate, None)),
        curves: curves(subjects, |subject, size| rate_point(subject, size, size.transferred.as_ref())),
        caption: html! { "As in figure 7 (b) of Culler et al. 1996: n over the time of a transfer, one at a time." },
    };
    let is_drawn = time.curves.iter().any(|curve| !curve.points.is_empty());
    is_drawn.then_some([time, bandwidth])
}

fn curves(
    subjects: &[Subject<'_>],
    point: impl Fn(&Subject<'_>, &SizeFigures) -> Option<Point>,
) -> Vec<Curve> {
    let points =
        |subject: &Subject<'_>| subject.found.sizes.iter().filter_map(|size| point(subject, size)).collect();
    subjects.iter().map(|subject| Curve::of(subject, points(subject))).collect()
}

/// Returns the point of a time of messages of one size.
pub fn time_point(subject: &Subject<'_>, size: &SizeFigures, name: &str, p: &Parameter) -> Option<Point> {
    let n = bytes(size.size_bytes as f64);
    Some(Point {
        x: size.size_bytes as f64,
        value: shown(p).filter(|ns| *ns > 0.0)?,
        ci: sound(p.ci_ns),
        is_bound: p.status == Status::UpperBound,
        tip: parameter_tip(&format!("{}, {n}", subject.label), name, p, subject.confidence()),
    })
}

fn rate_point(subject: &Subject<'_>, size: &SizeFigures, of: Option<&Bandwidth>) -> Option<Point> {
    let &Bandwidth { value_bytes_per_s, ci_bytes_per_s } = of?;
    let is_drawable = value_bytes_per_s.is_finite() && value_bytes_per_s > 0.0;
    is_drawable.then(|| Point {
        x: size.size_bytes as f64,
        value: value_bytes_per_s,
        ci: sound(ci_bytes_per_s),
        is_bound: false,
        tip: format!(
            "{}, {}\n{}\nin a stream {}, one at a time {}",
            subject.label,
            bytes(size.size_bytes as f64),
            rate(value_bytes_per_s),
            rate(size.streaming.value_bytes_per_s),
            rate(size.single.value_bytes_per_s)
        ),
    })
}
