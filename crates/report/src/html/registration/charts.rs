//! Costs over the size of a region, both axes logarithmic (Speight et al. 1999, figure 10).

use super::Subject;
use crate::html::chart::WIDE;
use crate::html::parts::{colour, parameter_tip, round_time, shown, sound};
use crate::html::plot::{Along, Chart, Curve, Point};
use crate::registration::HEADINGS;
use maud::{Markup, html};
use netdyno_measure::record::Parameter;
use netdyno_measure::registration::record::SizeCosts;
use netdyno_measure::show::Bytes;

/// The indices in [`SizeCosts::times`] of touched memory, which all layers share, and of locking.
const TOUCHED: usize = 1;
const LOCK: usize = 6;

/// Returns the chart of all operations on a region of one layer.
pub fn layer(subject: &Subject<'_>) -> Chart {
    let curve = |(at, heading): (usize, &&str)| Curve {
        class: colour(at),
        label: (*heading).into(),
        points: points(subject, at),
    };
    chart(
        format!("What registering costs over {}", subject.label),
        HEADINGS.iter().enumerate().map(curve).collect(),
        html! { "Both axes logarithmic, as in figure 10 of Speight et al. 1999. First touch: nothing has written to the memory. Again: after it was deregistered. Cached: while it is registered. mlock and munlock: what the system takes to lock such memory. Vertical bars: the interval of the median over launches." },
    )
}

/// Returns the chart of all layers, with the cost of locking on the machine of the first.
pub fn layers(subjects: &[Subject<'_>]) -> Chart {
    let mut curves: Vec<Curve> =
        subjects.iter().map(|subject| Curve::of(subject, points(subject, TOUCHED))).collect();
    curves.extend(subjects.first().map(|first| Curve {
        class: "plain".into(),
        label: HEADINGS[LOCK].into(),
        points: points(first, LOCK),
    }));
    chart(
        "What registering costs over all layers".into(),
        curves,
        html! { "Both axes logarithmic. Beside the layers: what the system takes to lock such memory, on the machine of the first." },
    )
}

fn chart(label: String, curves: Vec<Curve>, caption: Markup) -> Chart {
    let axes = (Along::Bytes("bytes in a region"), ("time", round_time as fn(f64) -> String, None));
    Chart { heading: html! {}, label, size: (WIDE, 440.0), axes, curves, caption }
}

fn points(subject: &Subject<'_>, at: usize) -> Vec<Point> {
    subject.found.sizes.iter().filter_map(|size| cost_point(subject, size, at)).collect()
}

fn cost_point(subject: &Subject<'_>, size: &SizeCosts, at: usize) -> Option<Point> {
    let cost: &Parameter = size.times()[at].1;
    let of = format!("{}, {}", subject.label, Bytes(size.size_bytes));
    Some(Point {
        x: size.size_bytes as f64,
        value: shown(cost).filter(|ns| *ns > 0.0)?,
        ci: sound(cost.ci_ns),
        is_bound: false,
        tip: parameter_tip(&of, HEADINGS[at], cost, subject.confidence()),
    })
}
