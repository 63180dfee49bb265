//! `netdyno registration`, end to end.

use crate::common::schemas::record;
use crate::common::{error_of, stdout_of};
use netdyno_measure::record::Status;

const TRUTH: &str = "o_s=1us,o_r=2us,g=5us,L=7us,register=1us+50ns/page,fault=250ns,cached=100ns,\
                     deregister=500ns+10ns/page,lock=2us+30ns/page,unlock=300ns,lock_limit=1MiB,create=5us";

#[test]
fn the_simulated_layer_gives_back_what_memory_costs() {
    let record = record(&["registration", "--over", "sim", "--truth", TRUTH]);
    let result = &record.results[0];
    assert_eq!((result.verb(), result.launches()), ("registration", 9));
    assert_eq!(result.parameters.rtt.status, Status::Unobservable);
    let registration = result.found.registration().unwrap();
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

#[test]
fn bad_input_is_one_line_and_exit_code_2() {
    let cases: &[(&[&str], &str)] = &[
        (&["registration"], "--over"),
        (&["registration", "--over", "sim"], "--truth"),
        (
            &["registration", "--over", "tcp"],
            "tcp has no memory to register: use vi+shm, vi+udp, vi+xdp, ofi:tcp, ucx:tcp, plugin, sim",
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
