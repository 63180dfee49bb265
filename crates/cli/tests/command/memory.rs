//! `netdyno memory`, end to end.

use crate::common::schemas::record;
use crate::common::{error_of, stdout_of};
use netdyno_measure::memory::record::RemoteMemory;
use netdyno_measure::record::{Found, Record, Status};
use std::fs;

const TRUTH: &str = "o_s=1us,o_r=2us,g=5us,L=7us,G=1ns/B";

#[test]
fn the_simulated_layer_gives_back_its_parameters() {
    let record = record(&["memory", "--over", "sim", "--truth", TRUTH]);
    let result = &record.results[0];
    assert_eq!((result.verb(), result.launches()), ("memory", 9));
    assert_eq!(result.parameters.rtt.status, Status::Unobservable);
    let rows = result.found.memory().unwrap().rows();
    let known = [
        ("read.blocking", 8, 17_007.0),
        ("read.pipelined", 8, 5_007.0),
        ("write.blocking", 8, 17_007.0),
        ("write.pipelined", 8, 5_007.0),
        ("write.blocking", 64 << 10, 82_535.0),
        ("write.pipelined", 64 << 10, 70_535.0),
        ("write.blocking", 1 << 20, 1_065_575.0),
        ("write.pipelined", 1 << 20, 1_053_575.0),
        ("fetch_add.blocking", 8, 17_007.0),
        ("fetch_add.pipelined", 8, 5_007.0),
    ];
    assert_eq!(rows.len(), known.len());
    for ((access, time), (name, size_bytes, ns)) in rows.into_iter().zip(known) {
        assert_eq!((access.name(), access.size_bytes), (name, size_bytes));
        let value = time.value_ns.unwrap();
        assert!((value / ns - 1.0).abs() < 1e-3, "{name} of {size_bytes}: {value}");
        assert!(time.ci_ns.is_some(), "{name}");
    }
}

/// The simulated layer has no process that could be told of a write. If it is alone, the table has no row for that.
#[test]
fn an_access_that_no_layer_has_is_named() {
    let sim = ["memory", "--over", "sim", "--truth", TRUTH, "--launches", "6", "--largest", "1KiB"];
    let record = record(&sim);
    let named: Vec<_> =
        record.results[0].doubts.iter().filter(|doubt| doubt.name == "missing_operations").collect();
    let [doubt] = &named[..] else { panic!("{named:?}") };
    assert_eq!(doubt.text, "the layer has no write_notify: it is not measured");
    let table = stdout_of(&sim);
    assert!(!table.lines().any(|line| line.starts_with("write 8 B, told")), "{table}");
    assert_eq!(table.matches("the layer has no write_notify: it is not measured").count(), 1, "{table}");
    // No figure is in doubt.
    let csv = stdout_of(&[&sim[..], &["--format", "csv"]].concat());
    assert!(!csv.contains("missing_operations"), "{csv}");
    let page = stdout_of(&[&sim[..], &["--format", "html"]].concat());
    assert!(page.contains("the layer has no write_notify"));
}

/// Returns a record with a second layer that takes twice as long.
fn with_a_slower_layer(text: &str) -> Record {
    let mut record = Record::from_json(text).unwrap();
    let mut slower = record.results[0].clone();
    slower.label = Some("slower".into());
    let Found::Memory(RemoteMemory(found)) = &mut slower.found else { panic!() };
    for data in found.launches.iter_mut().flat_map(|launch| &mut launch.transfers) {
        for batches in [&mut data.local_ns, &mut data.remote_ns, &mut data.gap_ns] {
            batches.iter_mut().for_each(|ns| *ns *= 2.0);
        }
    }
    record.results.push(slower);
    record.ratios = netdyno_measure::memory::ratio::ratios(&record.results, 0.95);
    record
}

#[test]
fn the_forms_of_a_result() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("memory.json");
    let file = file.to_str().unwrap();
    let sim = ["memory", "--over", "sim", "--truth", TRUTH, "--launches", "6", "--largest", "128KiB"];
    stdout_of(&[&sim[..], &["--out", file]].concat());
    let record = with_a_slower_layer(&fs::read_to_string(file).unwrap());
    assert_eq!(record.ratios.len(), 10);
    for ratio in &record.ratios {
        assert_eq!((ratio.numerator.as_str(), ratio.denominator.as_str()), ("sim (slower)", "sim"));
        assert!((ratio.value - 2.0).abs() < 1e-9 && ratio.ci.is_some() && ratio.pairs == 6, "{ratio:?}");
    }
    fs::write(file, serde_json::to_string(&record).unwrap()).unwrap();
    let form = |form: &str| stdout_of(&["report", file, "--format", form, "--out", "-"]);
    let table = form("table");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    for row in ["read 8 B, pipelined", "store 8 B, one way", "write 128 KiB", "fetch+add 8 B"] {
        let at =
            table.lines().position(|line| line.starts_with(row)).unwrap_or_else(|| panic!("{row}\n{table}"));
        assert_eq!(table.lines().nth(at + 1).map(str::trim), Some("2.00 ±<1 %"), "{row}\n{table}");
    }
    assert!(table.contains("its ratio to that of sim"), "{table}");
    assert!(!table.contains("sim (slower) / sim"), "the ratios stand in the table alone\n{table}");
    let csv = form("csv");
    for row in ["sim,memory,8,read.blocking,measured,ns,", "sim,memory,131072,write.pipelined,measured,ns,"] {
        assert!(csv.lines().any(|line| line.starts_with(row)), "{csv}");
    }
    let page = form("html");
    assert!(page.contains("Remote memory over") && page.contains("store 8 B, one way"), "{page}");
    assert!(page.contains("× 2.00 [2.00, 2.00]"), "{page}");
    let same = stdout_of(&["compare", file, file]);
    assert!(same.contains("read.blocking") && same.contains("fetch_add.pipelined"), "{same}");
    assert!(error_of(&["export", file, "--to", "simgrid"], 2).contains("o_s"));
}

#[test]
fn bad_input_is_one_line_and_exit_code_2() {
    let cases: &[(&[&str], &str)] = &[
        (&["memory"], "--over"),
        (&["memory", "--over", "sim"], "--truth"),
        (&["memory", "--over", "tcp"], "tcp has no one-sided operations here: use am+shm, am+udp"),
        (&["memory", "--over", "am+shm", "--level", "reception"], "am+shm has no reliability levels"),
        (&["memory", "--over", "global+shm", "--sync", "fence"], "use --sync with mpi"),
        (&["memory", "--over", "global+shm", "--memory", "allocated"], "global+shm has no choice of memory"),
        (&["memory", "--over", "global+shm", "--dials", "latency=20us"], "--dials is for the layers am+shm"),
        (&["memory", "--over", "global+shm", "--faults", "loss=0.1"], "not for global+shm"),
        (&["memory", "--over", "sim", "--truth", TRUTH, "--size", "64"], "--largest"),
        (&["memory", "--over", "sim", "--truth", TRUTH, "--largest", "2GiB"], "1KiB to 1GiB"),
        (&["logp", "--over", "global+shm"], "one-sided operations alone: use netdyno memory"),
        (&["contention", "--over", "am+udp,global+udp"], "global+udp has one-sided operations alone"),
        (&["--over", "global+shm"], "global+shm has one-sided operations alone"),
        (&["memory", "--over", "global"], "did you mean 'global+"),
    ];
    for (args, names) in cases {
        let line = error_of(args, 2);
        assert!(line.contains(names), "{args:?}: {line}");
    }
}
