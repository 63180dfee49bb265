//! Tests of tables, CSV and pages of `overlap` records.

use crate::checks::{assert_each_once, assert_reported, value};
use crate::support;
use netdyno_measure::overlap::record::{Overlap, Quantity};
use netdyno_measure::record::{Doubt, Found, LayerResult, Record};
use netdyno_measure::stats::Interval;
use netdyno_report::{csv, html, table};
use proptest::prelude::*;
use std::sync::LazyLock;

const STOLEN: &str = "o_s=1us,o_r=2us,g=50ns,L=2us,G=0.5ns/B,steal=0.1ns/B";
const IN_CALLS: &str = "o_s=1us,o_r=2us,g=50ns,L=2us,G=0.5ns/B,offload=off,noise=0.03";
const HELPED: &str = "o_s=2us,o_r=3us,g=1us,L=8us,G=0.8ns/B,helper=0.6ns/B";

static RECORD: LazyLock<Record> = LazyLock::new(|| {
    support::record(vec![
        support::overlap_layer("am+shm", STOLEN, 6),
        support::overlap_layer("tcp", IN_CALLS, 6),
        support::overlap_layer("mpi", HELPED, 1),
    ])
});

fn overlap(result: &mut LayerResult) -> &mut Overlap {
    match &mut result.found {
        Found::Overlap(overlap) => overlap,
        found => panic!("{found:?}"),
    }
}

#[test]
fn a_table_says_what_was_found() {
    let text = table::render(&RECORD, 80);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    for line in [
        "    messages of              16 B      256 B     4 KiB      5 kB     100 kB",
        "  100 kB: messages make progress without being called, 96.9 % of the waiting",
        "  5 kB: messages make progress inside calls only, 0 % of the waiting goes behind",
    ] {
        let words = |line: &str| line.split_whitespace().map(String::from).collect::<Vec<_>>();
        let has_most = |other: &str| words(other).iter().take(7).eq(words(line).iter().take(7));
        assert!(text.lines().any(has_most), "{line}\n{text}");
    }
    for words in ["free work 52.0 µs", "out of its work (10 µs)", "stolen from work", "half round trip"] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    assert!(table::render(&RECORD, 40).lines().all(|line| line.chars().count() <= 40));
}

#[test]
fn csv_has_a_row_for_each_size_and_interval() {
    let text = csv::render(&RECORD);
    let value = |start| value(&text, start);
    assert!((value("am+shm,overlap,100000,stolen,measured,ns,") / 10e3 - 1.0).abs() < 0.02);
    assert!((value("am+shm,overlap,100000,free.work,measured,ns,") / 52e3 - 1.0).abs() < 0.02);
    assert!((value("mpi,overlap,5000,others,measured,ns,") / 3e3 - 1.0).abs() < 0.02);
    value("am+shm,overlap,5000,polling.availability.11,measured,ratio,");
    value("am+shm,overlap,5000,pww.wait.12,measured,ns,");
    assert_each_once(&text);
}

#[test]
fn a_page_has_every_layer_in_every_chart() {
    let page = html::render(std::slice::from_ref(&RECORD));
    assert!(page.contains("Overlap over am+shm, tcp and mpi"));
    let charts: Vec<&str> = page.split("<svg").filter(|svg| svg.contains("role=\"group\"")).collect();
    // Two charts over all sizes, and seven for each of the two sizes.
    assert_eq!(charts.len(), 16);
    for chart in charts {
        for layer in ["am+shm", "tcp", "mpi"] {
            assert!(chart.contains(&format!(">{layer}</text>")), "{layer}: {chart}");
        }
    }
}

/// By chance, measured work may take longer than the next longer work. The curve must still go from left to
/// right.
#[test]
fn no_curve_runs_backwards() {
    let mut record = RECORD.clone();
    let size = &mut overlap(&mut record.results[0]).sizes[0];
    let (third, fifth) = (size.polling[2].interval_ns, size.polling[4].interval_ns);
    (size.polling[2].interval_ns, size.polling[4].interval_ns) = (fifth, third);
    let (third, fifth) = (size.pww[2].alone_ns, size.pww[4].alone_ns);
    (size.pww[2].alone_ns, size.pww[4].alone_ns) = (fifth, third);
    let page = html::render(&[record]);
    let curves = page.split("<path class=\"line layer-").skip(1);
    let curves = curves.map(|curve| curve.split("d=\"M").nth(1).unwrap().split('"').next().unwrap());
    let across = |place: &str| place.split(' ').next().unwrap().parse::<f64>().unwrap();
    for curve in curves.filter(|curve| !curve.is_empty()) {
        let across: Vec<f64> = curve.split('L').map(across).collect();
        assert!(across.is_sorted(), "{curve}");
    }
}

#[test]
fn records_with_holes_have_a_report() {
    let with = |change: fn(&mut Overlap)| {
        let mut record = RECORD.clone();
        change(overlap(&mut record.results[0]));
        record
    };
    let records = [
        with(|overlap| overlap.sizes.clear()),
        with(|overlap| overlap.trips.clear()),
        with(|overlap| overlap.launches.clear()),
        with(|overlap| overlap.sizes[0].polling.clear()),
        with(|overlap| overlap.sizes[0].pww.clear()),
        with(|overlap| overlap.sizes[0].free = None),
        with(|overlap| overlap.sizes[1].size_bytes = 0),
        with(|overlap| overlap.sizes[0].pww.iter_mut().for_each(|p| p.cycle_ns = Quantity::default())),
        with(|overlap| overlap.sizes[0].polling[3].interval_ns = Quantity::default()),
    ];
    for record in &records {
        assert_reported(record, 80);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_figure_breaks_a_report(
        values in proptest::array::uniform8(any::<f64>()),
        ends in any::<(f64, f64)>(),
        bytes in any::<usize>(),
        name in ".{0,80}",
        width in 0usize..200,
    ) {
        let mut record = RECORD.clone();
        let quantity = |value| Quantity { value: Some(value), ci: Some(Interval { lo: ends.0, hi: ends.1 }), launches: 3 };
        let found = overlap(&mut record.results[0]);
        for (trip, value) in found.trips.iter_mut().zip(values) {
            (trip.half_rtt.value_ns, trip.bandwidth_bytes_per_s) = (Some(value), quantity(value));
        }
        found.trips[0].size_bytes = bytes;
        let size = &mut found.sizes[0];
        for (p, value) in size.polling.iter_mut().zip(values.iter().cycle()) {
            (p.interval_ns, p.availability, p.others_share) = (quantity(*value), quantity(values[0]), quantity(values[1]));
            p.bandwidth_bytes_per_s = quantity(values[2]);
        }
        for (p, value) in size.pww.iter_mut().zip(values.iter().cycle()) {
            (p.alone_ns, p.stolen_ns, p.wait_ns) = (quantity(*value), quantity(values[3]), quantity(values[4]));
        }
        size.finding.hidden_share = quantity(values[5]);
        size.finding.text = name.clone();
        size.free.as_mut().unwrap().share = quantity(values[6]);
        size.size_bytes = bytes;
        record.results[0].doubts = vec![Doubt::about("doubt", "free", name.clone()); 30];
        record.results[0].layer = name;
        assert_reported(&record, width);
    }
}
