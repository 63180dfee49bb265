//! A layer whose signature is in a record, with the name under which the report speaks of it.

use super::names::numbered;
use crate::launches::LaunchFigures;
use netdyno_measure::record::{LayerResult, Logp, Record};

/// A signature of a record.
pub struct Subject<'a> {
    /// Index of its record.
    pub record_at: usize,
    /// Its index in that record.
    pub layer_at: usize,
    /// Its record.
    pub record: &'a Record,
    /// What was found about it.
    pub result: &'a LayerResult,
    /// What its signature found.
    pub logp: &'a Logp,
    /// What its launches say one by one.
    pub launches: Vec<LaunchFigures>,
    /// Its name; with a number where several have that name.
    pub label: String,
    /// The anchor of its section.
    pub id: String,
}

/// All signatures of all records.
pub fn subjects(records: &[Record]) -> Vec<Subject<'_>> {
    let all = || {
        let records = records.iter().enumerate();
        records.flat_map(|(at, record)| {
            let results = record.results.iter().enumerate();
            results.filter_map(move |(n, result)| Some((at, record, n, result, result.logp()?)))
        })
    };
    let names: Vec<String> = all().map(|(.., result, _)| result.name()).collect();
    all()
        .zip(numbered(&names))
        .enumerate()
        .map(|(at, ((record_at, record, layer_at, result, logp), label))| {
            let launches = logp.launches.iter().map(LaunchFigures::of).collect();
            let id = format!("layer-{}", at + 1);
            Subject { record_at, layer_at, record, result, logp, launches, label, id }
        })
        .collect()
}
