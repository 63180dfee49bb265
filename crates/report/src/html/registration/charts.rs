//! Costs over the size of a region, both axes logarithmic (Speight et al. 1999, figure 10).

use super::Subject;
use crate::html::chart::{WIDE, chart};
use crate::html::parts::{colour, parameter_tip, round_time, shown, sound};
use crate::html::plot::{Curve, Plot, Point, end_label};
use crate::registration::HEADINGS;
use maud::{Markup, html};
use netdyno_measure::record::Parameter;
use netdyno_measure::registration::record::SizeCosts;
use netdyno_measure::show::Bytes;

const HEIGHT: f64 = 440.0;
/// The indices in [`SizeCosts::times`] of touched memory, which all layers share, and of locking.
const TOUCHED: usize = 1;
const LOCK: usize = 6;

/// Returns the chart of all operations on a region of one layer.
pub fn layer(subject: &Subject<'_>) -> Markup {
    let curve = |(at, heading): (usize, &&str)| Curve {
        class: colour(at),
        label: (*heading).into(),
        points: points(subject, at),
    };
    let curves: Vec<Curve> = HEADINGS.iter().enumerate().map(curve).collect();
    figure(
        &format!("What registering costs over {}", subject.label),
        &curves,
        "Both axes logarithmic, as in figure 10 of Speight et al. 1999. First touch: nothing has written to the memory. Again: after it was deregistered. Cached: while it is registered. mlock and munlock: what the system takes to lock such memory. Vertical bars: the interval of the median over launches.",
    )
}

/// Returns the chart of all layers, with the cost of locking on the machine of the first.
pub fn layers(subjects: &[Subject<'_>]) -> Markup {
    let curve = |subject: &Subject<'_>| Curve {
        class: subject.colour.clone(),
        label: end_label(subject.result, &subject.label),
        points: points(subject, TOUCHED),
    };
    let mut curves: Vec<Curve> = subjects.iter().map(curve).collect();
    curves.extend(subjects.first().map(|first| Curve {
        class: "plain".into(),
        label: HEADINGS[LOCK].into(),
        points: points(first, LOCK),
    }));
    figure(
        "What registering costs over all layers",
        &curves,
        "Both axes logarithmic. Beside the layers: what the system takes to lock such memory, on the machine of the first.",
    )
}

fn points(subject: &Subject<'_>, at: usize) -> Vec<Point> {
    subject.registration.sizes.iter().filter_map(|size| cost_point(subject, size, at)).collect()
}

fn cost_point(subject: &Subject<'_>, size: &SizeCosts, at: usize) -> Option<Point> {
    let cost: &Parameter = size.times()[at].1;
    let of = format!("{}, {}", subject.label, Bytes(size.size_bytes));
    Some(Point {
        x: size.size_bytes as f64,
        value: shown(cost).filter(|ns| *ns > 0.0)?,
        ci: sound(cost.ci_ns),
        is_bound: false,
        tip: parameter_tip(&of, HEADINGS[at], cost, subject.record.options.confidence),
    })
}

fn figure(label: &str, curves: &[Curve], caption: &str) -> Markup {
    let plot = Plot::of(curves, WIDE, HEIGHT);
    let drawn = html! { (plot.axes_over_bytes("time", round_time, "bytes in a region")) (plot.draw(curves)) };
    html! {
        figure {
            (chart(WIDE, HEIGHT, label, &drawn))
            figcaption { (caption) }
        }
    }
}
