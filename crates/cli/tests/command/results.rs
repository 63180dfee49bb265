//! The built command end to end: results, forms, records, bad input.

use crate::common::schemas::{record, record_text};
use crate::common::{error_of, run, stdout_of};
use netdyno_measure::record::{Limit, Record, Status};
use std::fs;

const TRUTH: &str = "o_s=1us,o_r=2us,g=5us,L=7us";
/// The layers that need only this machine.
const ALL: &str = "am+shm,am+udp,vi+shm,vi+udp,udp,tcp";

#[test]
fn the_simulated_layer_comes_back_and_its_record_is_valid() {
    let text = record_text(&["logp", "--over", "sim", "--truth", TRUTH]);
    let record = Record::from_json(&text).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["schema"], "netdyno/1");
    let result = &json["results"][0];
    assert_eq!(
        (&result["layer"], &result["verb"], &result["size_bytes"]),
        (&"sim".into(), &"logp".into(), &32.into())
    );
    for (name, truth) in [("rtt", 20e3), ("o_s", 1e3), ("o_r", 2e3), ("g", 5e3), ("L", 7e3)] {
        let parameter = &result["parameters"][name];
        assert_eq!(parameter["status"], "measured", "{name}");
        let value = parameter["value_ns"].as_f64().unwrap();
        assert!((value / truth - 1.0).abs() < 0.01, "{name}: {value}");
        assert_eq!(parameter["ci_ns"].as_array().unwrap().len(), 2, "{name}");
        assert!(parameter["samples"].as_u64().unwrap() > 0 && parameter["launches"] == 9, "{name}");
    }
    assert_eq!(result["parameters"]["G"]["status"], "unobservable");
    assert!(result["parameters"]["G"]["value_ns_per_byte"].is_null());
    assert_eq!(result["launches"].as_array().unwrap().len(), 9);
    assert!(result["doubts"].is_array() && json["doubts"].is_array());
    assert_eq!(record.results[0].found.logp().unwrap().plateau.limited_by, Limit::Gap);
    assert!(
        record.results[0].found.logp().unwrap().launches.iter().all(|launch| launch.signature.len() >= 5)
    );
}

#[test]
fn status_says_what_a_figure_is_worth() {
    let g = |truth: &str| {
        let record = record(&["logp", "--over", "sim", "--launches", "1", "--truth", truth]);
        record.results[0].parameters.g.clone()
    };
    assert_eq!(g("o_s=4us,o_r=5us,g=2us,L=7us").status, Status::UpperBound);
    let windowed = g("o_s=1us,o_r=2us,g=5us,L=70us,window=4");
    assert_eq!((windowed.status, windowed.value_ns), (Status::Unobservable, None));
}

#[test]
fn the_same_seed_gives_the_same_figures() {
    let parameters = |seed: &str| {
        let truth = format!("{TRUTH},noise=0.1");
        let args = ["logp", "--over", "sim", "--truth", &truth, "--launches", "2", "--seed", seed];
        record(&args).results[0].parameters.clone()
    };
    assert_eq!(parameters("5"), parameters("5"));
    assert_ne!(parameters("5"), parameters("6"));
}

#[test]
fn the_forms_of_a_result() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let sim = ["logp", "--over", "sim", "--truth", TRUTH, "--launches", "6"];

    let table = stdout_of(&sim);
    assert!(table.contains("sim") && table.lines().all(|line| line.chars().count() <= 80), "{table}");
    let csv = stdout_of(&[&sim[..], &["--format", "csv"]].concat());
    assert!(csv.starts_with("layer,verb,") && csv.lines().count() >= 8, "{csv}");

    // The file's extension names the form. Standard output stays empty.
    let file = path("run.json");
    assert_eq!(stdout_of(&[&sim[..], &["--out", &file]].concat()), "");
    Record::from_json(&fs::read_to_string(&file).unwrap()).unwrap();

    let html = path("run.html");
    stdout_of(&["report", &file, "--out", &html]);
    assert!(fs::read_to_string(&html).unwrap().starts_with("<!DOCTYPE html>"));
    assert_eq!(stdout_of(&["report", &file, "--out", "-", "--format", "table"]), table_of(&file));
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 2, "no temporary file is left");
}

fn table_of(file: &str) -> String {
    netdyno_report::table::render(&Record::from_json(&fs::read_to_string(file).unwrap()).unwrap(), 80)
}

#[test]
fn layers_are_listed() {
    let text = stdout_of(&["layers"]);
    for layer in ALL.split(',').chain(["sim"]) {
        assert!(text.lines().any(|line| line.starts_with(layer)), "{text}");
    }
}

