//! Tests of tables, CSV and pages of `contention` records: with invented data, and with random changes.

use crate::support;
use netdyno_measure::contention::data::CrowdData;
use netdyno_measure::contention::extract::extract;
use netdyno_measure::record::{Found, Record};
use netdyno_report::{csv, html, table};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::LazyLock;

fn record(procs: usize) -> Record {
    support::record(vec![support::contention_layer("am+shm", procs)])
}

static EIGHT: LazyLock<Record> = LazyLock::new(|| record(8));

#[test]
fn a_table_says_what_contention_does() {
    let text = table::render(&EIGHT, 80);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    for line in [
        "  round trips, one pair at a time: 21.0 µs (0 → 1) to 27.1 µs (0 → 7), longest /",
        "    rtt    20.0 µs   22.0 µs  1.10 [1.10, 1.10]      2.00 µs [2.00, 2.01]",
        "    7     35.1 µs  7.00 [7.00, 7.00]          7  1.00 [1.00, 1.00]",
        "  one requester to 7 repliers: 4.01 µs per message, 0.800 [0.800, 0.800] of that",
        "    4       726 k/s  3.64 [3.64, 3.64]          4",
        "  4 pairs across the bisection by the order of the processors: 399 k/s, between",
        "      neighbours 798 k/s, across / neighbours 0.500 [0.500, 0.500] (model 1)",
    ] {
        assert!(text.lines().any(|own| own == line), "{line}\n{text}");
    }
    let narrow = table::render(&EIGHT, 40);
    assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
}

/// Of two rounds, the median of the rates is not that of the times inverted.
#[test]
fn one_pair_is_as_fast_as_itself() {
    let mut launches: Vec<CrowdData> = (0..9).map(|nth| support::crowd(nth, 4)).collect();
    for launch in &mut launches {
        launch.rounds.truncate(2);
        launch.rounds[1].alone.stream.ns *= 3.0;
    }
    let found = extract(&launches, 0.95, 0.02).unwrap().found;
    assert_eq!(found.rates[0].ratio.value, 1.0);
}

/// While all pairs send at once, one of them may wait for the others, and the rest not.
#[test]
fn a_hidden_pair_is_told() {
    let mut launches: Vec<CrowdData> = (0..9).map(|nth| support::crowd(nth, 4)).collect();
    for round in launches.iter_mut().flat_map(|launch| &mut launch.rounds) {
        // A delay of 10 µs and 3.3 µs of overheads are no longer than its stream.
        round.halves[1].stream.ns = 20e3;
    }
    let reading = extract(&launches, 0.95, 0.02).unwrap();
    let doubt = reading.doubts.iter().find(|doubt| doubt.name == "hidden_in_crowd").unwrap();
    assert!(doubt.text.contains("1 of 2 pairs have no o_r and no L"), "{}", doubt.text);
    let o_r = reading.found.halves.compared.iter().find(|compared| compared.parameter == "o_r").unwrap();
    assert!(o_r.crowd.value_ns.is_some());
}

#[test]
fn many_processes_are_told_in_few_lines() {
    let text = table::render(&record(64), 80);
    assert!(text.lines().all(|line| line.chars().count() <= 80) && text.lines().count() < 50, "{text}");
    assert!(text.contains("\n    63 "), "{text}");
}

#[test]
fn csv_has_a_row_for_each_figure() {
    let text = csv::render(&EIGHT);
    let row = |start: &str| text.lines().find(|row| row.starts_with(start)).expect(start);
    assert!(row("am+shm,contention,32,rtt,measured,ns,20").ends_with(",virtualised,,"));
    assert!(row("am+shm,contention,32,many_to_one.7.ratio,").contains(",measured,ratio,7"));
    assert!(row("am+shm,contention,32,halves.rtt.difference,").contains(",ns,"));
    assert!(row("am+shm,contention,32,bisection.ratio,").contains(",measured,ratio,0.5,"));
    assert!(row("am+shm,contention,32,rate.4,").contains(",messages_per_s,7"));
}

#[test]
fn a_page_shows_matrix_and_model() {
    for procs in [2, 3, 8, 64] {
        let page = html::render(&[record(procs)]);
        assert!(page.contains("<title>Contention over am+shm – netdyno</title>"));
        assert_eq!(page.matches("data-series=\"pairs\"").count(), procs * (procs - 1));
        assert_eq!(page.contains("pairs across the bisection"), procs >= 4);
        assert!(page.contains("K requesters to one replier") && !page.contains("NaN"));
    }
    let page = html::render(&[EIGHT.clone(), support::various()]);
    assert!(page.contains("LogP of am+shm") && page.contains("am+shm: contention"));
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn whatever_a_record_says_is_shown(changes in proptest::collection::vec((0..1500usize, 0..7u8), 1..12)) {
        let mut small = record(4);
        if let Found::Contention(found) = &mut small.results[0].found {
            found.launches.truncate(1);
        }
        let mut value = serde_json::to_value(&small).unwrap();
        for (mut nth, change) in changes {
            if let Some(place) = find(&mut value, &mut nth) {
                *place = match change {
                    0 => Value::Null,
                    1 => json!(0),
                    2 => json!(-1e300),
                    3 => json!(u64::MAX),
                    4 => json!([]),
                    5 => json!(1e308),
                    _ => json!("<u>\u{1b}"),
                };
            }
        }
        let Ok(record) = Record::from_json(&value.to_string()) else { return Ok(()) };
        table::render(&record, 80);
        csv::render(&record);
        let page = html::render(&[record]);
        prop_assert!(!page.contains("NaN") && !page.contains("<u>") && page.len() < 1_000_000);
    }
}
