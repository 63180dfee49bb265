//! The part of the page about messages of every size.

mod curves;
mod surface;
mod tables;
mod times;

use super::parts::pretty;
use super::plot::pairs;
use super::signature::{self, Drawn};
use crate::bulk as text;
use crate::notes::Notes;
use maud::{Markup, html};
use netdyno_measure::bulk::record::{Bulk, BulkSignature};
use netdyno_measure::show::bytes;

/// A layer measured at every size.
pub type Subject<'a> = super::subject::Subject<'a, Bulk>;

/// Returns the verdict of each layer.
pub fn summary(subjects: &[Subject<'_>]) -> Vec<String> {
    subjects.iter().map(|subject| format!("{}: {}.", subject.label, text::verdict(subject.found))).collect()
}

/// Returns the charts of all layers.
pub fn overview(subjects: &[Subject<'_>]) -> Markup {
    let one_way = curves::one_way(subjects);
    html! {
        section {
            h2 #bulk { "Messages of every size" }
            h3 { (one_way.heading) }
            (one_way.figure())
            (pairs(&curves::others(subjects)))
            @if let Some(transfers) = curves::transfers(subjects) { (pairs(&transfers)) }
        }
    }
}

/// Returns the section of a layer.
pub fn layer(subject: &Subject<'_>, notes: &Notes<'_>) -> Markup {
    html! {
        section {
            div.keep {
                h2 id=(subject.id) { (subject.label) }
                p.facts { (super::circumstances::of_sizes(subject.result)) @if let Some(way) = text::way(subject.found) { " · " (way) } }
                h3 { "Where the time of a message goes, over its size n" }
                (times::figure(subject))
            }
            div.keep {
                h3 { "The signature as a surface: time per message over burst length M and size n" }
                (surface::figure(subject))
            }
            @for (at, of) in subject.found.signatures.iter().enumerate() { (signature(subject, at, of)) }
            div.keep { h3 { "By size" } (tables::sizes(subject, notes)) }
            div.keep { h3 { "Lines and where they end" } (tables::segments(subject)) }
            ul.findings {
                @for change in &subject.found.changes { li { (pretty(&text::change(change))) "." } }
                @for fit in text::classics(subject.found) { li { (pretty(&fit)) "." } }
                li { (pretty(&subject.found.overlap.finding)) }
            }
        }
    }
}

/// Returns the signature of one size (Culler et al. 1996, figures 8 and 9).
fn signature(subject: &Subject<'_>, at: usize, of: &BulkSignature) -> Markup {
    let launches = subject.found.launches.iter().filter_map(|launch| launch.signatures.get(at));
    let drawn = Drawn {
        label: &format!("{} with transfers of {}", subject.label, bytes(of.size_bytes as f64)),
        parameters: &of.parameters,
        plateau: &of.signature.plateau,
        launches: launches.map(|launch| &launch.data).collect(),
        confidence: subject.confidence(),
    };
    html! {
        div.keep {
            h3 { "Signature of " (text::transfers(of.transfer, of.size_bytes)) }
            (signature::figure(&drawn))
        }
    }
}
