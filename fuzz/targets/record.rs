//! Parses any text as a record. It is refused, or it can be written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use netdyno_measure::record::{Record, SCHEMA};

fuzz_target!(|text: &str| {
    if let Ok(record) = Record::from_json(text) {
        assert_eq!(record.schema, SCHEMA);
        let written = serde_json::to_string(&record).expect("a record can be written");
        Record::from_json(&written).expect("what was written is a record");
    }
});