#[test]
fn help_and_version_are_no_errors() {
    for flag in ["--help", "--version"] {
        assert!(!stdout_of(&[flag]).is_empty());
    }
    assert!(stdout_of(&["logp", "--help"]).contains("--truth"));
}

#[test]
fn bad_input_is_one_line_and_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str, text: &str| {
        let file = folder.path().join(name);
        fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let other_schema = path("other.json", r#"{"schema":"netdyno/7"}"#);
    let whole =
        stdout_of(&["logp", "--over", "sim", "--truth", TRUTH, "--launches", "1", "--format", "json"]);
    let truncated = path("truncated.json", &whole[..whole.len() / 2]);
    let not_json = path("not.json", "hello");
    let huge = "99999999999999999999";
    let cases: &[(&[&str], &str)] = &[
        (&["lopg"], "'logp'"),
        (&["logp"], "--over"),
        (&["logp", "--over", "am+shmem"], "'am+shm'"),
        (&["logp", "--over", "udp,udp"], "--over names udp twice: name it once"),
        (&["logp", "--over", ""], "there is no layer"),
        (&["logp", "--over", "sim"], "--truth"),
        (&["logp", "--over", "sim", "--truth", "o_s=1"], "unit"),
        (&["logp", "--over", "sim", "--truth", "o_s=1us,o_r=1us,g=1us"], "'L' is missing"),
        (&["logp", "--over", "udp", "--truth", TRUTH], "--over sim"),
        (&["logp", "--over", "udp", "--precision", "0"], "above 0"),
        (&["logp", "--over", "udp", "--precision", "-0.1"], "above 0"),
        (&["logp", "--over", "udp", "--precision", "much"], "not a number"),
        (&["logp", "--over", "udp", "--confidence", "1"], "0.95"),
        (&["logp", "--over", "udp", "--launches", "0"], "1..=1000"),
        (&["logp", "--over", "udp", "--max-time", "5"], "30s"),
        (&["logp", "--over", "udp", "--size", "0"], "0"),
        (&["logp", "--over", "udp", "--size", huge], huge),
        (&["logp", "--over", "tcp", "--size", "1000000"], "4096"),
        (&["logp", "--over", "udp", "--cpus", "0,9999"], "9999"),
        (&["logp", "--over", "udp", "--cpus", "0"], "two processors"),
        (&["logp", "--over", "udp", "--cpus", "0,0", "--wait", "spin"], "--wait yield"),
        (&["logp", "--over", "udp", "--wait", "sleep"], "spin"),
        (&["logp", "--over", "udp", "--wait", "spin:0us"], "use 1ns to 1s"),
        (&["logp", "--over", "udp", "--wait", "spin:20us,spin:0.02ms"], "spin:20us twice"),
        (&["logp", "--over", "udp", "--wait", "block,block"], "block twice"),
        (&["logp", "--over", "udp", "--wait", "block,spin", "--label", "mine"], "leave --label away"),
        (&["validate", "--over", "am+shm", "--wait", "yield,spin"], "waits one way"),
        (&["logp", "--over", "am+udp", "--faults", "loss"], "NAME=PROBABILITY"),
        (&["logp", "--over", "am+udp", "--faults", "loss=2"], "from 0 to 1"),
        (&["logp", "--over", "vi+udb"], "'vi+udp'"),
        (&["logp", "--over", "vi+shm", "--size", "1048577"], "1048576"),
        (&["logp", "--over", "vi+udp", "--dials", "latency=1us"], "layers am+shm, am+udp, am+xdp"),
        (&["logp", "--over", "am+udp", "--faults", "lost=0.1"], "not a fault"),
        (&["logp", "--over", "udp", "--faults", "loss=0.1"], "--over am+udp"),
        (&["registration", "--over", "vi+udp", "--faults", "loss=0.1"], "--faults means nothing"),
        (&["overlap", "--over", "udp,oncrpc+tcp"], "oncrpc+tcp has requests and replies alone"),
        (&["logp", "--over", "oncrpc+tcp,oncrpc+udp", "--connect", "127.0.0.1:9"], "measures one layer"),
        (&["logp", "--over", "tcp", "--connect", "127.0.0.1:9"], "one of oncrpc+udp, oncrpc+tcp"),
        (&["logp", "--over", "oncrpc+tcp", "--connect", "127.0.0.1"], "must name the port"),
        (&["logp", "--over", "oncrpc+tcp", "--connect", "127.0.0.1:0"], "must name the port"),
        (&["bulk", "--over", "oncrpc+tcp", "--connect", "[::1]:9", "--cpus", "0,1"], "must be one processor"),
        (&["logp", "--over", "oncrpc+tcp", "--connect", "[::1]:9", "--bind", "::1"], "--bind"),
        (&["contention", "--over", "oncrpc+tcp", "--connect", "127.0.0.1:9"], "--connect"),
        (&["serve", "--over", "tcp"], "others cannot call over it: use one of oncrpc+udp, oncrpc+tcp"),
        (&["serve", "--over", "oncrpc+udp", "--one-off"], "--one-off"),
        (&["logp", "--over", "am+shm", "--dials", "latency=1"], "no unit"),
        (&["logp", "--over", "am+shm", "--dials", "latency=nan"], "': latency=nan has no unit"),
        (&["logp", "--over", "am+shm", "--dials", "speed=1us"], "'speed' is no dial"),
        (&["logp", "--over", "am+shm", "--dials", "send-gap+1us"], "set it (=)"),
        (&["logp", "--over", "am+shm", "--dials", "latency=9us±1"], "deviation without a unit"),
        (&["logp", "--over", "am+shm", "--dials", "latency=9us±us"], "deviation that is no number"),
        (&["logp", "--over", "am+shm", "--dials", "latency=9us+-0us"], "not above 0"),
        (&["logp", "--over", "am+shm", "--dials", "latency=9us±10us"], "9us at most"),
        (&["logp", "--over", "am+shm", "--dials", "latency=9us±1us:square"], "use uniform, normal"),
        (&["logp", "--over", "am+shm", "--dials", "gap-per-byte=1ns/B±1ns"], "cannot vary"),
        (&["logp", "--over", "am+shm", "--dials", "send-gap+9us±1us"], "set it (=)"),
        (
            &["logp", "--over", "udp", "--dials", "latency=1us"],
            "layers am+shm, am+udp, am+xdp: add --over am+shm",
        ),
        (&["logp", "--over", "am+udp", "--dials", "latency=1us", "--size", "1373"], "1372"),
        (&["logp", "--over", "am+udp", "--profile", "slow-start", "--size", "1373"], "1372"),
        (
            &["logp", "--over", "tcp", "--profile", "slow-start"],
            "--profile is for the layers am+shm, am+udp, am+xdp",
        ),
        (
            &["logp", "--over", "am+shm", "--profile", "slow"],
            "or interrupt-coalescing, slow-start, congested",
        ),
        (
            &["logp", "--over", "am+shm", "--profile", "interrupt-coalescing", "--dials", "latency=9us"],
            "by the profile and by itself",
        ),
        (&["logp", "--over", "am+udp", "--size", "1381"], "1380"),
        (&["logp", "--over", "am+udp", "--bind", "no-such-host.invalid"], "no host 'no-such-host.invalid'"),
        (&["logp", "--over", "am+udp", "--bind", "127.0.0.1:x"], "not a port"),
        (&["logp", "--over", "am+udp", "--bind", "192.0.2.1"], "an address of this host"),
        (&["logp", "--over", "am+udp", "--bind", "0.0.0.0"], "name the one address"),
        (&["logp", "--over", "udp", "--out", "/nonexistent/file"], "/nonexistent/file"),
        (&["logp", "--over", "udp", "--out", "/"], "folder"),
        (&["logp", "--over", "udp", "--out", "/proc/version"], "/proc/version"),
        (&["logp", "--over", "udp", "--fromat", "json"], "--format"),
        (&["--dir", "/nonexistent"], "/nonexistent"),
        (&["report"], "FILE"),
        (&["report", "/nonexistent.json", "--out", "-"], "/nonexistent.json"),
        (&["report", &other_schema, "--out", "-"], "netdyno/7"),
        (&["report", &truncated, "--out", "-"], "truncated.json"),
        (&["report", &not_json, "--out", "-"], "not.json"),
        (&["worker"], "not launched by netdyno"),
    ];
    for (args, names) in cases {
        let line = error_of(args, 2);
        assert!(line.contains(names), "{args:?}: {line}");
    }
}

#[test]
fn a_pipe_is_kept_quiet() {
    let output = run(&["logp", "--over", "sim", "--truth", TRUTH, "--launches", "1"]);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn seeds_hold_and_replay() {
    let table = stdout_of(&["soak", "--seeds", "300", "--first", "1000"]);
    let all = table.lines().find(|line| line.trim_start().starts_with("all")).unwrap();
    let fields: Vec<&str> = all.split_whitespace().collect();
    assert_eq!(fields[1], "300", "{table}");
    assert_eq!(fields[2], fields[3], "every request is handled once: {table}");
    assert_eq!(table, stdout_of(&["soak", "--seeds", "300", "--first", "1000"]));
    assert!(error_of(&["soak", "--seeds", "0"], 2).contains("--seeds"));
}
