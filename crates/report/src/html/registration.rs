//! The part of the page that is about registering memory: figure 10 of Speight et al. 1999, for each
//! layer by itself, and all layers in one.

mod charts;
mod tables;

use super::names::numbered;
use crate::notes::Notes;
use maud::{Markup, html};
use netdyno_measure::record::{LayerResult, Record};
use netdyno_measure::registration::record::Registration;

/// What `registration` found about a layer of a record.
pub struct Subject<'a> {
    /// Index of its record.
    record_at: usize,
    /// Its index in that record.
    layer_at: usize,
    /// Its record.
    record: &'a Record,
    /// The whole result.
    result: &'a LayerResult,
    /// What was found.
    registration: &'a Registration,
    /// Its name; with a number where several have that name.
    pub label: String,
    /// The class of its colour.
    colour: String,
}

/// All of them in all records.
pub fn subjects(records: &[Record]) -> Vec<Subject<'_>> {
    let mut subjects: Vec<Subject<'_>> = Vec::new();
    for (record_at, record) in records.iter().enumerate() {
        for (layer_at, result) in record.results.iter().enumerate() {
            let Some(registration) = result.registration() else { continue };
            let colour = super::parts::colour(subjects.len());
            let label = result.name();
            subjects.push(Subject { record_at, layer_at, record, result, registration, label, colour });
        }
    }
    let names: Vec<String> = subjects.iter().map(|subject| subject.label.clone()).collect();
    let labels = numbered(&names);
    subjects.iter_mut().zip(labels).for_each(|(subject, label)| subject.label = label);
    subjects
}

/// The whole part.
pub fn sections(subjects: &[Subject<'_>], notes: &Notes<'_>) -> Markup {
    html! {
        @if subjects.len() > 1 {
            section {
                h2 { "Registering memory" }
                h3 { "Memory that was touched, registered for the first time" }
                (charts::layers(subjects))
            }
        }
        @for subject in subjects {
            section {
                div.keep {
                    h2 { (subject.label) }
                    p.facts { (super::circumstances::of_sizes(subject.result)) (tables::letters(subject, notes)) }
                    h3 { "What becomes of a region, over its size" }
                    (charts::layer(subject))
                }
                div.keep { h3 { "By size" } (tables::sizes(subject, notes)) }
                (tables::fixed(subject))
            }
        }
    }
}
