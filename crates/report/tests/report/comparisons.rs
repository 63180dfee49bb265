//! Tests of the page of a comparison.

use crate::support;
use netdyno_measure::record::{Doubt, Found, LayerResult, Record};
use netdyno_report::compare::{Comparison, Side, Terms, compare, csv, table};
use netdyno_report::html;

const BEFORE: &str = "o_s=1us,o_r=2us,g=5us,L=7us,noise=0.01";
const AFTER: &str = "o_s=1.3us,o_r=2us,g=5us,L=7us,noise=0.01";

fn compared(a: &Record, b: &Record, fail_on: Option<f64>) -> Comparison {
    let side = |name, record| Side { name, record, layer: None };
    let terms = Terms { confidence: 0.95, fail_on };
    compare(side("before.json", a), side("<after>.json", b), terms).expect("the same layer in both")
}

#[test]
fn a_page_says_what_differs_and_draws_every_ratio() {
    let of = |truth| support::record(vec![support::layer("sim", truth, 9)]);
    let comparison = compared(&of(BEFORE), &of(AFTER), Some(0.05));
    let page = html::of_comparison(&comparison);
    assert!(page.contains("<h1>&lt;after&gt;.json against before.json</h1>"));
    assert!(page.contains("<li>Larger in B: rtt and <i>o</i><sub>s</sub></li>"), "{page}");
    assert!(page.contains("limit 5 %: ") && page.contains(">limit 5 %</text>"));
    let with_ratio = comparison.comparisons[0].parameters.iter().filter(|p| p.ratio.is_some()).count();
    assert_eq!(page.matches("data-series=\"ratios\"").count(), with_ratio);
    for compared in &comparison.comparisons[0].parameters {
        let words = compared.in_words();
        let (ratio, interval) = words.split_once(" [").unwrap_or((&words, ""));
        assert!(page.contains(&format!("<td>{ratio}<")), "{words}");
        assert!(interval.is_empty() || page.contains(&format!("[{interval}</span>")), "{words}");
    }
    for doubt in comparison.doubts.iter().chain(&comparison.comparisons[0].doubts) {
        let words = doubt.text.split(['\'', '<', '&', '_']).next().unwrap_or_default();
        assert!(page.contains(words), "{words}");
    }
}

/// What is doubtful about a run is doubtful about the ratio of its layers.
#[test]
fn layers_of_one_record_carry_the_doubts_of_the_run() {
    let mut record = support::various();
    record.doubts = vec![Doubt::new("interrupted", "signal 2".into())];
    let side = |layer| Side { name: "run.json", record: &record, layer: Some(layer) };
    let terms = Terms { confidence: 0.95, fail_on: None };
    let comparison = compare(side("sim"), side("tcp"), terms).unwrap();
    let doubt = comparison.doubts.iter().find(|doubt| doubt.name == "doubts_in_the_run").unwrap();
    assert!(doubt.text.contains("interrupted"), "{doubt:?}");
}

/// Layers of one kind are told apart by their labels, in the table and in the columns at the end of a row.
#[test]
fn labels_are_shown() {
    let of = |label: &str| {
        let layer = support::layer("sim", BEFORE, 9);
        support::record(vec![LayerResult { label: Some(label.into()), ..layer }])
    };
    let comparison = compared(&of("old"), &of("new"), None);
    let text = table::render(&comparison, 80);
    assert!(text.contains("sim (new) against sim (old)"), "{text}");
    let rows = csv::render(&comparison);
    assert!(rows.lines().skip(1).all(|row| row.ends_with(",old,new")), "{rows}");
}

/// A launch without a value is left out of an unpaired ratio, and the comparison says so, and at which size.
#[test]
fn a_launch_without_a_value_is_told() {
    let bulk = support::bulk_layer("sim", "o_s=1us,o_r=2us,g=5us,L=7us,G=0.5ns/B,noise=0.01", 9);
    let whole = support::record(vec![bulk]);
    let mut lacking = whole.clone();
    let Found::Bulk(found) = &mut lacking.results[0].found else { unreachable!() };
    let size_bytes = found.launches[0].shape.sizes[3].size_bytes;
    found.launches[0].sizes[3].rtt_ns.clear();
    let comparison = compared(&whole, &lacking, None);
    let doubts = &comparison.comparisons[0].doubts;
    let doubt = doubts.iter().find(|doubt| doubt.name == "launches_without").expect("a warning");
    let text = format!("at {size_bytes} B: 1 of 9 launches of B have no value of it and are not compared");
    assert_eq!(doubt.text, text);
}

#[test]
fn ratios_of_many_sizes_are_curves() {
    let of = |truth| support::record(vec![support::bulk_layer("sim", truth, 6)]);
    let (a, b) = (
        of("o_s=1us,o_r=2us,g=5us,L=7us,G=0.5ns/B,noise=0.01"),
        of("o_s=1us,o_r=2us,g=5us,L=7us,G=1ns/B,noise=0.01"),
    );
    let page = html::of_comparison(&compared(&a, &b, None));
    for parameter in ["T", "o_s", "o_r", "g"] {
        assert!(page.contains(&format!("aria-label=\"Ratios of {parameter} over the size\"")), "{parameter}");
    }
    assert!(page.contains(" sizes") && page.contains("not interleaved"));
}

#[test]
fn layers_of_one_record_have_a_page() {
    let record = support::various();
    let side = |layer| Side { name: "run.json", record: &record, layer: Some(layer) };
    let terms = Terms { confidence: 0.95, fail_on: None };
    let comparison = compare(side("sim"), side("tcp"), terms).expect("two layers");
    let page = html::of_comparison(&comparison);
    assert!(page.contains("<h1>tcp of run.json against sim of run.json</h1>"));
    assert!(page.contains("paired by launch") && !page.contains("NaN"));
}
