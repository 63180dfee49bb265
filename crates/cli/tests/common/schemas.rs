//! The published schemas, on which readers of the records rely.

use super::stdout_of;
use netdyno_measure::record::Record;
use serde_json::Value;

/// Returns the file of a schema.
pub fn file(name: &str) -> String {
    format!("{}/../../schema/{name}.schema.json", env!("CARGO_MANIFEST_DIR"))
}

/// Asserts that a document keeps to a schema.
pub fn validate(schema: &str, document: &Value) {
    let schema = serde_json::from_str(&std::fs::read_to_string(file(schema)).unwrap()).unwrap();
    jsonschema::validate(&schema, document).unwrap();
}

/// Returns the valid record in a text.
pub fn read_record(text: &str) -> Record {
    validate("netdyno-1", &serde_json::from_str(text).unwrap());
    Record::from_json(text).unwrap()
}

/// Returns the valid record of a run, as text.
pub fn record_text(args: &[&str]) -> String {
    let text = stdout_of(&[args, &["--format", "json"]].concat());
    read_record(&text);
    text
}

/// Returns the valid record of a run.
pub fn record(args: &[&str]) -> Record {
    read_record(&stdout_of(&[args, &["--format", "json"]].concat()))
}
