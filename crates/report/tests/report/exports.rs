//! Tests of comparisons and exports, also with random figures.

use crate::support;
use netdyno_measure::record::{Parameter, Record, Status};
use netdyno_measure::stats::Interval;
use netdyno_report::compare::{self, Side, Terms, Verdict};
use netdyno_report::export::curve::Curve;
use netdyno_report::export::loggopsim::{self, TimeUnit};
use netdyno_report::export::{csv, simgrid};
use proptest::prelude::*;
use std::sync::LazyLock;

static ONE: LazyLock<Record> = LazyLock::new(|| {
    support::record(vec![support::layer("sim", "o_s=1us,o_r=2us,o_poll=80ns,g=5us,L=7us", 6)])
});

const TERMS: Terms = Terms { confidence: 0.95, fail_on: Some(0.05) };

fn side(record: &Record) -> Side<'_> {
    Side { name: "a.json", record, layer: None }
}

/// Returns [`ONE`] with other parameters.
fn with(values: [f64; 6], ends: (f64, f64), status: Status) -> Record {
    let mut record = ONE.clone();
    let p = &mut record.results[0].parameters;
    let all: [&mut Parameter; 6] = [&mut p.rtt, &mut p.o_s, &mut p.o_r, &mut p.o_poll, &mut p.g, &mut p.L];
    for (parameter, value) in all.into_iter().zip(values) {
        parameter.value_ns = Some(value);
        parameter.ci_ns = Some(Interval { lo: ends.0, hi: ends.1 });
        parameter.status = status;
    }
    record
}

#[test]
fn a_table_of_two_runs() {
    let slower = support::layer("sim", "o_s=1.5us,o_r=2us,o_poll=80ns,g=5us,L=7us", 6);
    let mut other = support::record(vec![slower]);
    other.environment.governor = Some("powersave".into());
    let comparison = compare::compare(side(&ONE), Side { name: "b.json", ..side(&other) }, TERMS).unwrap();
    let text = compare::table::render(&comparison, 80);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    for part in [
        "A  a.json, 2025-01-02T03:04:05Z, bench-7, netdyno 0.1.0",
        "sim  logp, 16 B, spin, 6 launches",
        "  o_s                  999 ns      1.50 µs   1.500 [",
        "FAIL",
        "limit 5 %: 1 failed, ",
        "-  the governor differs: unknown in A, powersave in B",
        "-  A has doubts of its own: virtualised",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(comparison.with(Verdict::Fail).count(), 1, "{text}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_figure_breaks_a_comparison_or_an_export(
        values in proptest::array::uniform6(any::<f64>()),
        ends in any::<(f64, f64)>(),
        status in prop_oneof![Just(Status::Measured), Just(Status::UpperBound), Just(Status::Unobservable)],
        name in ".{0,120}",
        width in 0usize..200,
    ) {
        let mut other = with(values, ends, status);
        other.environment.kernel.clone_from(&name);
        let comparison = compare::compare(side(&ONE), Side { name: &name, ..side(&other) }, TERMS).unwrap();
        let text = compare::table::render(&comparison, width);
        prop_assert!(text.lines().all(|line| line.chars().count() <= width.max(40)), "{text}");
        compare::csv::render(&comparison);

        other.results[0].layer = name;
        let results: Vec<_> = other.results.iter().collect();
        csv::render(&results).unwrap();
        if let Ok(curve) = Curve::of(&results) {
            let platform = simgrid::render(&curve).text;
            prop_assert!(!platform.contains("NaN") && !platform.contains("inf"), "{platform}");
            let is_comment = |line: &&str| line.starts_with("<!-- ");
            let inner = |line: &str| line.trim_start_matches("<!-- ").trim_end_matches(" -->").to_owned();
            prop_assert!(platform.lines().filter(is_comment).all(|line| !inner(line).contains("--")), "{platform}");
            for unit in [TimeUnit::Ns, TimeUnit::Ps] {
                if let Ok(options) = loggopsim::render(&curve, unit) {
                    let numbers = options.text.split_whitespace().skip(1).step_by(2);
                    prop_assert!(numbers.map(str::parse::<i64>).all(|n| n.is_ok_and(|n| n >= 0)), "{}", options.text);
                }
            }
        }
    }
}

#[test]
fn a_time_that_cannot_be_spent_is_refused() {
    for o_r_ns in [-3.0, 1.6e308] {
        let record = with([0.0, 0.0, o_r_ns, 0.0, 0.0, 0.0], (0.0, 0.0), Status::Measured);
        let refusal = Curve::of(&record.results.iter().collect::<Vec<_>>()).unwrap_err().to_string();
        assert!(refusal.starts_with("o_r of sim is ") && refusal.ends_with(" 0 to 1e15 ns"), "{refusal}");
    }
}
