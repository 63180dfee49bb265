//! Compares polling with spin-then-sleep waiting (`VipRecvWait` with default settings), in a C program
//! whose answers come soon: `cargo bench -p netdyno-vipl`.
//!
//! Each run is a fresh, pinned pair of processes that does both in turn. A ratio is taken within a run;
//! medians and intervals are over the runs.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot run has nothing to report")]

#[path = "../tests/library/mod.rs"]
mod library;

use library::{DEVICES, Library};
use netdyno_clock::place;
use netdyno_measure::stats::{median_interval_of_sorted, quantile_of_sorted, sorted};
use std::collections::BTreeMap;

const RUNS: usize = 11;
/// Round trips between two readings of the clock.
const TRIPS: &str = "2000";

fn main() {
    let (a, b) = place::choose_pair(&place::allowed().unwrap()).unwrap();
    assert_ne!(a, b, "this benchmark polls and needs two processors");
    println!("{RUNS} pairs of processes on processors {a} and {b} ({})", place::distance(a, b));
    println!("what waiting takes of what polling does (at most 1.05 where the answer comes soon)");
    let library = Library::built();
    let program = library.compile("pingpong");
    for device in DEVICES {
        let mut ratios = BTreeMap::<String, Vec<f64>>::new();
        for _ in 0..RUNS {
            let mut command = library.run(&program);
            let output =
                command.args([device, "poll", TRIPS, &a.to_string(), &b.to_string()]).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            for line in String::from_utf8(output.stdout).unwrap().lines() {
                let (of, rest) = line.split_once(": ").unwrap();
                let ratio = rest.rsplit(' ').next().unwrap().parse().unwrap();
                ratios.entry(of.to_owned()).or_default().push(ratio);
            }
        }
        println!("{device}");
        for (of, ratios) in ratios {
            let ratios = sorted(ratios);
            let interval = median_interval_of_sorted(&ratios, 0.95).unwrap();
            let median = quantile_of_sorted(&ratios, 0.5);
            println!("  {of:<24} {median:.3} [{:.3}, {:.3}]", interval.lo, interval.hi);
        }
    }
}
