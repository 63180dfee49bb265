//! `netdyno bulk`, end to end.

use crate::common::schemas::record_text;
use crate::common::{error_of, stdout_of};
use netdyno_measure::layer::Transfer;
use netdyno_measure::record::Record;

const TRUTH: &str = "o_s=1us,o_r=2us,g=5us,L=7us,G=0.5ns/B,change=8KiB,change_G=0.25ns/B,change_L=20us";

#[test]
fn the_simulated_layer_gives_back_its_g_and_its_change() {
    let text = record_text(&["bulk", "--over", "sim", "--truth", TRUTH]);
    let record = Record::from_json(&text).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let result = &json["results"][0];
    assert_eq!((&result["verb"], &result["size_bytes"]), (&"bulk".into(), &1.into()));
    // These are the parameters of the smallest size, and G of the largest.
    for (name, truth) in [("rtt", 20e3), ("o_s", 1e3), ("o_r", 2e3), ("g", 5e3), ("L", 7e3)] {
        let value = result["parameters"][name]["value_ns"].as_f64().unwrap();
        assert!((value / truth - 1.0).abs() < 0.01, "{name}: {value}");
    }
    let gap = &result["parameters"]["G"];
    assert_eq!(gap["status"], "measured");
    assert!((gap["value_ns_per_byte"].as_f64().unwrap() / 0.25 - 1.0).abs() < 0.01);
    let bulk = record.results[0].found.bulk().unwrap();
    let [change] = bulk.changes[..] else { panic!("{:?}", bulk.changes) };
    assert!(change.above_bytes < 8192 && change.at_most_bytes == 8192, "{change:?}");
    assert!((bulk.segments[0].G.value_ns_per_byte.unwrap() / 0.5 - 1.0).abs() < 0.01);
    assert_eq!(bulk.sizes.last().unwrap().size_bytes, 4 << 20);
    assert_eq!(bulk.launches.len(), 9);
}

#[test]
fn the_forms_of_a_result() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bulk.json");
    let file = file.to_str().unwrap();
    let sim = ["bulk", "--over", "sim", "--truth", TRUTH, "--launches", "2", "--largest", "64KiB"];
    stdout_of(&[&sim[..], &["--out", file]].concat());
    let table = stdout_of(&["report", file, "--format", "table", "--out", "-"]);
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert!(table.contains("R∞") && table.contains("T leaves its line above"), "{table}");
    let csv = stdout_of(&["report", file, "--format", "csv", "--out", "-"]);
    assert!(csv.lines().any(|row| row.starts_with("sim,bulk,65536,T,measured,ns,")), "{csv}");
    let page = stdout_of(&["report", file, "--format", "html", "--out", "-"]);
    assert!(page.contains("Bulk transfers over sim"), "{page}");
}

#[test]
fn transfers_have_directions_and_signatures() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bulk.json");
    let file = file.to_str().unwrap();
    let over = ["--over", "am+shm", "--wait", "yield", "--launches", "1", "--largest", "1KiB"];
    let rest = ["--max-time", "1s", "--signature", "2KiB,8", "--out", file];
    for (direction, operation) in [("store", Transfer::Store), ("get", Transfer::Get)] {
        stdout_of(&[&["bulk", "--direction", direction], &over[..], &rest].concat());
        let record = Record::from_json(&std::fs::read_to_string(file).unwrap()).unwrap();
        let bulk = record.results[0].found.bulk().unwrap();
        let found: Vec<_> = bulk.signatures.iter().map(|of| (of.size_bytes, of.transfer)).collect();
        assert_eq!(found, [(8, operation), (2048, operation)]);
        assert!(bulk.launches[0].signatures.iter().all(|of| of.data.signature.len() > 3), "{direction}");
        let page = stdout_of(&["report", file, "--format", "html", "--out", "-"]);
        assert!(page.contains(&format!("Signature of {direction}s of 8 B")), "{direction}");
    }
}

/// A launch has a number of transfers however little time it has: 19 GB in this case.
#[test]
fn a_signature_that_no_launch_measures_in_time_is_refused() {
    let over = ["bulk", "--over", "tcp", "--wait", "yield", "--launches", "1", "--largest", "1KiB"];
    let line = error_of(&[&over[..], &["--max-time", "1s", "--signature", "64MiB"]].concat(), 1);
    assert!(line.contains("the signature of 64 MiB has 300 transfers and more"), "{line}");
    assert!(line.contains("--max-time is 1 s: give more time, or name a smaller size"), "{line}");
}

#[test]
fn bad_input_is_one_line_and_exit_code_2() {
    let cases: &[(&[&str], &str)] = &[
        (&["bulk"], "--over"),
        (&["bulk", "--over", "sim"], "--truth"),
        (&["bulk", "--over", "udp", "--size", "64"], "--largest"),
        (&["bulk", "--over", "udp", "--largest", "1"], "1KiB to 1GiB"),
        (&["bulk", "--over", "udp", "--largest", "4Mb"], "64KiB"),
        (&["bulk", "--over", "udp", "--largest", "99999999999999999999"], "1GiB"),
        (&["bulk", "--over", "udp", "--direction", "put"], "store or get"),
        (&["bulk", "--over", "udp", "--signature", "0"], "1B to 64MiB"),
        (&["bulk", "--over", "udp", "--signature", "8,,9"], "not a size"),
        (&["bulk", "--over", "udp", "--signature", "1GiB"], "1B to 64MiB"),
        (&["bulk", "--over", "am+shm,udp", "--signature", "8,64KiB"], "65507"),
        (
            &["bulk", "--over", "udp", "--signature", "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17"],
            "at most 16",
        ),
        (&["bulk", "--over", "sim", "--truth", "o_s=1us,o_r=1us,g=1us,L=1us,G=1ns"], "G=0.5ns/B"),
        (&["bulk", "--over", "sim", "--truth", "o_s=1us,o_r=1us,g=1us,L=1us,change=8KiB"], "change_G"),
    ];
    for (args, names) in cases {
        let line = error_of(args, 2);
        assert!(line.contains(names), "{args:?}: {line}");
    }
}
