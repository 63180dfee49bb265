//! Tests of results with several strata: table, CSV, page and comparison.

use crate::support;
use netdyno_measure::record::{LayerResult, Record};
use netdyno_measure::stats::Interval;
use netdyno_measure::strata::Stratum;
use netdyno_report::compare::{self, Change, Comparison, Side, Terms};
use netdyno_report::{csv, html, table};
use std::sync::LazyLock;

const NEAR: &str = "o_s=10ns,o_r=10ns,g=60ns,L=40ns,noise=0.02";
const FAR: &str = "o_s=20ns,o_r=30ns,g=90ns,L=150ns,noise=0.02";

fn stratum(name: &str, bounce_ns: f64, is_headline: bool, result: &LayerResult) -> Stratum {
    Stratum {
        name: name.into(),
        is_headline,
        bounce_ns: Some(bounce_ns),
        bounce_range_ns: Some(Interval { lo: 0.98 * bounce_ns, hi: 1.02 * bounce_ns }),
        pace_ns: None,
        unsteady: 0,
        stolen_share: Some(0.01),
        launches: result.launches(),
        parameters: Some(result.parameters.clone()),
        found: (!is_headline).then(|| Box::new(result.found.clone())),
        doubts: Vec::new(),
    }
}

/// Returns a record of a layer with near and far processors. The first stratum is the headline.
fn split(first: (&str, f64, &str, usize), second: (&str, f64, &str, usize)) -> Record {
    let of = |truth, launches| support::layer("am+shm", truth, launches);
    let (headline, other) = (of(first.2, first.3), of(second.2, second.3));
    let mut strata =
        vec![stratum(first.0, first.1, true, &headline), stratum(second.0, second.1, false, &other)];
    strata.sort_by(|a, b| a.bounce_ns.partial_cmp(&b.bounce_ns).unwrap());
    support::record(vec![LayerResult { strata, ..headline }])
}

static NEAR_AND_FAR: LazyLock<Record> =
    LazyLock::new(|| split(("near", 119.0, NEAR, 17), ("far", 538.0, FAR, 13)));

/// Returns a record whose launches are all at one distance.
fn only(bounce_ns: f64, truth: &str) -> Record {
    let result = support::layer("am+shm", truth, 9);
    let strata = vec![stratum("all", bounce_ns, true, &result)];
    support::record(vec![LayerResult { strata, ..result }])
}

fn compared(a: &Record, b: &Record) -> Comparison {
    let side = |name, record| Side { name, record, layer: None };
    compare::compare(side("a", a), side("b", b), Terms { confidence: 0.95, fail_on: Some(0.05) }).unwrap()
}

#[test]
fn a_table_has_a_line_for_each_stratum() {
    let text = table::render(&NEAR_AND_FAR, 100);
    assert!(text.contains("17 of 30 launches, near"), "{text}");
    assert!(text.contains("near, bounce 119 ns: the figures above, 17 launches"), "{text}");
    assert!(text.contains("far, bounce 538 ns: rtt 400 ns [39"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let text = table::render(&only(119.0, NEAR), 100);
    assert!(!text.contains("bounce") && text.contains("9 launches"), "{text}");
}

#[test]
fn other_forms_have_all_strata_too() {
    let record = &*NEAR_AND_FAR;
    let text = csv::render(record);
    let rtt: Vec<&str> = text.lines().filter(|line| line.contains(",rtt,")).collect();
    assert!(matches!(rtt[..], [near, far] if near.ends_with(",near") && far.ends_with(",far")), "{rtt:?}");
    let columns = text.lines().map(|line| line.split(',').count()).collect::<Vec<_>>();
    assert!(columns.iter().all(|&count| count == csv::COLUMNS.len()), "{columns:?}");
    let page = html::render(std::slice::from_ref(record));
    assert!(page.contains("near, bounce 119 ns") && page.contains("far, bounce 538 ns"));
    assert!(!html::render(&[only(119.0, NEAR)]).contains("id=\"strata\""));
}

#[test]
fn a_record_with_strata_is_read_back() {
    let record = &*NEAR_AND_FAR;
    let read = Record::from_json(&serde_json::to_string(record).unwrap()).unwrap();
    // The last digit of a number may change.
    let told = |record: &Record| {
        let strata = record.results[0].strata.iter();
        let rtt = |stratum: &Stratum| stratum.parameters.as_ref()?.rtt.value_ns.map(f64::round);
        strata
            .map(|stratum| (stratum.name.clone(), stratum.launches, stratum.found.is_some(), rtt(stratum)))
            .collect::<Vec<_>>()
    };
    assert_eq!(told(&read), told(record));
    assert_eq!(read.results[0].of_stratum(1).unwrap().launches(), 13);
}

#[test]
fn like_is_compared_with_like() {
    // Most launches of A were near, and most launches of B were far.
    let b = split(("far", 530.0, FAR, 20), ("near", 117.0, NEAR, 8));
    let comparison = compared(&NEAR_AND_FAR, &b);
    let pair = &comparison.comparisons[0];
    assert_eq!(pair.a.stratum.as_deref(), Some("far, bounce 538 ns"));
    assert_eq!((pair.a.launches, pair.b.launches), (13, 20));
    let rtt = pair.parameters.iter().find(|compared| compared.parameter == "rtt").unwrap();
    assert!((rtt.ratio.unwrap() - 1.0).abs() < 0.02 && rtt.ratio_ci.is_some(), "{rtt:?}");
}

#[test]
fn what_is_not_alike_is_not_compared() {
    let comparison = compared(&only(119.0, NEAR), &only(538.0, FAR));
    let pair = &comparison.comparisons[0];
    assert!(pair.parameters.iter().all(|p| p.ratio.is_none() && p.change == Change::Unknown));
    let doubt = pair.doubts.iter().find(|doubt| doubt.name == "strata_differ").unwrap();
    assert!(
        doubt.text.contains("bounce 119 ns in A") && doubt.text.contains("bounce 538 ns in B"),
        "{doubt:?}"
    );
    // A record of an earlier version has no strata, and is compared as before.
    let old = support::record(vec![support::layer("am+shm", FAR, 9)]);
    let pair = &compared(&only(119.0, NEAR), &old).comparisons[0];
    assert!(pair.parameters.iter().any(|p| p.ratio.is_some()));
}
