//! What a page says of dials that were validated.

mod support;

use netdyno_report::html;

/// The tables of a page that have `head` in a heading.
fn tables<'a>(page: &'a str, head: &str) -> Vec<&'a str> {
    let tables = page.split("<table").skip(1).map(|table| table.split("</table>").next().unwrap_or_default());
    tables.filter(|table| table.contains(head)).collect()
}

/// A reader compares the numbers of a column, and should not have to look at units.
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
