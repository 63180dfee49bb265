//! The part of the page about one-sided operations: latency and bandwidth over the size, for each operation.

mod charts;
mod tables;

use crate::notes::Notes;
use crate::onesided::{setting_in_words, title};
use maud::{Markup, html};
use netdyno_measure::onesided::data::Operation;
use netdyno_measure::onesided::record::Onesided;

/// The result of `onesided` for a layer.
pub type Subject<'a> = super::subject::Subject<'a, Onesided>;

/// Returns the whole part of the page.
pub fn sections(subjects: &[Subject<'_>], notes: &Notes<'_>) -> Markup {
    html! {
        @if !subjects.is_empty() {
            section {
                h2 { "One-sided operations" }
                @for operation in Operation::ALL {
                    @if has_sizes(subjects, operation) {
                        h3 { "Time until a " (title(operation)) " is complete everywhere, and bandwidth of a stream" }
                        (charts::completion(subjects, operation).figure())
                        (charts::bandwidth(subjects, operation).figure())
                    }
                }
            }
        }
        @for subject in subjects {
            section {
                h2 { (subject.label) }
                @for words in setting_in_words(subject.found) { p { (words) } }
                p.facts { (super::circumstances::of_sizes(subject.result)) (tables::letters(subject, notes)) }
                @for operation in &subject.found.operations {
                    div.keep {
                        h3 { (title(operation.operation)) }
                        (tables::sizes(subject, operation, notes))
                    }
                }
            }
        }
    }
}

/// Reports that a layer has an operation at more than one size, so that a curve can be drawn.
fn has_sizes(subjects: &[Subject<'_>], operation: Operation) -> bool {
    let operations = subjects.iter().flat_map(|subject| &subject.found.operations);
    operations.filter(|one| one.operation == operation).any(|one| one.sizes.len() > 1)
}
