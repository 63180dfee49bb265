//! `netdyno contention` end to end: its results, its errors, and its clean-up after a process is killed.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use common::{error_of, netdyno, stdout_of, workers_of};
use netdyno_measure::record::{Record, Status};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

const TRUTH: &str = "o_s=1us,o_r=2us,g=5us,L=7us";

fn record(args: &[&str]) -> Record {
    let text = stdout_of(&[&["contention", "--format", "json"], args].concat());
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema/netdyno-1.schema.json");
    let schema: serde_json::Value = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
    jsonschema::validate(&schema, &serde_json::from_str(&text).unwrap()).unwrap();
    Record::from_json(&text).unwrap()
}

#[test]
fn the_simulated_layer_gives_the_ratios_of_the_model() {
    let record = record(&["--over", "sim", "--truth", TRUTH, "--procs", "6"]);
    let result = &record.results[0];
    assert_eq!((result.verb(), result.launches(), &*result.wait), ("contention", 9, "virtual"));
    let g = &result.parameters.g;
    assert!(g.status == Status::Measured && (g.value_ns.unwrap() / 5e3 - 1.0).abs() < 0.01);
    let found = result.contention().unwrap();
    assert_eq!((found.procs, found.halves.pairs, found.many_to_one.len()), (6, 3, 5));
    for at in &found.many_to_one {
        assert!((at.ratio.value / at.model - 1.0).abs() < 0.01 && at.ratio.ci.is_some(), "{at:?}");
    }
    assert!((found.one_to_many.ratio.value - 1.0).abs() < 0.01);
    assert!(result.doubts.is_empty(), "{:?}", result.doubts);
}

#[test]
fn every_layer_is_measured_with_more_processes_than_processors() {
    // All processes share one processor, on every machine.
    let cpu = netdyno_clock::place::allowed().unwrap()[0].to_string();
    let args =
        ["--over", "am+shm,am+udp,vi+shm,vi+udp,udp,tcp", "--procs", "4", "--cpus", &cpu, "--launches", "1"];
    let record = record(&[&args[..], &["--max-time", "1s"]].concat());
    assert_eq!(record.results.len(), 6);
    for result in &record.results {
        assert_eq!((&*result.wait, result.cpus.len()), ("yield", 4), "{}", result.layer);
        assert!(result.doubts.iter().any(|doubt| doubt.name == "more_processes_than_processors"));
        let found = result.contention().unwrap();
        let pairs = found.pairs.rtt_ns.iter().flatten().flatten();
        assert_eq!(pairs.filter(|ns| **ns > 0.0).count(), 12, "{}", result.layer);
        assert!(found.many_to_one.iter().all(|at| at.ratio.value > 0.0), "{}", result.layer);
        assert!(found.rates.iter().all(|rate| rate.messages_per_s.value > 0.0), "{}", result.layer);
        assert!(result.parameters.rtt.samples > 0);
    }
}

#[test]
fn other_sizes_numbers_and_ways_to_wait_work() {
    for (over, procs, size, wait) in [
        ("am+shm", "3", "4096", "yield"),
        ("am+udp", "2", "100", "block"),
        ("vi+shm", "3", "100000", "block"),
        ("vi+udp", "3", "5000", "block"),
        ("udp", "5", "8192", "block"),
        ("tcp", "3", "4096", "block"),
    ] {
        let args = ["--over", over, "--procs", procs, "--size", size, "--wait", wait, "--launches", "1"];
        let record = record(&[&args[..], &["--max-time", "1s"]].concat());
        let found = record.results[0].contention().unwrap();
        assert_eq!((found.procs.to_string(), &*record.results[0].wait), (procs.to_owned(), wait), "{over}");
    }
}

#[test]
fn bad_input_is_one_line_and_exit_code_2() {
    for (args, names) in [
        (&["--over", "udp", "--procs", "1"][..], "2..=64"),
        (&["--over", "udp", "--procs", "65"], "2..=64"),
        (&["--over", "udp", "--procs", "many"], "many"),
        (&["--over", "sim", "--procs", "4"], "--truth"),
        (&["--over", "udp", "--cpus", "9999"], "9999"),
        (&["--over", "udp", "--cpus", "x"], "0,1"),
        (&["--over", "udp", "--procs", "64", "--cpus", "0", "--wait", "spin"], "--wait yield"),
        (&["--procs", "4"], "--over"),
    ] {
        let line = error_of(&[&["contention"], args].concat(), 2);
        assert!(line.contains(names), "{args:?}: {line}");
    }
}

#[test]
fn a_killed_process_is_named_and_nobody_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("result.json");
    let mut random = fastrand::Rng::with_seed(5);
    for layer in ["am+shm", "am+udp", "vi+shm", "vi+udp", "udp", "tcp"] {
        // A kill between two launches, or after a launch has its data, has no effect.
        let hit = (0..8).any(|_| {
            let args =
                ["contention", "--over", layer, "--procs", "4", "--launches", "500", "--max-time", "20s"];
            let mut child =
                netdyno(&[&args[..], &["--wait", "yield", "--out", out.to_str().unwrap()]].concat())
                    .stdout(Stdio::piped())
                    .stderr(Stdio::piped())
                    .spawn()
                    .unwrap();
            std::thread::sleep(Duration::from_millis(random.u64(300..1500)));
            let until = Instant::now() + Duration::from_secs(20);
            let workers = loop {
                let workers = workers_of(child.id());
                if workers.len() == 4 {
                    break workers;
                }
                assert!(Instant::now() < until && child.try_wait().unwrap().is_none(), "{layer}: no workers");
                std::thread::sleep(Duration::from_millis(2));
            };
            let victim = workers[random.usize(0..4)];
            let is_killed = kill_process(Pid::from_raw(victim as i32).unwrap(), Signal::KILL).is_ok();
            let killed = Instant::now();
            if !is_killed {
                child.kill().unwrap();
                child.wait().unwrap();
                return false;
            }
            let output = child.wait_with_output().unwrap();
            let stderr = String::from_utf8(output.stderr).unwrap();
            if output.status.success() {
                // The launch had its data already, so the command finished with a complete record.
                Record::from_json(&fs::read_to_string(&out).unwrap()).unwrap();
                fs::remove_file(&out).unwrap();
                return false;
            }
            assert!(killed.elapsed() < Duration::from_secs(10), "{layer}: {:?} {stderr}", killed.elapsed());
            assert_eq!(output.status.code(), Some(1), "{layer}: {stderr}");
            assert_eq!(stderr.lines().count(), 1, "{layer}: {stderr}");
            assert!(
                stderr.contains(&format!("(process {victim}) was killed by signal 9")),
                "{layer}: {stderr}"
            );
            let left = workers.iter().any(|pid| fs::exists(format!("/proc/{pid}")).unwrap());
            assert!(!left && !out.exists(), "{layer}: somebody or something is left");
            true
        });
        assert!(hit, "{layer}");
    }
}
