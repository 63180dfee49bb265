//! Tests of tables, CSV and pages of simulated records, also with missing data.

use crate::support;
use netdyno_measure::logp::data::LaunchData;
use netdyno_measure::logp::ratio::ratio;
use netdyno_measure::record::{Doubt, Found, Logp, Parameter, Record, Status};
use netdyno_measure::stats::Interval;
use netdyno_report::{csv, html, table};
use proptest::prelude::*;
use std::sync::LazyLock;

const OWN: &str = "o_s=1us,o_r=2us,o_poll=80ns,g=5us,L=7us";

static VARIOUS: LazyLock<Record> = LazyLock::new(support::various);

#[test]
fn a_table_of_a_known_interface() {
    let mut record = support::record(vec![support::layer("sim", OWN, 1)]);
    record.results[0].doubts = vec![
        Doubt::about(
            "delay_slope",
            "o_r",
            "the time per message rises by 0.900 per unit of delay, not by 1".into(),
        ),
        Doubt::new("preempted", "the requester lost its processor in 1 of 1 launches".into()),
    ];
    record.results[0].parameters.g.status = Status::UpperBound;
    record.results[0].parameters.o_poll.status = Status::Unobservable;
    record.results[0].parameters.rtt.ci_ns = Some(Interval { lo: 19_800.0, hi: 20_100.0 });
    record.results[0].parameters.rtt.quantiles_ns =
        [("min", 19.4e3), ("p50", 20e3), ("p99", 28e3), ("max", 2.8e6)].map(|(q, ns)| (q.into(), ns)).into();
    logp(&mut record.results[0]).checks.rtt_after_pause.value_ns = Some(21e3);
    record.results[0].parameters.o_s.value_ns = Some(1e3);
    record.results[0].parameters.L.value_ns = Some(-34.1);
    assert_eq!(
        table::render(&record, 80),
        "\
netdyno 0.1.0, Intel Xeon Platinum 8370C @ 2.80GHz, Linux 6.8.0-1021, virtual
machine
medians over launches, 95 % intervals, precision asked for ±2 %

         rtt          o_s          o_r       o_poll            g            L
────────────────────────────────────────────────────────────────────────────────
sim  16 B, spin, CPUs 0 and 1 (same package), 1 launch  c
     19.8 µs      1.00 µs      2.00 µs b          –    ≤ 5.00 µs     -34.1 ns
  [19.8, 20.1]
  rtt min 19.4 µs, p50 20.0 µs, p99 28.0 µs, max 2.80 ms, after a pause 21.0 µs
  round trip: o_s 9.98 %, o_r 20.2 %, L 69.9 %
────────────────────────────────────────────────────────────────────────────────
a  this run: a hypervisor is underneath: it may take a processor away without a
   trace
b  o_r of sim: the time per message rises by 0.900 per unit of delay, not by 1
c  sim: the requester lost its processor in 1 of 1 launches
"
    );
}

#[test]
fn another_host_stands_beside_this_one() {
    let mut record = support::record(vec![support::layer("sim", OWN, 1)]);
    let mut other = record.environment.clone();
    other.host = "bench-8".into();
    other.kernel = "Linux 6.9".into();
    record.peer_environment = Some(other);
    let text = table::render(&record, 100);
    let line = "with bench-8: Intel Xeon Platinum 8370C @ 2.80GHz, Linux 6.9, virtual machine";
    assert!(text.lines().nth(1).unwrap() == line, "{text}");
    let page = html::render(&[record]);
    check_page(&page);
    assert!(page.contains("bench-7 and bench-8") && page.contains("other host"));
}

#[test]
fn a_label_tells_results_of_one_layer_apart() {
    let mut record = VARIOUS.clone();
    let layer = record.results[1].layer.clone();
    record.results[1].label = Some("second <one>".into());
    let name = format!("{layer} (second <one>)");
    assert!(table::render(&record, 100).contains(&name));
    assert!(csv::render(&record).contains(",second <one>,\r\n"));
    let page = html::render(&[VARIOUS.clone(), record]);
    check_page(&page);
    assert!(page.contains(&name.replace('<', "&lt;").replace('>', "&gt;")));
    assert!(!page.contains(&format!("{layer} #")));
}

#[test]
fn a_narrow_table_has_a_line_for_each_parameter() {
    let text = table::render(&VARIOUS, 50);
    assert!(text.lines().all(|line| line.chars().count() <= 50), "{text}");
    assert!(text.lines().any(|line| line.starts_with("  g       ≤ 6") && line.ends_with("] b")), "{text}");
}

