//! `netdyno overlap`, end to end.

use crate::common::schemas::record;
use crate::common::{error_of, stdout_of};
use netdyno_measure::overlap::plan::Method;
use netdyno_measure::overlap::record::{Payer, Progress};
use netdyno_measure::record::Status;

const TRUTH: &str = "o_s=1us,o_r=2us,g=50ns,L=2us,G=0.5ns/B,steal=0.1ns/B";

#[test]
fn the_simulated_layer_gives_back_who_moves_the_data() {
    let record = record(&["overlap", "--over", "sim", "--truth", TRUTH]);
    let result = &record.results[0];
    assert_eq!((result.verb(), result.size_bytes, result.launches()), ("overlap", 16, 9));
    assert_eq!(result.parameters.o_s.status, Status::Unobservable);
    let overlap = result.found.overlap().unwrap();
    assert_eq!((overlap.queue, overlap.methods.len()), (4, 3));
    let sizes: Vec<usize> = overlap.sizes.iter().map(|size| size.size_bytes).collect();
    assert_eq!(sizes, [64, 5_000, 100_000, 1_000_000]);
    let large = &overlap.sizes[2];
    assert_eq!(large.finding.progress, Progress::ByItself);
    assert_eq!(large.finding.payers, [Payer::Stolen]);
    let stolen = large.finding.stolen_ns.value.unwrap();
    assert!((stolen / 10e3 - 1.0).abs() < 0.02, "{stolen}");
    let free = large.free.unwrap().work_ns.value.unwrap();
    assert!((free / 52e3 - 1.0).abs() < 0.02, "{free}");
}

#[test]
fn one_method_one_size() {
    let truth = format!("{TRUTH},offload=off,window=2");
    let args = ["overlap", "--over", "sim", "--truth", &truth, "--launches", "6", "--sizes", "8KiB"];
    let record = record(&[&args[..], &["--method", "max", "--batch", "3"]].concat());
    let overlap = record.results[0].found.overlap().unwrap();
    assert_eq!((&overlap.methods[..], overlap.queue, overlap.batch), (&[Method::Max][..], 2, 2));
    let [size] = &overlap.sizes[..] else { panic!("{:?}", overlap.sizes) };
    assert_eq!((size.size_bytes, size.polling.len(), size.pww.len()), (8192, 0, 0));
    assert_eq!(size.finding.progress, Progress::OnlyInCalls);
    for name in ["queue_is_shorter", "batch_is_smaller"] {
        assert!(record.results[0].doubts.iter().any(|doubt| doubt.name == name), "{name}");
    }
}

#[test]
fn the_forms_of_a_result() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("overlap.json");
    let file = file.to_str().unwrap();
    let sim = ["overlap", "--over", "sim", "--truth", TRUTH, "--launches", "2", "--sizes", "5kB,100kB"];
    stdout_of(&[&sim[..], &["--out", file]].concat());
    let form = |form: &str| stdout_of(&["report", file, "--format", form, "--out", "-"]);
    let table = form("table");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert!(table.contains("stolen from work") && table.contains("free work"), "{table}");
    let csv = form("csv");
    assert!(csv.lines().any(|row| row.starts_with("sim,overlap,100000,pww.stolen.12,measured,ns,")), "{csv}");
    assert!(form("html").contains("Overlap over sim"));
    let same = stdout_of(&["compare", file, file]);
    assert!(same.contains("half_rtt") && same.contains("free_work"), "{same}");
    assert!(error_of(&["export", file, "--to", "simgrid"], 2).contains("o_s"));
    stdout_of(&[&sim[..], &["--batch", "3", "--out", file]].concat());
    let table = form("table");
    assert!(table.lines().any(|line| line.trim().starts_with("work with batch 3")), "{table}");
    assert!(form("html").contains("3 messages each way under way in a cycle"));
}

#[test]
fn bad_input_is_one_line_and_exit_code_2() {
    let cases: &[(&[&str], &str)] = &[
        (&["overlap"], "--over"),
        (&["overlap", "--over", "sim"], "--truth"),
        (
            &["overlap", "--over", "sim", "--truth", "o_s=1us,o_r=1us,g=1us,L=1us,offload=perhaps"],
            "offload=on",
        ),
        (&["overlap", "--over", "sim", "--truth", TRUTH, "--size", "64"], "--sizes"),
        (&["overlap", "--over", "sim", "--truth", TRUTH, "--sizes", "7"], "8B to 1GiB"),
        (&["overlap", "--over", "sim", "--truth", TRUTH, "--sizes", "5kb"], "5kB"),
        (&["overlap", "--over", "sim", "--truth", TRUTH, "--sizes", "64,"], "8B to 1GiB"),
        (&["overlap", "--over", "sim", "--truth", TRUTH, "--sizes", "99999999999999999999"], "8B to 1GiB"),
        (&["overlap", "--over", "sim", "--truth", TRUTH, "--queue", "0"], "--queue"),
        (&["overlap", "--over", "sim", "--truth", TRUTH, "--batch", "0"], "--batch"),
        (&["paper", "comb", "--batch", "65"], "--batch"),
        (
            &["overlap", "--over", "udp", "--method", "pww,max", "--queue", "4"],
            "--queue is of the method polling",
        ),
        (
            &["overlap", "--over", "udp", "--method", "polling", "--batch", "1"],
            "--batch is of the methods pww",
        ),
        (&["paper", "speight-5", "--queue", "4"], "--queue is of the method polling"),
        (&["overlap", "--over", "sim", "--truth", TRUTH, "--method", "guess"], "--method"),
        (&["overlap", "--over", "udp", "--sizes", "5kB,8,5000"], "--sizes names 5 kB twice: name it once"),
        (&["overlap", "--over", "udp", "--method", "pww,max,pww"], "--method names pww twice"),
        (&["paper", "comb", "--sizes", "8,8"], "--sizes names 8 B twice"),
        (&["validate", "--over", "am+shm", "--dial", "latency,latency"], "--dial names latency twice"),
        (&["bulk", "--over", "udp", "--signature", "64,64"], "--signature names 64 B twice"),
    ];
    for (args, names) in cases {
        let line = error_of(args, 2);
        assert!(line.contains(names), "{args:?}: {line}");
    }
}
