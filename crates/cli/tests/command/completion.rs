//! `netdyno completion`, end to end.

use crate::common::schemas::record;
use crate::common::{error_of, stdout_of};
use netdyno_measure::record::Status;

const TRUTH: &str = "o_s=1us,o_r=2us,g=5us,L=7us,G=1ns/B";

#[test]
fn the_simulated_layer_gives_back_its_parameters() {
    let record = record(&["completion", "--over", "sim", "--truth", TRUTH, "--largest", "16KiB"]);
    let result = &record.results[0];
    assert_eq!((result.verb(), result.launches(), &result.label), ("completion", 9, &None));
    assert_eq!(result.parameters.rtt.status, Status::Unobservable);
    let found = result.found.completion().unwrap();
    let near = |value: Option<f64>, truth: f64| (value.unwrap() / truth - 1.0).abs() < 1e-3;
    let (first, last) = (&found.sizes[0], found.sizes.last().unwrap());
    assert_eq!((first.size_bytes, last.size_bytes), (1, 16 << 10));
    assert!(near(first.half_rtt.value_ns, 10e3) && near(first.per_message.value_ns, 5e3), "{first:?}");
    assert!(near(last.half_rtt.value_ns, 26383.0) && near(last.per_message.value_ns, 21383.0), "{last:?}");
}

#[test]
fn the_forms_of_a_result() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("completion.json");
    let file = file.to_str().unwrap();
    let sim = ["completion", "--over", "sim", "--truth", TRUTH, "--launches", "6", "--largest", "16KiB"];
    stdout_of(&[&sim[..], &["--out", file]].concat());
    let form = |form: &str| stdout_of(&["report", file, "--format", form, "--out", "-"]);
    let table = form("table");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert!(["half rtt", "per message", "bandwidth"].iter().all(|word| table.contains(word)), "{table}");
    let csv = form("csv");
    assert!(csv.lines().any(|row| row.starts_with("sim,completion,16384,half_rtt,measured,ns,")), "{csv}");
    assert!(
        csv.lines().any(|row| row.starts_with("sim,completion,16384,bandwidth,measured,bytes_per_s,")),
        "{csv}"
    );
    let same = stdout_of(&["compare", file, file]);
    assert!(same.contains("half_rtt") && same.contains("per_message"), "{same}");
    assert!(error_of(&["export", file, "--to", "simgrid"], 2).contains("o_s"));
}

#[test]
fn bad_input_is_one_line_and_exit_code_2() {
    let cases: &[(&[&str], &str)] = &[
        (&["completion"], "--over"),
        (&["completion", "--over", "sim"], "--truth"),
        (&["completion", "--over", "udp", "--wait", "block,block"], "--wait names block twice"),
        (&["completion", "--over", "sim", "--truth", TRUTH, "--size", "64"], "--largest"),
        (&["completion", "--over", "sim", "--truth", TRUTH, "--largest", "2GiB"], "1KiB to 1GiB"),
    ];
    for (args, names) in cases {
        let line = error_of(args, 2);
        assert!(line.contains(names), "{args:?}: {line}");
    }
}
