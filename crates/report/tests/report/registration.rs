//! Tests of tables, CSV and pages of `registration` records.

use crate::checks::{assert_reported, value};
use crate::support;
use netdyno_measure::record::{Doubt, Found, LayerResult, Parameter, Record};
use netdyno_measure::registration::record::Registration;
use netdyno_measure::stats::Interval;
use netdyno_report::{csv, html, table};
use proptest::prelude::*;
use std::sync::LazyLock;

const PINS: &str = "register=1us+50ns/page,fault=250ns,deregister=500ns+10ns/page,lock=2us+80ns/page,\
                    unlock=1us+5ns/page,create=5us,noise=0.1";
const KEEPS: &str =
    "register=1us+9ns/page,cached=90ns,kept=on,lock=1us+80ns/page,unlock=1us,lock_limit=64KiB";

static RECORD: LazyLock<Record> = LazyLock::new(|| {
    support::record(vec![
        support::registration_layer("ofi:tcp", PINS, 6),
        support::registration_layer("ucx:posix", KEEPS, 6),
        support::registration_layer("plugin", PINS, 1),
    ])
});

fn registration(result: &mut LayerResult) -> &mut Registration {
    match &mut result.found {
        Found::Registration(registration) => registration,
        found => panic!("{found:?}"),
    }
}

#[test]
fn a_table_has_a_row_for_each_size() {
    let text = table::render(&RECORD, 80);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let has = |beginning: &str, words: &str| {
        text.lines().any(|line| line.starts_with(beginning) && line.contains(words))
    };
    assert!(has("  register", "first touch") && has("  lock", "munlock"), "{text}");
    assert!(has("  64 KiB", "5.8") && has("  create", " µs"), "{text}");
    assert!(has("  256 KiB", "–             –             –"), "{text}");
    assert!(!text.contains("o_poll"), "nothing is sent\n{text}");
    assert!(table::render(&RECORD, 40).lines().all(|line| line.chars().count() <= 40));
}

#[test]
fn csv_has_a_row_for_each_size_and_cost() {
    let text = csv::render(&RECORD);
    let value = |start| value(&text, start);
    assert!((value("ucx:posix,registration,1048576,touched,measured,ns,") / 3304.0 - 1.0).abs() < 0.01);
    assert!((value("ofi:tcp,registration,1048576,first_touch,measured,ns,") / 77.8e3 - 1.0).abs() < 0.03);
    assert!((value("ofi:tcp,registration,1,fixed.create,measured,ns,") / 5e3 - 1.0).abs() < 0.1);
    assert!(text.contains("ucx:posix,registration,262144,lock,unobservable,ns,,,"));
}

#[test]
fn a_page_has_a_chart_for_each_layer_and_one_for_all() {
    let page = html::render(std::slice::from_ref(&RECORD));
    assert!(page.contains("Registering memory over ofi:tcp, ucx:posix and plugin"));
    let charts: Vec<&str> = page.split("<svg").filter(|svg| svg.contains("role=\"group\"")).collect();
    assert_eq!(charts.len(), 4);
    for layer in ["ofi:tcp", "ucx:posix", "plugin"] {
        assert!(charts[0].contains(&format!(">{layer}</text>")), "{layer}: {}", charts[0]);
    }
    for heading in ["first touch", "touched", "again", "cached", "deregister", "mlock", "munlock"] {
        assert!(charts[1].contains(&format!(">{heading}</text>")), "{heading}: {}", charts[1]);
    }
}

#[test]
fn records_with_holes_have_a_report() {
    let with = |change: fn(&mut Registration)| {
        let mut record = RECORD.clone();
        change(registration(&mut record.results[0]));
        record
    };
    let records = [
        with(|found| found.sizes.clear()),
        with(|found| found.launches.clear()),
        with(|found| found.fixed.clear()),
        with(|found| found.sizes[3].size_bytes = 0),
        with(|found| found.sizes.iter_mut().for_each(|size| size.touched = Parameter::unobservable())),
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
        bytes in any::<usize>(),
        name in ".{0,80}",
        width in 0usize..200,
    ) {
        let mut record = RECORD.clone();
        let found = registration(&mut record.results[0]);
        for (size, value) in found.sizes.iter_mut().zip(values.iter().cycle()) {
            size.touched.value_ns = Some(*value);
            size.touched.ci_ns = Some(Interval { lo: ends.0, hi: ends.1 });
            size.lock.value_ns = Some(values[0]);
        }
        found.sizes[0].size_bytes = bytes;
        found.fixed[0].name = name.clone();
        record.results[0].doubts = vec![Doubt::about("doubt", "lock", name.clone()); 30];
        record.results[0].layer = name;
        assert_reported(&record, width);
    }
}
