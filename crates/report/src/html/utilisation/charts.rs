//! Utilisation, and the processor time of a message, over the size.

use super::{Subject, titles};
use crate::html::chart::HALF;
use crate::html::parts::{colour, cut, parameter_tip, round_time, shown, sound, with_minus};
use crate::html::plot::{Chart, Curve, OVER_MESSAGES, Point, Up};
use crate::utilisation::is_bound;
use maud::html;
use netdyno_measure::show::{Bytes, number_and_interval, percent};
use netdyno_measure::utilisation::record::{KINDS, SideCosts, UtilisationSize};

/// The axis leaves room for 1.
const SHARE: Up = ("share of a processor", percent, Some(1.04));
/// Largest number of characters of a way to wait in a label.
const WAY_AT_MOST: usize = 9;

/// Returns the charts of the utilisation, one for each kind of window.
pub fn utilisation(subjects: &[Subject<'_>]) -> [Chart; KINDS.len()] {
    let point = |subject: &Subject<'_>, size: &UtilisationSize, side: &str, costs: &SideCosts| {
        let share = costs.busy.share;
        let value = share.value.filter(|value| value.is_finite())?;
        let figure = with_minus(&number_and_interval(value, share.ci));
        Some(Point {
            x: size.size_bytes as f64,
            value,
            ci: sound(share.ci),
            is_bound: is_bound(&costs.busy),
            tip: format!("{}, {side}, {}\n{figure} of a processor", subject.label, Bytes(size.size_bytes)),
        })
    };
    let caption = [
        "Processor time of all threads over elapsed time, with one message on the way at a time (figure 6 of Speight et al. 1999).",
        "The same for a stream with a full window and small replies.",
    ];
    charts(subjects, "utilisation", SHARE, caption, point)
}

/// Returns the charts of the processor time of a message, one for each kind of window.
pub fn per_message(subjects: &[Subject<'_>]) -> [Chart; KINDS.len()] {
    let point = |subject: &Subject<'_>, size: &UtilisationSize, side: &str, costs: &SideCosts| {
        let each = &costs.busy.per_message;
        let of = format!("{}, {side}, {}", subject.label, Bytes(size.size_bytes));
        Some(Point {
            x: size.size_bytes as f64,
            value: shown(each).filter(|ns| *ns > 0.0)?,
            ci: sound(each.ci_ns),
            is_bound: is_bound(&costs.busy),
            tip: parameter_tip(&of, "processor time of a message", each, subject.confidence()),
        })
    };
    let caption = [
        "Processor time of a request and its reply, both of that size.",
        "Processor time of a request of that size and its small reply.",
    ];
    charts(subjects, "processor time of a message", ("processor time", round_time, None), caption, point)
}

fn charts(
    subjects: &[Subject<'_>],
    what: &str,
    up: Up,
    captions: [&str; KINDS.len()],
    point: impl Fn(&Subject<'_>, &UtilisationSize, &str, &SideCosts) -> Option<Point>,
) -> [Chart; KINDS.len()] {
    std::array::from_fn(|kind| {
        let curves = subjects.iter().enumerate().flat_map(|(nth, subject)| {
            [0, 1].map(|side| {
                let points = subject.found.sizes.iter().filter_map(|size| {
                    let (name, costs) = size.kinds()[kind].1.sides()[side];
                    point(subject, size, name, costs)
                });
                Curve { class: colour(2 * nth + side), label: label(subject, side), points: points.collect() }
            })
        });
        let heading = format!("{}: {what}", titles()[kind]);
        Chart {
            heading: html! { (heading) },
            label: heading.clone(),
            size: (HALF, 320.0),
            axes: (OVER_MESSAGES, up),
            curves: curves.filter(|curve| !curve.points.is_empty()).collect(),
            caption: html! { (captions[kind]) },
        }
    })
}

/// Returns the label of a curve: the way to wait, or the layer, with the side.
fn label(subject: &Subject<'_>, side: usize) -> String {
    let name = subject.result.label.as_deref().unwrap_or(&subject.label);
    format!("{} {}", cut(name, WAY_AT_MOST), ["req.", "repl."][side])
}
