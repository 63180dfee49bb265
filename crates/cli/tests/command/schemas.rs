//! The published schemas are derived from the records.

use crate::common::schemas::file;
use netdyno_measure::record::Record;
use netdyno_measure::sweep::Sweep;
use netdyno_report::compare::Comparison;
use schemars::JsonSchema;
use serde_json::Value;
use std::fs;

/// Asserts that the published schema is that of the type. NETDYNO_WRITE_SCHEMA=1 writes the schema instead.
fn is_published<T: JsonSchema>(name: &str) {
    let derived = serde_json::to_value(schemars::schema_for!(T)).unwrap();
    if std::env::var_os("NETDYNO_WRITE_SCHEMA").is_some() {
        fs::write(file(name), serde_json::to_string_pretty(&derived).unwrap() + "\n").unwrap();
        return;
    }
    let published: Value = serde_json::from_str(&fs::read_to_string(file(name)).unwrap()).unwrap();
    assert_eq!(derived, published, "run the test with NETDYNO_WRITE_SCHEMA=1 and look at what changed");
}

#[test]
fn the_published_schema_is_that_of_the_record() {
    is_published::<Record>("netdyno-1");
}

#[test]
fn the_published_schema_is_that_of_the_comparison() {
    is_published::<Comparison>("netdyno-compare-1");
}

#[test]
fn the_published_schema_is_that_of_the_sweep() {
    is_published::<Sweep>("netdyno-sweep-1");
}
