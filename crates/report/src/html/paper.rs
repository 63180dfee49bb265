//! The part of the page about the experiment of a paper: figures 7 to 9 of Speight et al. (1999), and what COMB finds in
//! the stacks of Brightwell et al. (2003).

use super::chart::HALF;
use super::overlap::{Subject, half_rtt};
use super::parts::{pretty, round_time, sound};
use super::plot::{Chart, Curve, OVER_MESSAGES, Point, pairs};
use crate::overlap::percent_and_interval;
use crate::paper::{SHORT, sentences};
use maud::{Markup, html};
use netdyno_measure::record::{Paper, Record};
use netdyno_measure::show::{Size, percent};
use netdyno_measure::speight::{Section5, Variant};

/// Returns the title of a page about one record that repeats a paper.
pub fn title(records: &[Record]) -> Option<String> {
    match records {
        [record] => record.paper.map(|paper| name(paper).to_owned()),
        _ => None,
    }
}

fn name(paper: Paper) -> &'static str {
    match paper {
        Paper::Comb => "The protocol stacks of Brightwell et al. (2003)",
        Paper::Speight5 => "MPI over Virtual Interfaces: section 5 of Speight et al. (1999)",
    }
}

/// Returns the part of each record that repeats a paper.
pub fn sections(records: &[Record], subjects: &[Subject<'_>]) -> Markup {
    html! { @for record in records { @if let Some(paper) = record.paper { (section(record, paper, subjects)) } } }
}

fn section(record: &Record, paper: Paper, subjects: &[Subject<'_>]) -> Markup {
    let of_record: Vec<&Subject<'_>> =
        subjects.iter().filter(|subject| std::ptr::eq(subject.record, record)).collect();
    html! {
        section {
            h2 #paper { "Beside the paper" }
            ul.findings { @for sentence in sentences(record) { li { (pretty(&sentence)) } } }
            @if paper == Paper::Speight5 { (pairs(&figures(record, &of_record))) }
        }
    }
}

/// Returns figures 7, 8 and 9, and the gains of the last variant with them.
fn figures(record: &Record, subjects: &[&Subject<'_>]) -> [Chart; 3] {
    let latencies = |is_shown: fn(usize) -> bool| {
        subjects.iter().map(|subject| latency(subject, is_shown)).collect::<Vec<_>>()
    };
    let chart = |heading: &'static str, up, curves, caption: &'static str| Chart {
        heading: html! { (heading) },
        label: heading.into(),
        size: (HALF, 340.0),
        axes: (OVER_MESSAGES, up),
        curves,
        caption: html! { (caption) },
    };
    [
        chart(
            "Figure 7: half a round trip",
            ("half a round trip", round_time, None),
            latencies(|_| true),
            "All variants, all sizes.",
        ),
        chart(
            "Figure 8: short messages",
            ("half a round trip", round_time, Some(0.0)),
            latencies(|bytes| SHORT.contains(&bytes)),
            "Below 1 KiB, with a linear axis.",
        ),
        chart(
            "Figure 9: improvement over the baseline",
            ("shorter than MPI over VI", percent, Some(0.0)),
            gains(record, subjects),
            "Share by which each change shortens half a round trip, paired by launch.",
        ),
    ]
}

fn latency(subject: &Subject<'_>, is_shown: fn(usize) -> bool) -> Curve {
    let trips = subject.found.trips.iter().filter(|trip| is_shown(trip.size_bytes));
    Curve::of(subject, trips.filter_map(|trip| half_rtt(subject, trip)).collect())
}

fn gains(record: &Record, subjects: &[&Subject<'_>]) -> Vec<Curve> {
    let section = Section5::of(&record.results, record.options.confidence);
    let of = |variant: Variant| {
        let subject =
            subjects.iter().find(|subject| subject.result.label.as_deref() == Some(variant.label()))?;
        let points = section.sizes().into_iter().filter_map(|bytes| {
            let gain = section.gain(variant, bytes..=bytes);
            let tip =
                format!("{}, {}\n{} shorter", variant.label(), Size(bytes), percent_and_interval(&gain));
            let value = gain.value.filter(|value| value.is_finite())?;
            Some(Point { x: bytes as f64, value, ci: sound(gain.ci), is_bound: false, tip })
        });
        Some(Curve::of(subject, points.collect()))
    };
    Variant::CHANGES.into_iter().filter_map(of).collect()
}
