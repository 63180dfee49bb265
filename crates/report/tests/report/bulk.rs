//! Tests of tables, CSV and pages of `bulk` records.

use crate::checks::{assert_each_once, assert_reported, value};
use crate::support;
use netdyno_measure::bulk::record::Bulk;
use netdyno_measure::record::{Doubt, Found, LayerResult, Record, Status};
use netdyno_measure::stats::Interval;
use netdyno_report::{csv, html, table};
use proptest::prelude::*;
use std::sync::LazyLock;

const CHANGED: &str =
    "o_s=1us,o_r=2us,o_poll=80ns,g=5us,L=7us,G=0.5ns/B,change=8KiB,change_G=0.25ns/B,change_L=20us";
const CARRIED: &str = "o_s=30ns,o_r=40ns,g=20ns,L=100ns,O_s=0.08ns/B,noise=0.03";
const WINDOWED: &str = "o_s=1us,o_r=2us,g=1us,L=70us,G=0.1ns/B,window=2";

static RECORD: LazyLock<Record> = LazyLock::new(|| {
    support::record(vec![
        // Six launches: fewer have no interval and no finding.
        support::bulk_layer("tcp", CHANGED, 6),
        support::bulk_layer("am+shm", CARRIED, 6),
        support::bulk_layer("udp", WINDOWED, 1),
    ])
});

fn bulk(result: &mut LayerResult) -> &mut Bulk {
    match &mut result.found {
        Found::Bulk(bulk) => bulk,
        found => panic!("{found:?}"),
    }
}

#[test]
fn a_table_says_what_was_found() {
    let text = table::render(&RECORD, 80);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    for line in [
        "        n         T  transfer       o_s       o_r         g         L     stream",
        "    4 KiB   12.0 µs   22.0 µs   1.00 µs   2.00 µs   7.05 µs   9.05 µs   581 MB/s",
        "  G 0.500 [0.500, 0.500] ns/B, 1 B to 7.94 KiB",
        "  T leaves its line above 7.94 KiB, at 8 KiB at the latest: 32.0 µs there,",
        "  Sending can be overlapped with computation: o_s(n) hardly depends on the size",
        "  Sending cannot be overlapped with computation, the processor carries the data",
    ] {
        assert!(text.lines().any(|other| other == line), "{line}\n{text}");
    }
    assert!(table::render(&RECORD, 40).lines().all(|line| line.chars().count() <= 40));
}

#[test]
fn csv_has_a_row_for_each_size_and_figure() {
    let text = csv::render(&RECORD);
    let has = |start: &str| text.lines().any(|row| row.starts_with(start));
    assert!(has("tcp,bulk,4096,T,measured,ns,12047.5,"));
    assert!(has("tcp,bulk,4096,transfer,measured,ns,22047.5,"));
    let gap = value(&text, "tcp,bulk,8192,G.segment,measured,ns_per_byte,");
    assert!((gap - 0.25).abs() < 1e-6, "{gap}");
    assert!(has("tcp,bulk,1,change,measured,bytes,8192,8128,8192,"));
    assert!(has("am+shm,bulk,4096,g,upper_bound,ns,"));
    assert!(has("udp,bulk,1,g,unobservable,ns,,,"));
    assert!(has("udp,bulk,1,T0,measured,ns,"));
    assert!(has("udp,bulk,1,T0.transfer,measured,ns,"));
    assert!(has("tcp,bulk,4096,transferred,measured,bytes_per_s,"));
    assert_each_once(&text);
}

#[test]
fn a_page_has_every_figure() {
    let page = html::render(std::slice::from_ref(&RECORD));
    for text in [
        "Bulk transfers over tcp, am+shm and udp",
        "T(n) of all layers",
        "Bandwidth of all layers",
        "Send overhead of all layers",
        "Times of tcp over the size",
        "Signature surface of udp",
        "processor carries the data itself",
    ] {
        assert!(page.contains(text), "{text}");
    }
    let mixed = html::render(&[RECORD.clone(), support::record(vec![support::layer("sim", CHANGED, 1)])]);
    assert!(mixed.contains("LogP of sim; Bulk transfers over tcp"));
}

