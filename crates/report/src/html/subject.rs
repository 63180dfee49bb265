//! A layer of a record, with the name under which the report speaks of it.

use crate::launches::LaunchFigures;
use netdyno_measure::record::{LayerResult, Record};

/// A layer of a record.
pub struct Subject<'a> {
    /// Index of its record.
    pub record_at: usize,
    /// Its index in that record.
    pub layer_at: usize,
    /// Its record.
    pub record: &'a Record,
    /// What was found about it.
    pub result: &'a LayerResult,
    /// What its launches say one by one.
    pub launches: Vec<LaunchFigures>,
    /// Its name; with a number where several have that name.
    pub label: String,
    /// The anchor of its section.
    pub id: String,
}

/// All layers of all records.
pub fn subjects(records: &[Record]) -> Vec<Subject<'_>> {
    let all = || {
        let records = records.iter().enumerate();
        records
            .flat_map(|(at, record)| record.results.iter().enumerate().map(move |(n, r)| (at, record, n, r)))
    };
    let count = |layer: &str| all().filter(|(.., result)| result.layer == layer).count();
    all()
        .enumerate()
        .map(|(at, (record_at, record, layer_at, result))| {
            let before = all().take(at + 1).filter(|(.., other)| other.layer == result.layer).count();
            let label = if count(&result.layer) > 1 {
                format!("{} #{before}", result.layer)
            } else {
                result.layer.clone()
            };
            let launches = result.launches.iter().map(LaunchFigures::of).collect();
            Subject { record_at, layer_at, record, result, launches, label, id: format!("layer-{}", at + 1) }
        })
        .collect()
}
