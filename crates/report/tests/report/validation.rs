//! Tests of tables and pages of `validate` records.

use crate::support;
use netdyno_report::{html, table};

/// Returns the tables of a page that contain `head`.
fn tables<'a>(page: &'a str, head: &str) -> Vec<&'a str> {
    let tables = page.split("<table").skip(1).map(|table| table.split("</table>").next().unwrap_or_default());
    tables.filter(|table| table.contains(head)).collect()
}

/// A reader must be able to compare the numbers of a column without their units.
#[test]
fn times_of_a_table_are_in_one_unit_that_its_head_names() {
    let page = html::render(&[support::record(vec![support::validation_layer("am+shm")])]);
    let tables = tables(&page, ">wanted, µs<");
    assert_eq!(tables.len(), 5, "four dials, and plain programs");
    for table in tables {
        let body = table.split("<tbody>").nth(1).expect("a body");
        for unit in ["\u{a0}ns", "\u{a0}µs", "\u{a0}ms", " ns", " µs", " ms"] {
            assert!(!body.contains(unit), "{unit}: {body}");
        }
        let is_whole = |cell: &str| body.contains(&format!(">{cell}</td>"));
        assert!(is_whole("0.312") && is_whole("120") || is_whole("0.900") && is_whole("20.1"), "{body}");
    }
}

#[test]
fn letters_of_doubts_stand_apart_from_words_and_each_other() {
    let page = html::render(&[support::record(vec![support::validation_layer("am+shm")])]);
    let letters = "<sup class=\"marks\"><a href=\"#note-b\">b</a>, <a href=\"#note-c\">c</a></sup>";
    assert!(page.contains(&format!("0 launches\u{202f}{letters}")), "{page}");
}

/// Returns the lines of a table on a terminal, from its title to the sentence below it.
fn rows<'a>(text: &'a str, title: &str) -> Vec<&'a str> {
    let lines = text.lines().skip_while(|line| !line.trim_start().starts_with(title)).skip(1);
    lines.take_while(|line| line.starts_with("  ") && !line.trim_start().starts_with("mean error")).collect()
}

#[test]
fn a_terminal_of_80_columns_shows_the_times_of_a_table_in_one_unit() {
    let text = table::render(&support::record(vec![support::validation_layer("am+shm")]), 80);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert_eq!(text.matches("; times in µs").count(), 5, "four dials, and plain programs: {text}");
    for (title, rows_below) in [("latency:", 6), ("Plain MPI programs", 3)] {
        let rows = rows(&text, title);
        assert_eq!(rows.len(), rows_below, "{text}");
        for row in &rows {
            assert!([" ns", " µs", " ms", "iB"].iter().all(|unit| !row.contains(unit)), "{row}");
        }
    }
    // A mark behind a figure does not move the figure.
    let rows = rows(&text, "latency:");
    assert!(rows[1..].iter().all(|row| row.contains("0.312     0.405!")), "{text}");
    assert!(rows[4].starts_with("      10.0      10.0     0.4 % "), "{text}");
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let record = support::record(vec![support::validation_layer("am+shm")]);
    for width in 40..100 {
        let text = table::render(&record, width);
        assert!(text.lines().all(|line| line.chars().count() <= width), "{width}: {text}");
    }
}
