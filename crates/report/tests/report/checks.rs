//! Checks of the reports of a record, for the tests of every verb.

use netdyno_measure::record::Record;
use netdyno_report::{csv, html, table};
use std::slice;

/// Reports whether all coordinates in the charts are finite.
pub fn is_drawn(page: &str) -> bool {
    page.split("<svg").skip(1).all(|svg| {
        let svg = svg.split("</svg>").next().unwrap_or_default();
        !["NaN", "inf\"", "inf "].iter().any(|bad| svg.contains(bad))
    })
}

/// Asserts that a record has a report in every form, and that its table fits `width` columns.
pub fn assert_reported(record: &Record, width: usize) {
    let text = table::render(record, width);
    let most = width.max(table::WIDTH_AT_LEAST);
    assert!(text.lines().all(|line| line.chars().count() <= most), "{text}");
    csv::render(record);
    assert!(is_drawn(&html::render(slice::from_ref(record))));
}

/// Returns the value of the row of a CSV text that begins with `start`.
pub fn value(text: &str, start: &str) -> f64 {
    let row = text.lines().find_map(|row| row.strip_prefix(start)).unwrap_or_else(|| panic!("{start}"));
    row.split(',').next().unwrap().parse().unwrap()
}

/// Asserts that no figure has two rows in a CSV text.
pub fn assert_each_once(text: &str) {
    let mut keys: Vec<&str> =
        text.lines().map(|row| row.match_indices(',').nth(3).map_or(row, |(at, _)| &row[..at])).collect();
    let all = keys.len();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), all, "no figure stands twice");
}
