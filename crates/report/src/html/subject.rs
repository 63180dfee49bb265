//! A signature in a record, with its name in the report.

use super::names::numbered;
use crate::logp::LaunchFigures;
use netdyno_measure::record::{LayerResult, Logp, Record};

/// A signature of a record.
pub struct Subject<'a> {
    /// The index of its record.
    pub record_at: usize,
    /// The index of its result in that record.
    pub layer_at: usize,
    /// Its record.
    pub record: &'a Record,
    /// The whole result.
    pub result: &'a LayerResult,
    /// The record of `logp`.
    pub logp: &'a Logp,
    /// The figures of each launch.
    pub launches: Vec<LaunchFigures>,
    /// Its name, with a number if several signatures have that name.
    pub label: String,
    /// The anchor of its section.
    pub id: String,
}

/// Returns all signatures of all records.
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
