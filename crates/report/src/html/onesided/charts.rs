//! Completion and bandwidth over the size.

use super::Subject;
use crate::html::chart::WIDE;
use crate::html::parts::{parameter_tip, round_time, shown, sound};
use crate::html::plot::{Along, Chart, Curve, Point};
use crate::onesided::title;
use maud::{Markup, html};
use netdyno_measure::onesided::data::Operation;
use netdyno_measure::onesided::record::TransferTimes;
use netdyno_measure::record::Status;
use netdyno_measure::show::{Bytes, rate, round_rate};

/// Returns the chart of the time until an operation is complete everywhere.
pub fn completion(subjects: &[Subject<'_>], operation: Operation) -> Chart {
    let point = |subject: &Subject<'_>, size: &TransferTimes| {
        let complete = size.complete();
        let of = format!("{}, {}", subject.label, Bytes(size.size_bytes));
        Some(Point {
            x: size.size_bytes as f64,
            value: shown(complete).filter(|ns| *ns > 0.0)?,
            ci: sound(complete.ci_ns),
            is_bound: false,
            tip: parameter_tip(&of, "complete", complete, subject.confidence()),
        })
    };
    chart(
        format!("Time until a {} is complete", title(operation)),
        ("time", round_time),
        curves(subjects, operation, point),
        html! { "Both axes logarithmic. Bytes that are put are complete when they are known to be in the target's memory; bytes that are got, when they are here. Vertical bars: the interval of the median over launches." },
    )
}

/// Returns the chart of the bandwidth of a stream of operations.
pub fn bandwidth(subjects: &[Subject<'_>], operation: Operation) -> Chart {
    let point = |subject: &Subject<'_>, size: &TransferTimes| {
        let value = size.bandwidth()?;
        let is_bound = size.gap.status == Status::UpperBound;
        let least = if is_bound { "at least " } else { "" };
        Some(Point {
            x: size.size_bytes as f64,
            value,
            ci: None,
            is_bound,
            tip: format!("{}, {}: {least}{}", subject.label, Bytes(size.size_bytes), rate(value)),
        })
    };
    chart(
        format!("Bandwidth of a stream of {}", title(operation)),
        ("bandwidth", round_rate),
        curves(subjects, operation, point),
        html! { "Both axes logarithmic. The bytes of an operation over the gap. Open points: at least that." },
    )
}

fn curves(
    subjects: &[Subject<'_>],
    operation: Operation,
    point: impl Fn(&Subject<'_>, &TransferTimes) -> Option<Point>,
) -> Vec<Curve> {
    let points = |subject: &Subject<'_>| -> Vec<Point> {
        let operations = subject.found.operations.iter().filter(|one| one.operation == operation);
        operations.flat_map(|one| &one.sizes).filter_map(|size| point(subject, size)).collect()
    };
    let all = subjects.iter().map(|subject| Curve::of(subject, points(subject)));
    all.filter(|curve| !curve.points.is_empty()).collect()
}

fn chart(
    label: String,
    (of, show): (&'static str, fn(f64) -> String),
    curves: Vec<Curve>,
    caption: Markup,
) -> Chart {
    let axes = (Along::Bytes("bytes of an operation"), (of, show, None));
    Chart { heading: html! {}, label, size: (WIDE, 360.0), axes, curves, caption }
}
