//! A result of one verb, with its name on the page.

use super::names::numbered;
use super::parts::colour;
use crate::notes::{Note, Notes};
use netdyno_measure::record::{Found, LayerResult, Logp, Record};

/// A result of a verb, and its part of the record.
pub struct Subject<'a, T> {
    /// The index of its record.
    record_at: usize,
    /// The index of its result in that record.
    layer_at: usize,
    /// Its record.
    pub record: &'a Record,
    /// The whole result.
    pub result: &'a LayerResult,
    /// The findings of the verb.
    pub found: &'a T,
    /// Its name, with a number if several results of the verb have that name.
    pub label: String,
    /// The anchor of its section.
    pub id: String,
    /// The class of its colour.
    pub colour: String,
}

/// A LogP signature.
pub type Signature<'a> = Subject<'a, Logp>;

/// Returns the results of all records in which `found` finds a verb. Their anchors begin with `anchor`.
pub fn subjects<'a, T>(
    records: &'a [Record],
    anchor: &str,
    found: fn(&'a Found) -> Option<&'a T>,
) -> Vec<Subject<'a, T>> {
    let mut subjects = Vec::new();
    for (record_at, record) in records.iter().enumerate() {
        for (layer_at, result) in record.results.iter().enumerate() {
            let Some(found) = found(&result.found) else { continue };
            let (at, label) = (subjects.len(), result.name());
            let (id, colour) = (format!("{anchor}-{}", at + 1), colour(at));
            subjects.push(Subject { record_at, layer_at, record, result, found, label, id, colour });
        }
    }
    let labels = numbered(&labels(&subjects));
    subjects.iter_mut().zip(labels).for_each(|(subject, label)| subject.label = label);
    subjects
}

/// Returns the names of the subjects.
pub fn labels<T>(subjects: &[Subject<'_, T>]) -> Vec<String> {
    subjects.iter().map(|subject| subject.label.clone()).collect()
}

impl<T> Subject<'_, T> {
    /// Returns the doubts about a figure of the subject.
    pub fn about<'n, 'a>(&self, notes: &'n Notes<'a>, figure: &str) -> Vec<&'n Note<'a>> {
        notes.about(self.record_at, self.layer_at, figure, None)
    }

    /// Returns the doubts about a figure of one operation of the subject.
    pub fn about_of<'n, 'a>(&self, notes: &'n Notes<'a>, operation: &str, figure: &str) -> Vec<&'n Note<'a>> {
        notes.about(self.record_at, self.layer_at, figure, Some(operation))
    }

    /// Returns the doubts about the subject that concern none of `figures`.
    pub fn elsewhere<'n, 'a>(&self, notes: &'n Notes<'a>, figures: &[&str]) -> Vec<&'n Note<'a>> {
        notes.elsewhere(self.record_at, self.layer_at, figures)
    }

    /// Returns the confidence of the intervals of the subject.
    pub fn confidence(&self) -> f64 {
        self.record.options.confidence
    }
}