/// Figures 8 and 9 of Culler et al. 1996.
#[test]
fn signatures_of_sizes_are_written_and_drawn() {
    let mut record = support::record(vec![support::bulk_layer_with("tcp", CHANGED, 6, &[8, 2048])]);
    let text = table::render(&record, 80);
    let start = "  signature of requests of 8 B and small replies: rtt 20.0 µs, o_s 1.00 µs, o_r";
    assert!(text.lines().any(|line| line == start), "{text}");
    let rows = csv::render(&record);
    let gap = value(&rows, "tcp,bulk,2048,signature.g,measured,ns,");
    assert!((gap / 6023.5 - 1.0).abs() < 0.01, "{gap}");
    assert!(rows.lines().any(|row| row.starts_with("tcp,bulk,8,signature.L,unobservable,ns,,,")), "{rows}");
    let page = html::render(std::slice::from_ref(&record));
    for text in ["Signature of requests of 2 KiB and small replies", "Signature of tcp with transfers of 8 B"]
    {
        assert!(page.contains(text), "{text}");
    }
    // A record is a file that others may have written.
    let found = bulk(&mut record.results[0]);
    found.launches[0].signatures.clear();
    found.launches[1].signatures[0].data.signature[0].bursts.clear();
    assert_reported(&record, 80);
}

#[test]
fn records_with_holes_have_a_report() {
    let with = |change: fn(&mut Bulk)| {
        let mut record = RECORD.clone();
        change(bulk(&mut record.results[0]));
        record
    };
    let records = [
        with(|bulk| bulk.sizes.clear()),
        with(|bulk| bulk.sizes.truncate(1)),
        with(|bulk| bulk.segments.clear()),
        with(|bulk| bulk.launches.clear()),
        with(|bulk| bulk.launches.iter_mut().for_each(|launch| launch.sizes.truncate(3))),
        with(|bulk| bulk.launches[0].sizes[0].stream.clear()),
        with(|bulk| bulk.launches[0].sizes[0].stream[0].m = 0),
        with(|bulk| bulk.launches[0].timer_ns = f64::NAN),
        with(|bulk| bulk.sizes[0].size_bytes = 0),
        with(|bulk| bulk.sizes.iter_mut().for_each(|size| size.T.value_ns = None)),
        with(|bulk| bulk.classic.R_inf = None),
        with(|bulk| bulk.changes[0].at_most_bytes = usize::MAX),
    ];
    for record in &records {
        assert_reported(record, 80);
    }
}

static ONE: LazyLock<Record> =
    LazyLock::new(|| support::record(vec![support::bulk_layer("sim", CHANGED, 1)]));

#[test]
fn figures_wider_than_their_columns_leave_them() {
    let mut record = ONE.clone();
    for size in &mut bulk(&mut record.results[0]).sizes {
        for p in [&mut size.T, &mut size.o_s, &mut size.o_r, &mut size.g, &mut size.L] {
            (p.value_ns, p.status) = (Some(-0.674), Status::UpperBound);
        }
        size.streaming.value_bytes_per_s = -0.674;
    }
    assert_reported(&record, 80);
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
        let mut record = ONE.clone();
        let interval = Interval { lo: ends.0, hi: ends.1 };
        let found = bulk(&mut record.results[0]);
        for (size, value) in found.sizes.iter_mut().zip(values.iter().cycle()) {
            for p in [&mut size.T, &mut size.o_s, &mut size.o_r, &mut size.g, &mut size.L] {
                (p.value_ns, p.ci_ns, p.status) = (Some(*value), Some(interval), Status::UpperBound);
            }
            (size.plateau.value_ns, size.plateau.ci_ns) = (*value, Some(interval));
            size.streaming.value_bytes_per_s = *value;
        }
        found.sizes[3].size_bytes = bytes;
        found.segments[0].G.value_ns_per_byte = Some(values[0]);
        found.segments[0].G.ci_ns_per_byte = Some(interval);
        found.segments[0].T.base_ns = values[1];
        found.segments[0].T.largest_residual = values[2];
        found.classic.T0_ns = values[3];
        found.classic.R_inf.as_mut().unwrap().value_bytes_per_s = values[4];
        found.changes[0].at_most_bytes = bytes;
        for burst in &mut found.launches[0].sizes[0].stream {
            burst.issue_ns = values.to_vec();
        }
        record.results[0].doubts = vec![Doubt::about("doubt", "g", name.clone()); 30];
        record.results[0].layer = name;
        assert_reported(&record, width);
    }
}
