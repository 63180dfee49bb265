//! `netdyno utilisation`, end to end.

use crate::common::schemas::record;
use crate::common::{error_of, stdout_of};
use netdyno_measure::record::Status;

const TRUTH: &str = "o_s=1us,o_r=2us,g=5us,L=7us,G=1ns/B,softirq=500ns";

#[test]
fn the_simulated_layer_gives_back_its_processor_time() {
    let record = record(&["utilisation", "--over", "sim", "--truth", TRUTH, "--largest", "16KiB"]);
    let result = &record.results[0];
    assert_eq!((result.verb(), result.launches(), &result.label), ("utilisation", 9, &None));
    let found = result.found.utilisation().unwrap();
    let near = |value: Option<f64>, truth: f64| (value.unwrap() / truth - 1.0).abs() < 0.01;
    let (first, last) = (&found.sizes[0], found.sizes.last().unwrap());
    assert_eq!((first.size_bytes, last.size_bytes), (1, 16 << 10));
    for (_, side) in first.round_trips.sides() {
        assert!(near(side.busy.share.value, 0.15) && near(side.busy.per_message.value_ns, 3e3), "{side:?}");
        assert_eq!(side.system.per_message.status, Status::Measured);
    }
    for (_, side) in first.stream.sides() {
        assert!(near(side.busy.share.value, 0.6) && near(side.busy.per_message.value_ns, 3e3), "{side:?}");
    }
    assert!(near(last.stream.requester.busy.share.value, 3e3 / 21383.0), "{last:?}");
    assert!(near(first.stream.machine.elsewhere.per_message.value_ns, 1e3), "{first:?}");
    assert!(result.doubts.iter().all(|doubt| doubt.name != "unexplained"), "{:?}", result.doubts);
}

#[test]
fn a_process_that_polls_is_busy_all_the_time() {
    let truth = format!("{TRUTH},spin=1");
    let record = record(&["utilisation", "--over", "sim", "--truth", &truth, "--largest", "1KiB"]);
    for size in &record.results[0].found.utilisation().unwrap().sizes {
        for (_, side) in size.kinds().into_iter().flat_map(|(_, costs)| costs.sides()) {
            assert!((side.busy.share.value.unwrap() - 1.0).abs() < 1e-6, "{side:?}");
        }
    }
}

#[test]
fn the_forms_of_a_result() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("utilisation.json");
    let file = file.to_str().unwrap();
    let sim = ["utilisation", "--over", "sim", "--truth", TRUTH, "--launches", "6", "--largest", "4KiB"];
    stdout_of(&[&sim[..], &["--out", file]].concat());
    let form = |form: &str| stdout_of(&["report", file, "--format", form, "--out", "-"]);
    let table = form("table");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert!(
        ["ping-pong", "stream", "elsewhere", "unexplained"].iter().all(|word| table.contains(word)),
        "{table}"
    );
    let csv = form("csv");
    for row in [
        "sim,utilisation,4096,round_trips.requester.busy,measured,ratio,",
        "sim,utilisation,4096,stream.replier.busy.per_message,measured,ns,",
        "sim,utilisation,1,stream.machine.elsewhere,measured,ratio,",
    ] {
        assert!(csv.lines().any(|line| line.starts_with(row)), "{row}: {csv}");
    }
    let page = form("html");
    assert!(page.contains("Processor time of messages") && page.contains("share of a processor"), "{page}");
    let same = stdout_of(&["compare", file, file]);
    assert!(same.contains("stream.replier.busy.per_message"), "{same}");
    assert!(error_of(&["export", file, "--to", "simgrid"], 2).contains("o_s"));
}

#[test]
fn bad_input_is_one_line_and_exit_code_2() {
    let cases: &[(&[&str], &str)] = &[
        (&["utilisation"], "--over"),
        (&["utilisation", "--over", "sim"], "--truth"),
        (&["utilisation", "--over", "sim", "--truth", "o_s=1us,o_r=1us,g=1us,L=1us,spin=2"], "from 0 to 1"),
        (&["utilisation", "--over", "udp", "--wait", "block,block"], "--wait names block twice"),
        (&["utilisation", "--over", "sim", "--truth", TRUTH, "--size", "64"], "--largest"),
        (&["utilisation", "--over", "sim", "--truth", TRUTH, "--largest", "2GiB"], "1KiB to 1GiB"),
    ];
    for (args, names) in cases {
        let line = error_of(args, 2);
        assert!(line.contains(names), "{args:?}: {line}");
    }
}
