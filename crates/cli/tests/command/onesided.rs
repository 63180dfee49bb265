//! `netdyno onesided`, end to end.

use crate::common::schemas::{record, record_text};
use crate::common::{error_of, stdout_of};
use netdyno_measure::onesided::data::Operation;
use netdyno_measure::record::Status;
use serde_json::Value;
use std::fs;

const TRUTH: &str = "o_s=1us,o_r=2us,g=5us,L=7us,G=1ns/B";

#[test]
fn the_simulated_layer_gives_back_its_parameters() {
    let record = record(&["onesided", "--over", "sim", "--truth", TRUTH, "--largest", "64KiB"]);
    let result = &record.results[0];
    assert_eq!((result.verb(), result.launches()), ("onesided", 9));
    assert_eq!(result.parameters.rtt.status, Status::Unobservable);
    let found = result.found.onesided().unwrap();
    let names: Vec<Operation> = found.operations.iter().map(|one| one.operation).collect();
    assert_eq!(names, [Operation::Put, Operation::Get, Operation::FetchAdd]);
    let put = &found.operations[0];
    let last = put.sizes.last().unwrap();
    let near = |value: Option<f64>, truth: f64| (value.unwrap() / truth - 1.0).abs() < 1e-3;
    assert_eq!(last.size_bytes, 64 << 10);
    assert!(near(last.start.value_ns, 1e3) && near(last.local.value_ns, 66535.0), "{last:?}");
    assert!(near(last.remote.value_ns, 82535.0) && near(last.gap.value_ns, 70535.0), "{last:?}");
    assert!(near(put.G.value_ns_per_byte, 1.0), "{:?}", put.G);
    let get = &found.operations[1].sizes[0];
    assert!(near(get.local.value_ns, 17e3) && get.remote.value_ns.is_none(), "{get:?}");
}

/// The simulated layer has no process that could be notified.
#[test]
fn an_operation_that_the_layer_does_not_have_is_named() {
    let sim = ["onesided", "--over", "sim", "--truth", TRUTH, "--launches", "6", "--largest", "1KiB"];
    let record = record(&sim);
    let named: Vec<_> =
        record.results[0].doubts.iter().filter(|doubt| doubt.name == "missing_operations").collect();
    let [doubt] = &named[..] else { panic!("{named:?}") };
    assert_eq!(doubt.text, "the layer has no put_notify: it is not measured");
    let table = stdout_of(&sim);
    assert!(table.contains("the layer has no put_notify: it is not measured"), "{table}");
}

#[test]
fn the_forms_of_a_result() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("onesided.json");
    let file = file.to_str().unwrap();
    let sim = ["onesided", "--over", "sim", "--truth", TRUTH, "--launches", "6", "--largest", "16KiB"];
    stdout_of(&[&sim[..], &["--out", file]].concat());
    let form = |form: &str| stdout_of(&["report", file, "--format", form, "--out", "-"]);
    let table = form("table");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert!(["put", "get", "fetch+add", "bandwidth"].iter().all(|word| table.contains(word)), "{table}");
    let csv = form("csv");
    assert!(csv.lines().any(|row| row.starts_with("sim,onesided,16384,put.remote,measured,ns,")), "{csv}");
    assert!(
        csv.lines().any(|row| row.starts_with("sim,onesided,16384,get.G,measured,ns_per_byte,")),
        "{csv}"
    );
    let page = form("html");
    assert!(page.contains("One-sided operations over sim") && page.contains("<svg"), "{page}");
    let same = stdout_of(&["compare", file, file]);
    assert!(same.contains("put.remote") && same.contains("get.gap"), "{same}");
    assert!(error_of(&["export", file, "--to", "simgrid"], 2).contains("o_s"));
}

/// Results of different synchronisations, or levels, are compared with a warning. A record without a synchronisation is
/// of an earlier version, which had locks only.
#[test]
fn a_comparison_tells_the_settings_apart() {
    let folder = tempfile::tempdir().unwrap();
    let text =
        record_text(&["onesided", "--over", "sim", "--truth", TRUTH, "--launches", "6", "--largest", "1KiB"]);
    let with = |setting: &str, value: &str| {
        let mut record: Value = serde_json::from_str(&text).unwrap();
        let result = &mut record["results"][0];
        result[setting] = value.into();
        for launch in result["launches"].as_array_mut().unwrap() {
            launch[setting] = value.into();
        }
        let file = folder.path().join(format!("{value}.json"));
        fs::write(&file, record.to_string()).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let plain = folder.path().join("plain.json");
    fs::write(&plain, &text).unwrap();
    let plain = plain.to_str().unwrap().to_owned();
    let lock = with("synchronisation", "lock");
    let fence = with("synchronisation", "fence");
    let compared = |a: &str, b: &str| stdout_of(&["compare", a, b, "--format", "json"]);
    for (a, b) in [(&lock, &fence), (&plain, &fence)] {
        let found = compared(a, b);
        assert!(
            found.contains("synchronisation_differs") && found.contains("epochs between fences"),
            "{found}"
        );
    }
    assert!(!compared(&plain, &lock).contains("synchronisation_differs"));
    let allocated = with("memory", "allocated");
    assert!(compared(&plain, &allocated).contains("memory_differs"));
    assert!(!compared(&plain, &with("memory", "registered")).contains("memory_differs"));
    let levels = compared(&with("level", "delivery"), &with("level", "reception"));
    assert!(levels.contains("level_differs") && levels.contains("reliable reception"), "{levels}");
    let table = stdout_of(&["report", &fence, "--format", "table", "--out", "-"]);
    assert!(table.contains("epochs between fences"), "{table}");
    let page = stdout_of(&["report", &fence, "--format", "html", "--out", "-"]);
    assert!(page.contains("epochs between fences"));
}

#[test]
fn bad_input_is_one_line_and_exit_code_2() {
    let cases: &[(&[&str], &str)] = &[
        (&["onesided"], "--over"),
        (&["onesided", "--over", "sim"], "--truth"),
        (
            &["onesided", "--over", "tcp"],
            "tcp has no one-sided operations here: use am+shm, am+udp, am+xdp, vi+shm, vi+udp, vi+xdp, global+shm, global+udp, global+xdp, mpi, ofi:tcp, ucx:tcp, plugin, sim",
        ),
        (&["onesided", "--over", "am+shm", "--level", "reception"], "am+shm has no reliability levels"),
        (&["onesided", "--over", "vi+shm", "--level", "best"], "reception"),
        (
            &["onesided", "--over", "am+shm", "--sync", "fence"],
            "am+shm has no synchronisations to choose: use --sync with mpi",
        ),
        (&["onesided", "--over", "sim", "--truth", TRUTH, "--sync", "lock"], "sim has no synchronisations"),
        (&["onesided", "--over", "mpi", "--sync", "flush"], "lock, fence, post"),
        (
            &["onesided", "--over", "am+shm", "--memory", "allocated"],
            "am+shm has no choice of memory: use --memory with mpi, ucx:tcp, plugin",
        ),
        (&["onesided", "--over", "mpi", "--memory", "mine"], "registered, allocated"),
        (&["onesided", "--over", "sim", "--truth", TRUTH, "--size", "64"], "--largest"),
        (&["onesided", "--over", "sim", "--truth", TRUTH, "--largest", "2GiB"], "1KiB to 1GiB"),
    ];
    for (args, names) in cases {
        let line = error_of(args, 2);
        assert!(line.contains(names), "{args:?}: {line}");
    }
}
