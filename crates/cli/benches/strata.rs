//! Measures the repeatability of `logp --over am+shm,am+udp,udp,tcp` in five runs. Then measures each layer
//! alone, five times, with the time limit for a precision of 2 %.
//!
//! * Goal 1: each run's figure lies in the other runs' intervals of the same stratum in at least 93 % of the
//!   pairs.
//! * Goal 2: ±2 % within 10 s for am+shm, and within 30 s for each other layer, in at least four of five
//!   runs.
//!
//! `cargo bench --bench strata -- FILE…` evaluates existing records and measures nothing.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot run has nothing to report")]

use netdyno_measure::record::{LayerResult, Parameter, Record};
use netdyno_measure::strata::Stratum;
use std::process::{Command, Stdio};
use std::time::Instant;

const REPEATS: usize = 5;
const LAYERS: [(&str, &str); 4] = [("am+shm", "10s"), ("am+udp", "30s"), ("udp", "30s"), ("tcp", "30s")];
/// The parameters that are compared.
const NAMES: [&str; 5] = ["rtt", "o_s", "o_r", "g", "L"];

fn netdyno(args: &[&str]) -> (Record, f64) {
    let began = Instant::now();
    let mut command = Command::new(env!("CARGO_BIN_EXE_netdyno"));
    let output = command.args(args).args(["--format", "json"]).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let record = Record::from_json(&String::from_utf8(output.stdout).unwrap()).unwrap();
    (record, began.elapsed().as_secs_f64())
}

/// Returns the strata of a layer.
fn strata<'a>(record: &'a Record, layer: &str) -> Vec<&'a Stratum> {
    let result = record.results.iter().find(|result| result.layer == layer);
    result.map(|result| result.strata.iter().collect()).unwrap_or_default()
}

fn parameter<'a>(stratum: &'a Stratum, name: &str) -> Option<&'a Parameter> {
    let times = stratum.parameters.as_ref()?.times();
    times.into_iter().find(|(other, _)| *other == name).map(|(_, parameter)| parameter)
}

/// Counts the pairs of runs with the same stratum, and the pairs in which one run's figure lies in the
/// other's interval.
fn covered(records: &[Record], layer: &str, name: &str) -> (usize, usize) {
    let (mut pairs, mut inside) = (0, 0);
    for (at, one) in records.iter().enumerate() {
        for (_, other) in records.iter().enumerate().filter(|(nth, _)| *nth != at) {
            for (of_one, of_other) in strata(one, layer)
                .into_iter()
                .flat_map(|of_one| strata(other, layer).into_iter().map(move |of_other| (of_one, of_other)))
            {
                if !of_one.is_like(of_other) {
                    continue;
                }
                let value = parameter(of_one, name).and_then(|p| p.value_ns);
                let interval = parameter(of_other, name).and_then(|p| p.ci_ns);
                if let (Some(value), Some(interval)) = (value, interval) {
                    pairs += 1;
                    inside += usize::from(interval.contains(value));
                }
            }
        }
    }
    (pairs, inside)
}

fn figures(result: &LayerResult) -> String {
    let of = |stratum: &Stratum| {
        let rtt = parameter(stratum, "rtt").and_then(|p| Some((p.value_ns?, p.ci_ns?)));
        let rtt = rtt.map(|(ns, ci)| format!("{ns:.0} [{:.0}, {:.0}] ns", ci.lo, ci.hi));
        format!("{}: {}, {} launches", stratum.in_words(), rtt.unwrap_or_default(), stratum.launches)
    };
    result.strata.iter().map(of).collect::<Vec<_>>().join("; ")
}

fn judge(records: &[Record]) {
    let (mut pairs, mut inside) = (0, 0);
    for (layer, _) in LAYERS {
        for (nth, record) in records.iter().enumerate() {
            for result in record.results.iter().filter(|result| result.layer == layer) {
                println!("{layer:<8} {}  rtt {}", nth + 1, figures(result));
            }
        }
        for name in NAMES {
            let (of_name, in_name) = covered(records, layer, name);
            (pairs, inside) = (pairs + of_name, inside + in_name);
            println!("{layer:<8} {name:<4} {in_name:>3} of {of_name:>3} pairs");
        }
    }
    println!("in all {inside} of {pairs} pairs, {:.1} %", 100.0 * inside as f64 / pairs.max(1) as f64);
}

fn main() {
    let files: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    if !files.is_empty() {
        let read = |file: &String| Record::from_json(&std::fs::read_to_string(file).unwrap()).unwrap();
        return judge(&files.iter().map(read).collect::<Vec<_>>());
    }
    let over = LAYERS.map(|(layer, _)| layer).join(",");
    judge(&(0..REPEATS).map(|_| netdyno(&["logp", "--over", &over]).0).collect::<Vec<_>>());
    for (layer, time) in LAYERS {
        let reached = (0..REPEATS).filter(|_| {
            let (record, seconds) = netdyno(&["logp", "--over", layer, "--max-time", time]);
            let is_precise = !record.results[0].doubts.iter().any(|doubt| doubt.name == "imprecise");
            println!("{layer:<8} {seconds:>5.1} s of {time}, {}", if is_precise { "±2 %" } else { "wider" });
            is_precise
        });
        println!("{layer:<8} ±2 % in {} of {REPEATS}", reached.count());
    }
}