#[test]
fn csv_has_a_row_for_each_layer_and_parameter() {
    let text = csv::render(&VARIOUS);
    let rows: Vec<&str> = text.split_terminator("\r\n").collect();
    assert_eq!(rows.len(), 1 + 4 * 9);
    let row = |start: &str| *rows.iter().find(|row| row.starts_with(start)).unwrap();
    assert!(row("udp,logp,16,g,").contains(",unobservable,ns,,,,"));
    assert!(row("udp,logp,16,g,").ends_with(",window_bound;virtualised,,"));
    assert!(row("am+shm,logp,16,g,").contains(",upper_bound,ns,6"));
    assert!(row("sim,logp,16,G,").contains(",unobservable,ns_per_byte,,,,0,9,virtualised"));
}

/// HTML elements without an end tag.
const VOID: [&str; 3] = ["meta", "link", "br"];

/// Checks that every tag of `page` is closed, that no number is invalid, and that nothing is fetched.
fn check_page(page: &str) {
    assert!(page.starts_with("<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\">"));
    let body = page.split_once("</style>").expect("a style").1;
    let body = body.split_once("<script>").expect("a script").0;
    for no_number in ["NaN", "inf\"", "inf ", "Infinity"] {
        assert!(
            !body.contains(no_number),
            "{no_number}: {}",
            &body[body.find(no_number).unwrap_or(0).saturating_sub(200)..][..300]
        );
    }
    for fetched in ["http://", "https://", " src=", "url(http", "@import"] {
        assert!(!page.contains(fetched), "{fetched}");
    }
    let mut open = Vec::new();
    for (at, _) in page.match_indices('<') {
        let inside_code = matches!(open.last(), Some(&("style" | "script")));
        let tag = &page[at + 1..];
        if let Some(tag) = tag.strip_prefix('/') {
            let name = tag.split('>').next().expect("a name");
            if inside_code && open.last() != Some(&name) {
                continue;
            }
            assert_eq!(open.pop(), Some(name), "{}", &page[at.saturating_sub(80)..at]);
        } else if !inside_code && tag.starts_with(|c: char| c.is_ascii_alphabetic()) {
            let name = tag.split(|c: char| !c.is_ascii_alphanumeric()).next().expect("a name");
            if !VOID.contains(&name) {
                open.push(name);
            }
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn a_page_is_whole() {
    let page = html::render(std::slice::from_ref(&VARIOUS));
    check_page(&page);
    for text in ["LogP of am+shm, sim, udp and tcp", "L −2.4", "g ≤ 6", "window full at M = 2", "g cannot"]
    {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn layers_of_several_records_are_told_apart() {
    let record = support::record(vec![support::layer("sim", OWN, 1)]);
    let page = html::render(&[record.clone(), record]);
    check_page(&page);
    assert!(page.contains(">sim #1<") && page.contains(">sim #2<"));
}

#[test]
fn what_a_record_says_is_escaped() {
    let mut record = support::record(vec![support::layer("<b>\"'&", OWN, 1)]);
    record.environment.host = "</style><script>alert(1)</script>".into();
    let page = html::render(&[record]);
    check_page(&page);
    assert!(!page.contains("<b>\"") && !page.contains("<script>alert"));
}

#[test]
fn records_with_holes_have_a_report() {
    let whole = support::layer("sim", OWN, 7);
    let with = |change: fn(&mut Record)| {
        let mut record = support::record(vec![whole.clone()]);
        change(&mut record);
        record
    };
    let records = [
        with(|r| r.results.clear()),
        with(|r| logp(&mut r.results[0]).launches.clear()),
        with(|r| logp(&mut r.results[0]).launches.truncate(1)),
        with(|r| logp(&mut r.results[0]).launches = vec![LaunchData::default()]),
        with(|r| logp(&mut r.results[0]).launches.iter_mut().for_each(|l| l.signature.clear())),
        with(|r| logp(&mut r.results[0]).launches[0].signature[0].bursts.clear()),
        with(|r| logp(&mut r.results[0]).launches[0].shape.delays_ns.clear()),
        with(|r| {
            logp(&mut r.results[0]).launches[0].rtt.histogram_ns =
                vec![(f64::NAN, 1), (0.0, 1), (-1.0, 3), (1e300, u64::MAX)]
        }),
        with(|r| logp(&mut r.results[0]).plateau.window = 0),
        with(|r| r.options.precision = f64::NAN),
        with(|r| r.options.confidence = f64::NAN),
        with(nothing_known),
        support::record(vec![support::layer("one", "o_s=1us,o_r=2us,g=0ns,L=0ns,window=1", 1)]),
        support::record(vec![support::layer("exact", "o_s=1ns,o_r=1ns,g=1ns,L=0ns", 6)]),
    ];
    for record in &records {
        check_page(&html::render(std::slice::from_ref(record)));
        assert!(table::render(record, 80).lines().all(|line| line.chars().count() <= 80));
        csv::render(record);
    }
    check_page(&html::render(&records));
    check_page(&html::render(&[]));
}

/// Removes all figures, as if the layer had failed during the run.
fn nothing_known(record: &mut Record) {
    let result = &mut record.results[0];
    for p in parameters(result) {
        *p = Parameter { status: Status::Unobservable, value_ns: None, ci_ns: None, samples: 0, ..p.clone() };
    }
    let found = logp(result);
    found.plateau.value_ns = f64::NAN;
    found.plateau.half_window_ns = None;
    found.checks.delay_slope = None;
    found.checks.pause_ns = f64::NAN;
    for stream in &mut found.checks.streams {
        stream.measured_ns = f64::NAN;
    }
    for launch in &mut found.launches {
        launch.timer_ns = f64::NAN;
    }
}

/// Returns the part of the record that the signature found.
fn logp(result: &mut netdyno_measure::record::LayerResult) -> &mut Logp {
    match &mut result.found {
        Found::Logp(logp) => logp,
        found => panic!("{found:?}"),
    }
}

fn parameters(result: &mut netdyno_measure::record::LayerResult) -> [&mut Parameter; 8] {
    let Found::Logp(Logp { checks, .. }) = &mut result.found else { panic!("another verb") };
    let p = &mut result.parameters;
    [
        &mut p.rtt,
        &mut p.o_s,
        &mut p.o_r,
        &mut p.o_poll,
        &mut p.g,
        &mut p.L,
        &mut checks.rtt_after_pause,
        &mut checks.o_r_away,
    ]
}

static ONE: LazyLock<Record> = LazyLock::new(|| support::record(vec![support::layer("sim", OWN, 1)]));

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn no_figure_breaks_a_report(
        values in proptest::array::uniform8(any::<f64>()),
        ends in any::<(f64, f64)>(),
        bound in any::<bool>(),
        name in ".{0,120}",
        about in prop_oneof!["g", "o_r", ".{0,8}"],
        width in 0usize..200,
    ) {
        let mut record = ONE.clone();
        let interval = Interval { lo: ends.0, hi: ends.1 };
        for (p, value) in parameters(&mut record.results[0]).into_iter().zip(values) {
            p.value_ns = Some(value);
            p.ci_ns = Some(interval);
            p.status = if bound { Status::UpperBound } else { Status::Measured };
        }
        let result = &mut record.results[0];
        result.layer = name.clone();
        result.doubts = vec![Doubt::about("doubt", &about, name); 40];
        let found = logp(result);
        found.plateau.value_ns = values[4];
        found.plateau.ci_ns = Some(interval);
        for burst in &mut found.launches[0].signature[0].bursts {
            burst.issue_ns = values.to_vec();
        }
        let text = table::render(&record, width);
        let most = width.max(table::WIDTH_AT_LEAST);
        prop_assert!(text.lines().all(|line| line.chars().count() <= most), "{text}");
        let page = html::render(&[record]);
        let drawn = page.split("<svg").skip(1).all(|svg| {
            let svg = svg.split("</svg>").next().unwrap_or_default();
            !["x=\"NaN", "y=\"NaN", "\"inf", "\"-inf", "NaN "].iter().any(|bad| svg.contains(bad))
        });
        prop_assert!(drawn);
    }
}

/// A layer is compared with the reference layer on its path. The comparison appears beside the layer, in the
/// table and on the page.
#[test]
fn a_layer_stands_beside_the_lean_one_on_its_path() {
    let mut record = support::record(vec![
        support::layer("mpi", "o_s=400ns,o_r=300ns,g=900ns,L=300ns,noise=0.02", 6),
        support::layer("am+shm", "o_s=20ns,o_r=30ns,g=40ns,L=50ns,noise=0.02", 6),
    ]);
    record.ratios = ratio(&record.results[0], &record.results[1], 0.95);
    record.ratios.iter_mut().for_each(|ratio| ratio.to_reference = true);
    let text = table::render(&record, 80);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["beside am+shm: rtt 10.", "round trip: o_s 40", "o_r 30", "L 30", "round trip: o_s 20"] {
        assert!(words.contains(part), "{part}\n{text}");
    }
    assert!(!text.contains("mpi / am+shm"), "it stands once\n{text}");
    let page = html::render(std::slice::from_ref(&record));
    assert!(page.contains("is that good?") && page.contains("Beside the lean layer on the same path"));
    record.ratios.clear();
    assert!(!table::render(&record, 80).contains("beside"));
    let page = html::render(std::slice::from_ref(&record));
    assert!(page.contains("Where the round trip goes") && !page.contains("is that good?"));
}
