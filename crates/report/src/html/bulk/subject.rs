//! A layer measured at every size, with its name in the report.

use crate::html::names::numbered;
use crate::html::parts::colour;
use netdyno_measure::bulk::record::Bulk;
use netdyno_measure::record::{LayerResult, Record};

/// The result of `bulk` for a layer of a record.
pub struct Subject<'a> {
    /// The index of its record.
    pub record_at: usize,
    /// The index of its result in that record.
    pub layer_at: usize,
    /// Its record.
    pub record: &'a Record,
    /// The whole result.
    pub result: &'a LayerResult,
    /// The record of `bulk`.
    pub bulk: &'a Bulk,
    /// Its name, with a number if several layers have that name.
    pub label: String,
    /// The anchor of its section.
    pub id: String,
    /// The class of its colour.
    pub colour: String,
}

/// Returns all results of `bulk` in all records.
pub fn subjects(records: &[Record]) -> Vec<Subject<'_>> {
    let mut subjects: Vec<Subject<'_>> = Vec::new();
    for (record_at, record) in records.iter().enumerate() {
        for (layer_at, result) in record.results.iter().enumerate() {
            let Some(bulk) = result.bulk() else { continue };
            let at = subjects.len() + 1;
            let (id, colour) = (format!("bulk-{at}"), colour(at - 1));
            let label = result.name();
            subjects.push(Subject { record_at, layer_at, record, result, bulk, label, id, colour });
        }
    }
    let names: Vec<String> = subjects.iter().map(|subject| subject.label.clone()).collect();
    let labels = numbered(&names);
    subjects.iter_mut().zip(labels).for_each(|(subject, label)| subject.label = label);
    subjects
}
