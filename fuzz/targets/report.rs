//! Changes any values of a record. If the result is still a record, it is shown as a table, as CSV and as a
//! page, compared with the original, and exported. No text of the record may become markup or a CSV cell of
//! its own.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use netdyno_measure::record::Record;
use netdyno_report::compare::{self, Side, Terms};
use netdyno_report::export::curve::Curve;
use netdyno_report::export::loggopsim::{self, TimeUnit};
use netdyno_report::export::{self, simgrid};
use netdyno_report::{csv, html, table};
use serde_json::{Value, json};

/// One record of each of four verbs.
const RECORDS: [&str; 4] = [
    include_str!("records/logp.json"),
    include_str!("records/bulk.json"),
    include_str!("records/contention.json"),
    include_str!("records/overlap.json"),
];
/// The most changes. Further ones are ignored.
const CHANGES_AT_MOST: usize = 40;
/// The most values in a record. Repetitions beyond it are not made.
const VALUES_AT_MOST: usize = 3000;
const PAGE_AT_MOST: usize = 20_000_000;
/// Markup that no page of netdyno contains.
const MARKUP: &str = "<u>";

/// A change of a value.
#[derive(Arbitrary, Debug)]
enum Change {
    Null,
    Number(i32),
    Fraction(i8),
    PowerOfTen { exponent: i16, is_negative: bool },
    Largest,
    NoItems,
    NoFields,
    Text(String),
    Word(u8),
    RepeatLast(u8),
    Cut(u8),
}

fuzz_target!(|input: (u8, Vec<(u16, Change)>)| {
    let (verb, changes) = input;
    let original = RECORDS[usize::from(verb) % RECORDS.len()];
    let mut value: Value = serde_json::from_str(original).expect("a record");
    for (at, change) in changes.into_iter().take(CHANGES_AT_MOST) {
        let mut nth = usize::from(at) % count(&value);
        let room = VALUES_AT_MOST.saturating_sub(count(&value));
        if let Some(place) = find(&mut value, &mut nth) {
            change.make(place, room);
        }
    }
    let text = value.to_string();
    let Ok(record) = Record::from_json(&text) else { return };
    table::render(&record, 80);
    check_rows(&csv::render(&record));
    check_comparison(original, &record);
    check_exports(&record);
    let page = html::render(&[record]);
    assert!(page.len() < PAGE_AT_MOST, "a page of {} bytes", page.len());
    assert!(!page.contains(MARKUP), "a text is markup");
    assert!(text.contains("NaN") || !page.contains("NaN"), "something is drawn nowhere");
});

fn check_comparison(original: &str, record: &Record) {
    let original = Record::from_json(original).expect("a record");
    let terms = Terms { confidence: 0.95, fail_on: Some(0.05) };
    let side = |record| Side { name: "record", record, layer: None };
    if let Ok(comparison) = compare::compare(side(&original), side(record), terms) {
        compare::table::render(&comparison, 80);
        compare::csv::render(&comparison);
    }
}

fn check_exports(record: &Record) {
    // A record of several verbs is refused.
    let _ = export::csv::render(&record.results.iter().collect::<Vec<_>>());
    for result in &record.results {
        if let Ok(curve) = Curve::of(&[result]) {
            assert!(!simgrid::render(&curve).text.contains("NaN"), "a platform without a number");
            let _ = loggopsim::render(&curve, TimeUnit::Ns);
        }
    }
}

impl Change {
    fn make(self, place: &mut Value, room: usize) {
        match (self, place) {
            (Self::RepeatLast(times), Value::Array(items)) => {
                let Some(last) = items.last().cloned() else { return };
                let times = usize::from(times).min(room / count(&last));
                items.extend(vec![last; times]);
            }
            (Self::Cut(len), Value::Array(items)) => items.truncate(len.into()),
            (Self::RepeatLast(_) | Self::Cut(_), _) => {}
            (Self::Null, place) => *place = Value::Null,
            (Self::Number(number), place) => *place = json!(number),
            (Self::Fraction(number), place) => *place = json!(f64::from(number) / 64.0),
            (Self::PowerOfTen { exponent, is_negative }, place) => {
                let power = 10_f64.powi(i32::from(exponent) % 309);
                *place = json!(if is_negative { -power } else { power });
            }
            (Self::Largest, place) => *place = json!(u64::MAX),
            (Self::NoItems, place) => *place = json!([]),
            (Self::NoFields, place) => *place = json!({}),
            (Self::Text(text), place) => *place = json!(format!("{MARKUP}{text}")),
            (Self::Word(nth), place) => {
                let words = ["measured", "upper_bound", "unobservable", "gap", "processor", "window"];
                *place = json!(words[usize::from(nth) % words.len()]);
            }
        }
    }
}

/// Returns the number of values in `value`, itself included.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        _ => 0,
    }
}

/// Finds the value with this number in depth-first order, from 0.
fn find<'a>(value: &'a mut Value, nth: &mut usize) -> Option<&'a mut Value> {
    if *nth == 0 {
        return Some(value);
    }
    *nth -= 1;
    match value {
        Value::Array(items) => items.iter_mut().find_map(|item| find(item, nth)),
        Value::Object(fields) => fields.values_mut().find_map(|field| find(field, nth)),
        _ => None,
    }
}

/// Checks that every row has all columns, with any text in the cells (RFC 4180).
fn check_rows(csv: &str) {
    let (mut cells, mut is_quoted) = (1, false);
    for byte in csv.bytes() {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b',' if !is_quoted => cells += 1,
            b'\n' if !is_quoted => {
                assert_eq!(cells, csv::COLUMNS.len(), "a row is broken");
                cells = 1;
            }
            _ => {}
        }
    }
    assert!(!is_quoted && cells == 1, "a row is cut");
}
