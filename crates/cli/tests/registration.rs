//! `netdyno registration`, end to end.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use common::{error_of, netdyno, stdout_of};
use netdyno_measure::record::{Record, Status};
use std::fs;
use std::process::Command;

const TRUTH: &str = "o_s=1us,o_r=2us,g=5us,L=7us,register=1us+50ns/page,fault=250ns,cached=100ns,\
                     deregister=500ns+10ns/page,lock=2us+30ns/page,unlock=300ns,lock_limit=1MiB,create=5us";

fn read(text: &str) -> Record {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema/netdyno-1.schema.json");
    let schema: serde_json::Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    jsonschema::validate(&schema, &serde_json::from_str(text).unwrap()).unwrap();
    Record::from_json(text).unwrap()
}

#[test]
fn the_simulated_layer_gives_back_what_memory_costs() {
    let record = read(&stdout_of(&["registration", "--over", "sim", "--truth", TRUTH, "--format", "json"]));
    let result = &record.results[0];
    assert_eq!((result.verb(), result.launches()), ("registration", 9));
    assert_eq!(result.parameters.rtt.status, Status::Unobservable);
    let registration = result.registration().unwrap();
    let sizes: Vec<usize> = registration.sizes.iter().map(|size| size.size_bytes).collect();
    assert_eq!(sizes, (0..14).map(|power| 4usize.pow(power)).collect::<Vec<_>>());
    let last = registration.sizes.last().unwrap();
    let first_touch = last.first_touch.value_ns.unwrap();
    assert!((first_touch / (1e3 + 16384.0 * 300.0) - 1.0).abs() < 0.01, "{first_touch}");
    assert_eq!((last.lock.status, last.unlock.value_ns), (Status::Unobservable, None));
    assert_eq!(registration.fixed[0].name, "create");
    let refused = result.doubts.iter().find(|doubt| doubt.name == "lock_refused").unwrap();
    assert!(refused.text.contains("4 MiB and more") && refused.text.contains("RLIMIT_MEMLOCK is 1 MiB"));
}

#[test]
fn the_forms_of_a_result() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("registration.json");
    let file = file.to_str().unwrap();
    let sim = ["registration", "--over", "sim", "--truth", TRUTH, "--launches", "6", "--largest", "16KiB"];
    stdout_of(&[&sim[..], &["--out", file]].concat());
    let form = |form: &str| stdout_of(&["report", file, "--format", form, "--out", "-"]);
    let table = form("table");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert!(
        table.contains("first touch") && table.contains("munlock") && table.contains("create"),
        "{table}"
    );
    let csv = form("csv");
    assert!(csv.lines().any(|row| row.starts_with("sim,registration,16384,touched,measured,ns,")), "{csv}");
    assert!(form("html").contains("Registering memory over sim"));
    let same = stdout_of(&["compare", file, file]);
    assert!(same.contains("first_touch") && same.contains("deregister"), "{same}");
    assert!(error_of(&["export", file, "--to", "simgrid"], 2).contains("o_s"));
}

/// Returns the record of a short measurement over a layer.
fn of_layer(command: &mut Command) -> Record {
    let few = ["--launches", "2", "--max-time", "1s", "--largest", "1MiB", "--format", "json"];
    let output = command.args(few).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    read(&String::from_utf8(output.stdout).unwrap())
}

/// Asserts that the record has times for memory that is touched before its registration and for memory that
/// is not. The values are not checked.
fn assert_whole(record: &Record) {
    let result = &record.results[0];
    assert_eq!((result.cpus.len(), &result.distance), (1, &None));
    let registration = result.registration().unwrap();
    assert_eq!(registration.sizes.last().unwrap().size_bytes, 1 << 20);
    assert!(registration.system.page_bytes >= 4096);
    for size in &registration.sizes {
        let ours = &size.times()[..5];
        assert!(ours.iter().all(|(_, cost)| cost.status == Status::Measured), "{size:?}");
    }
}

#[test]
fn virtual_interfaces_register_memory_and_cost_something_themselves() {
    for layer in ["vi+shm", "vi+udp"] {
        let record = of_layer(&mut netdyno(&["registration", "--over", layer]));
        assert_whole(&record);
        let fixed = &record.results[0].registration().unwrap().fixed;
        let names: Vec<&str> = fixed.iter().map(|fixed| &fixed.name[..]).collect();
        assert_eq!(names, ["create VI", "connect VI", "disconnect VI"], "{layer}");
        assert!(fixed.iter().all(|fixed| fixed.cost.value_ns.unwrap() > 0.0), "{layer}: {fixed:?}");
    }
}

#[test]
fn a_layer_in_c_registers_memory_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let built = |name: &str| {
        let mut command = netdyno(&["plugin", "build", name]);
        let output = command.env("XDG_CACHE_HOME", folder.path()).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    };
    let mut command = netdyno(&["registration", "--over", "plugin"]);
    assert_whole(&of_layer(command.env("NETDYNO_PLUGIN", built("skeleton"))));
    let mut command = netdyno(&["registration", "--over", "plugin"]);
    let output = command.env("NETDYNO_PLUGIN", built("requests")).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && said.contains("requests has no memory to register"), "{said}");
}

#[test]
fn bad_input_is_one_line_and_exit_code_2() {
    let cases: &[(&[&str], &str)] = &[
        (&["registration"], "--over"),
        (&["registration", "--over", "sim"], "--truth"),
        (
            &["registration", "--over", "tcp"],
            "tcp has no memory to register: use vi+shm, vi+udp, ofi:tcp, ucx:tcp, plugin, sim",
        ),
        (&["registration", "--over", "sim,am+shm", "--truth", TRUTH], "am+shm has no memory to register"),
        (&["registration", "--over", "sim", "--truth", TRUTH, "--size", "64"], "--largest"),
        (&["registration", "--over", "sim", "--truth", TRUTH, "--largest", "2GiB"], "1KiB to 1GiB"),
        (&["registration", "--over", "sim", "--truth", "register=1us/page"], "'o_s' is missing"),
        (&["registration", "--over", "sim", "--truth", "register=1us+2us"], "a part twice"),
    ];
    for (args, names) in cases {
        let line = error_of(args, 2);
        assert!(line.contains(names), "{args:?}: {line}");
    }
}
