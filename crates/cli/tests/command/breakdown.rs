//! `netdyno breakdown`, end to end.

use crate::common::schemas::record;
use crate::common::{error_of, stdout_of};

const TRUTH: &str = "o_s=1us,o_r=2us,g=5us,L=7us,o_poll=50ns";

#[test]
fn the_simulated_layer_gives_back_its_steps() {
    let record = record(&["breakdown", "--over", "sim", "--truth", TRUTH]);
    let result = &record.results[0];
    assert_eq!((result.verb(), result.launches()), ("breakdown", 9));
    let operations = &result.found.breakdown().unwrap().operations;
    let of = |name: &str| operations.iter().find(|operation| operation.name == name).unwrap();
    let is = |value: Option<f64>, ns: f64| value.is_some_and(|value| (value / ns - 1.0).abs() < 0.02);
    let send = of("send request");
    assert!(is(send.whole.value_ns, 1e3) && is(send.unexplained.value_ns, 50.0), "{send:?}");
    assert!(is(send.unexplained_share.value, 0.05), "{send:?}");
    for (step, ns) in send.steps.iter().zip([200.0, 300.0, 100.0, 350.0]) {
        assert!(is(step.cost.value_ns, ns), "{step:?}");
    }
    let trip = of("round trip");
    assert!(is(trip.whole.value_ns, 20e3) && is(trip.steps[1].cost.value_ns, 14e3), "{trip:?}");
    assert!(of("poll in vain").steps.is_empty());
    assert!(result.doubts.iter().all(|doubt| doubt.name != "unexplained"), "{:?}", result.doubts);
}

#[test]
fn the_forms_of_a_result() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("breakdown.json");
    let file = file.to_str().unwrap();
    let sim = ["breakdown", "--over", "sim", "--truth", TRUTH, "--launches", "6"];
    stdout_of(&[&sim[..], &["--out", file]].concat());
    let form = |form: &str| stdout_of(&["report", file, "--format", form, "--out", "-"]);
    let table = form("table");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert!(table.contains("send request") && table.contains("unexplained"), "{table}");
    let csv = form("csv");
    let has = |beginning: &str| csv.lines().any(|row| row.starts_with(beginning));
    assert!(has("sim,breakdown,32,send request.checksum,measured,ns,"), "{csv}");
    assert!(has("sim,breakdown,32,round trip,measured,ns,20000"), "{csv}");
    assert!(form("html").contains("Steps of messages over sim"));
    let same = stdout_of(&["compare", file, file]);
    assert!(same.contains("send request") && same.contains("round trip"), "{same}");
    assert!(error_of(&["export", file, "--to", "simgrid"], 2).contains("o_s"));
}

#[test]
fn bad_input_is_one_line_and_exit_code_2() {
    let cases: &[(&[&str], &str)] = &[
        (&["breakdown"], "--over"),
        (&["breakdown", "--over", "sim"], "--truth"),
        (
            &["breakdown", "--over", "mpi"],
            "mpi has no operations that are made in parts: use am+shm, am+udp, am+xdp, vi+shm, vi+udp, vi+xdp, udp, tcp, sim",
        ),
        (&["breakdown", "--over", "udp,oncrpc+udp"], "oncrpc+udp has no operations that are made in parts"),
        (&["breakdown", "--over", "udp", "--wait", "block"], "remove --wait"),
        (&["breakdown", "--over", "am+udp", "--faults", "loss=0.01"], "remove --faults"),
        (&["breakdown", "--over", "am+udp", "--dials", "latency=5us"], "remove --dials"),
        (&["breakdown", "--over", "am+udp", "--bind", "127.0.0.1"], "remove --bind"),
        (&["breakdown", "--over", "am+udp", "--size", "64KiB"], "--size"),
        (&["breakdown", "--over", "udp", "--size", "1MiB"], "--size"),
        (&["breakdown", "--over", "vi+shm", "--size", "33"], "more than the 32 bytes"),
        (&["breakdown", "--over", "vi+udp", "--size", "1381"], "more than the 1380 bytes"),
        (&["breakdown", "--over", "vi+xdp", "--size", "1381"], "more than the 1380 bytes"),
    ];
    for (args, names) in cases {
        let line = error_of(args, 2);
        assert!(line.contains(names), "{args:?}: {line}");
    }
}
