//! The part of the page about registering memory: figure 10 of Speight et al. 1999, for each layer and for
//! all layers in one.

mod charts;
mod tables;

use super::names::numbered;
use crate::notes::Notes;
use maud::{Markup, html};
use netdyno_measure::record::{LayerResult, Record};
use netdyno_measure::registration::record::Registration;

/// The result of `registration` for a layer of a record.
pub struct Subject<'a> {
    /// The index of its record.
    record_at: usize,
    /// The index of its result in that record.
    layer_at: usize,
    /// Its record.
    record: &'a Record,
    /// The whole result.
    result: &'a LayerResult,
    /// The record of `registration`.
    registration: &'a Registration,
    /// Its name, with a number if several layers have that name.
    pub label: String,
    /// The class of its colour.
    colour: String,
}

/// Returns all results of `registration` in all records.
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

/// Returns the whole part of the page.
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
