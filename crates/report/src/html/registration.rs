//! The part of the page about registering memory: figure 10 of Speight et al. 1999, for each layer and for
//! all layers in one.

mod charts;
mod tables;

use crate::notes::Notes;
use maud::{Markup, html};
use netdyno_measure::registration::record::Registration;

/// The result of `registration` for a layer.
pub type Subject<'a> = super::subject::Subject<'a, Registration>;

/// Returns the whole part of the page.
pub fn sections(subjects: &[Subject<'_>], notes: &Notes<'_>) -> Markup {
    html! {
        @if subjects.len() > 1 {
            section {
                h2 { "Registering memory" }
                h3 { "Memory that was touched, registered for the first time" }
                (charts::layers(subjects).figure())
            }
        }
        @for subject in subjects {
            section {
                div.keep {
                    h2 { (subject.label) }
                    p.facts { (super::circumstances::of_sizes(subject.result)) (tables::letters(subject, notes)) }
                    h3 { "What becomes of a region, over its size" }
                    (charts::layer(subject).figure())
                }
                div.keep { h3 { "By size" } (tables::sizes(subject, notes)) }
                (tables::fixed(subject))
            }
        }
    }
}
