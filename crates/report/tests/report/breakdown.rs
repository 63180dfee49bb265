//! Tests of tables, CSV and pages of `breakdown` records.

use crate::checks::{assert_each_once, assert_reported, value};
use crate::support;
use netdyno_measure::breakdown::anatomy::Table;
use netdyno_measure::breakdown::record::Breakdown;
use netdyno_measure::record::{Doubt, Found, LayerResult, Parameter, Record};
use netdyno_measure::stats::Interval;
use netdyno_report::{csv, html, table};
use proptest::prelude::*;
use std::sync::LazyLock;

const TRUTH: &str = "o_s=1us,o_r=2us,g=5us,L=7us,o_poll=50ns,noise=0.05";

static RECORD: LazyLock<Record> = LazyLock::new(|| {
    let mut shm = support::breakdown_layer("am+shm", TRUTH, 6);
    breakdown(&mut shm).operations[0].table = Table::Crossing;
    breakdown(&mut shm).operations[1].table = Table::Exchange;
    support::record(vec![shm, support::breakdown_layer("am+udp", TRUTH, 1)])
});

fn breakdown(result: &mut LayerResult) -> &mut Breakdown {
    match &mut result.found {
        Found::Breakdown(breakdown) => breakdown,
        found => panic!("{found:?}"),
    }
}

#[test]
fn a_table_has_a_block_for_each_operation() {
    let text = table::render(&RECORD, 80);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    for words in ["system calls", "plain exchange", "operations of the layer", "unexplained", "35"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    // The steps of a system call sum to it, so that it has no such row.
    let block = text.split("system calls").nth(1).unwrap().split("plain exchange").next().unwrap();
    assert!(block.contains("checksum") && !block.contains("unexplained"), "{text}");
    assert!(table::render(&RECORD, 40).lines().all(|line| line.chars().count() <= 40));
}

#[test]
fn csv_has_a_row_for_each_step() {
    let text = csv::render(&RECORD);
    assert!((value(&text, "am+udp,breakdown,32,send request.copy,measured,ns,") / 300.0 - 1.0).abs() < 0.1);
    assert!((value(&text, "am+udp,breakdown,32,round trip,measured,ns,") / 20e3 - 1.0).abs() < 0.1);
    assert_each_once(&text);
}

#[test]
fn a_page_has_a_stacked_chart_for_each_table() {
    let page = html::render(std::slice::from_ref(&RECORD));
    assert!(page.contains("Steps of messages over am+shm and am+udp"));
    let charts: Vec<&str> = page.split("<svg").filter(|svg| svg.contains("role=\"group\"")).collect();
    assert_eq!(charts.len(), 4);
    assert!(charts[0].contains(">checksum</text>") && !charts[0].contains(">unexplained</text>"));
    assert!(charts[3].contains(">round trip</text>") && charts[3].contains(">unexplained</text>"));
}

#[test]
fn records_with_holes_have_a_report() {
    let with = |change: fn(&mut Breakdown)| {
        let mut record = RECORD.clone();
        change(breakdown(&mut record.results[0]));
        record
    };
    let records = [
        with(|found| found.operations.clear()),
        with(|found| found.launches.clear()),
        with(|found| found.operations[0].steps.clear()),
        with(|found| found.operations[2].whole = Parameter::unobservable()),
    ];
    for record in &records {
        assert_reported(record, 80);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_figure_breaks_a_report(
        values in proptest::array::uniform4(any::<f64>()),
        ends in any::<(f64, f64)>(),
        name in ".{0,80}",
        width in 0usize..200,
    ) {
        let mut record = RECORD.clone();
        let found = breakdown(&mut record.results[0]);
        for (operation, value) in found.operations.iter_mut().zip(values.iter().cycle()) {
            operation.whole.value_ns = Some(*value);
            operation.whole.ci_ns = Some(Interval { lo: ends.0, hi: ends.1 });
            operation.unexplained.value_ns = Some(values[0]);
            operation.unexplained_share.value = Some(values[1]);
            operation.steps.iter_mut().for_each(|step| step.cost.value_ns = Some(values[2]));
            operation.name = name.clone();
        }
        record.results[0].doubts = vec![Doubt::about("doubt", &name, name.clone()); 30];
        record.results[0].layer = name;
        assert_reported(&record, width);
    }
}
