//! The part of the page about messages of every size.

mod curves;
mod subject;
mod surface;
mod tables;
mod times;

use super::parts::pretty;
use crate::bulk as text;
use crate::notes::Notes;
use maud::{Markup, html};
pub use subject::{Subject, subjects};

/// Returns the verdict of each layer.
pub fn summary(subjects: &[Subject<'_>]) -> Vec<String> {
    subjects.iter().map(|subject| format!("{}: {}.", subject.label, text::verdict(subject.bulk))).collect()
}

/// Returns the charts of all layers.
pub fn overview(subjects: &[Subject<'_>]) -> Markup {
    html! {
        section {
            h2 #bulk { "Messages of every size" }
            h3 { "Time on the way: T(n), half of a round trip of n bytes both ways" }
            (curves::one_way(subjects))
            div.pair {
                div { h3 { "Bandwidth" } (curves::bandwidth(subjects)) }
                div { h3 { "Send overhead o" sub { "s" } "(n)" } (curves::send_overhead(subjects)) }
            }
        }
    }
}

/// Returns the section of a layer.
pub fn layer(subject: &Subject<'_>, notes: &Notes<'_>) -> Markup {
    html! {
        section {
            div.keep {
                h2 id=(subject.id) { (subject.label) }
                p.facts { (super::circumstances::of_sizes(subject.result)) }
                h3 { "Where the time of a message goes, over its size n" }
                (times::figure(subject))
            }
            div.keep {
                h3 { "The signature as a surface: time per message over burst length M and size n" }
                (surface::figure(subject))
            }
            div.keep { h3 { "By size" } (tables::sizes(subject, notes)) }
            div.keep { h3 { "Lines and where they end" } (tables::segments(subject)) }
            ul.findings {
                @for change in &subject.bulk.changes { li { (pretty(&text::change(change))) "." } }
                li { (pretty(&text::classic(&subject.bulk.classic))) "." }
                li { (pretty(&subject.bulk.overlap.finding)) }
            }
        }
    }
}
