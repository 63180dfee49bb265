//! `netdyno compare`, end to end.

use crate::common::folder::Folder;
use crate::common::schemas::validate;
use crate::common::{error_of, run, stdout_of};
use netdyno_measure::logp::ratio::ratios;
use netdyno_measure::record::Record;
use serde_json::Value;
use std::fs;

const TRUTH: &str = "o_s=1us,o_r=2us,g=5us,L=7us";

/// Measures `truth`, with noise, and writes a record.
fn measured(folder: &Folder, name: &str, truth: &str, more: &[&str]) -> String {
    folder.measured(name, &format!("{truth},noise=0.05"), more)
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&stdout_of(&[&["compare"], args, &["--format", "json"]].concat())).unwrap()
}

fn parameter<'a>(comparison: &'a Value, name: &str) -> &'a Value {
    let parameters = comparison["comparisons"][0]["parameters"].as_array().unwrap();
    parameters.iter().find(|p| p["parameter"] == name).unwrap()
}

fn doubts(of: &Value) -> Vec<&str> {
    of["doubts"].as_array().unwrap().iter().map(|doubt| doubt["name"].as_str().unwrap()).collect()
}

#[test]
fn two_runs_are_compared_with_intervals_and_doubts() {
    let folder = Folder::new();
    let a = measured(&folder, "a.json", TRUTH, &["--seed", "1"]);
    let b = measured(&folder, "b.json", "o_s=1.2us,o_r=2us,g=5us,L=7us", &["--seed", "2"]);
    let comparison = json(&[&a, &b]);
    validate("netdyno-compare-1", &comparison);
    assert_eq!(comparison["schema"], "netdyno-compare/1");
    assert!(doubts(&comparison).contains(&"not_interleaved"));

    for (name, truth, change) in [("o_s", 1.2, "larger"), ("rtt", 20.4 / 20.0, "larger")] {
        let p = parameter(&comparison, name);
        let end = |at: usize| p["ratio_ci"][at].as_f64().unwrap();
        assert!(end(0) <= truth * 1.003 && truth * 0.997 <= end(1) && end(0) < end(1), "{p}");
        assert_eq!((&p["change"], &p["verdict"]), (&change.into(), &Value::Null));
    }
    assert_eq!(parameter(&comparison, "g")["a"]["status"], "measured");

    let table = stdout_of(&["compare", &a, &b]);
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert!(table.contains("not interleaved") && table.contains("larger"), "{table}");
    let csv = stdout_of(&["compare", &a, &b, "--format", "csv"]);
    let row = csv.lines().find(|line| line.contains(",o_s,")).unwrap();
    assert!(csv.starts_with("a_layer,b_layer,") && row.contains(",larger,,not_interleaved"), "{csv}");
    let file = folder.path("comparison.json");
    assert_eq!(stdout_of(&["compare", &a, &b, "--out", &file]), "");
    assert_eq!(serde_json::from_str::<Value>(&fs::read_to_string(&file).unwrap()).unwrap(), comparison);
}

#[test]
fn a_limit_fails_what_is_beyond_it_with_its_whole_interval() {
    let folder = Folder::new();
    let a = measured(&folder, "a.json", TRUTH, &["--seed", "1"]);
    let b = measured(&folder, "b.json", "o_s=1.2us,o_r=2us,g=5us,L=7us", &["--seed", "2"]);

    let failing = run(&["compare", &a, &b, "--fail-on", "5%", "--format", "json"]);
    let (out, err) = (String::from_utf8(failing.stdout).unwrap(), String::from_utf8(failing.stderr).unwrap());
    assert_eq!(failing.status.code(), Some(1), "{err}");
    assert!(
        err.starts_with("error: larger by more than 5 %: o_s of sim at 32 B 1.") && err.lines().count() == 1,
        "{err}"
    );
    let comparison: Value = serde_json::from_str(&out).unwrap();
    let verdict = |name: &str| parameter(&comparison, name)["verdict"].as_str().unwrap().to_owned();
    assert_eq!(["o_s", "rtt", "g", "o_poll"].map(verdict), ["fail", "pass", "pass", "not_judged"]);

    // A poll of the simulated interface takes no time, so it has no ratio.
    assert!(doubts(&comparison["comparisons"][0]).contains(&"no_ratio"));
    let borderline = json(&[&a, &b, "--fail-on", "20 %"]);
    assert_eq!(parameter(&borderline, "o_s")["verdict"], "undecided");
    // A decrease passes any limit.
    let turned = json(&[&b, &a, "--fail-on", "0%"]);
    assert_eq!(parameter(&turned, "o_s")["change"], "smaller");
    assert_eq!(parameter(&turned, "o_s")["verdict"], "pass");
    let itself = json(&[&a, &a, "--fail-on", "0.5%"]);
    assert_eq!(
        (parameter(&itself, "rtt")["ratio"].as_f64(), &itself["interleaved"]),
        (Some(1.0), &true.into())
    );
}

#[test]
fn what_is_not_measured_is_shown_and_not_judged() {
    let folder = Folder::new();
    let bound = "o_s=4us,o_r=5us,g=2us,L=7us";
    let a = measured(&folder, "a.json", bound, &["--seed", "1"]);
    let b = measured(&folder, "b.json", "o_s=4us,o_r=9us,g=2us,L=7us", &["--seed", "2"]);
    let output = run(&["compare", &a, &b, "--fail-on", "20%", "--format", "json"]);
    let comparison: Value = serde_json::from_slice(&output.stdout).unwrap();
    let g = parameter(&comparison, "g");
    assert_eq!(
        (&g["a"]["status"], &g["ratio"], &g["verdict"]),
        (&"upper_bound".into(), &Value::Null, &"not_judged".into())
    );
    assert!(g["a"]["value"].as_f64().unwrap() > 8e3);
    let plateau = parameter(&comparison, "plateau");
    assert!((plateau["ratio"].as_f64().unwrap() / (13.0 / 9.0) - 1.0).abs() < 0.02);
    assert_eq!(plateau["verdict"], "not_judged");
    assert_eq!(parameter(&comparison, "o_r")["verdict"], "fail");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn layers_of_one_record_are_paired_by_launch() {
    let folder = Folder::new();
    let a = measured(&folder, "a.json", TRUTH, &["--seed", "1"]);
    let other = measured(&folder, "b.json", "o_s=1.2us,o_r=2us,g=5us,L=9us", &["--seed", "2"]);
    let other: Value = serde_json::from_str(&fs::read_to_string(other).unwrap()).unwrap();
    let file = folder.edited(&a, "both.json", |record| {
        let mut result = other["results"][0].clone();
        result["layer"] = "udp".into();
        record["results"].as_array_mut().unwrap().push(result);
    });
    let record = Record::from_json(&fs::read_to_string(&file).unwrap()).unwrap();
    let ratios = ratios(&record.results, 0.95);
    let rtt = ratios.iter().find(|ratio| ratio.parameter == "rtt").unwrap();
    assert_eq!((rtt.numerator.as_str(), rtt.denominator.as_str()), ("udp", "sim"));

    let (sim, udp) = (format!("{file}:sim"), format!("{file}:udp"));
    let comparison = json(&[&sim, &udp]);
    let found = parameter(&comparison, "rtt");
    let ci = rtt.ci.unwrap();
    assert_eq!(
        (found["ratio"].as_f64(), found["ratio_ci"][0].as_f64(), found["ratio_ci"][1].as_f64()),
        (Some(rtt.value), Some(ci.lo), Some(ci.hi))
    );
    assert_eq!(comparison["interleaved"], true);
    assert!(!doubts(&comparison).contains(&"not_interleaved"));
    assert_eq!(comparison["comparisons"][0]["b"]["layer"], "udp");
    // A layer named on one side applies to both.
    assert_eq!(json(&[&udp, &file])["comparisons"].as_array().unwrap().len(), 1);
    assert_eq!(json(&[&file, &file])["comparisons"].as_array().unwrap().len(), 2);
    assert_eq!(json(&[&a, &file])["only_in_b"], serde_json::json!(["udp logp 32 B"]));
    let line = error_of(&["compare", &format!("{file}:tcp"), &file], 2);
    assert!(line.contains("no layer 'tcp'") && line.contains("sim, udp"), "{line}");
}

#[test]
fn every_size_of_bulk_is_compared() {
    let folder = Folder::new();
    let measured = |name: &str, per_byte: &str| {
        let file = folder.path(name);
        let truth = format!("{TRUTH},G={per_byte},noise=0.02");
        let args = ["bulk", "--over", "sim", "--truth", &truth, "--largest", "64KiB", "--launches", "5"];
        stdout_of(&[&args[..], &["--max-time", "1s", "--out", &file]].concat());
        file
    };
    let (a, b) = (measured("a.json", "0.5ns/B"), measured("b.json", "0.6ns/B"));
    let comparison = json(&[&a, &b]);
    let parameters = comparison["comparisons"][0]["parameters"].as_array().unwrap();
    let of = |name: &str, size: u64| {
        let found = parameters.iter().find(|p| p["parameter"] == name && p["size_bytes"] == size);
        found.map(|p| p["ratio"].as_f64().unwrap()).unwrap()
    };
    // 10 µs, plus 65535 bytes of 0.5 or 0.6 ns.
    let large = (10e3 + 65_535.0 * 0.6) / (10e3 + 65_535.0 * 0.5);
    assert!((of("T", 65_536) / large - 1.0).abs() < 0.01 && (of("T", 1) - 1.0).abs() < 0.01);
    assert!((of("o_s", 65_536) - 1.0).abs() < 0.01 && of("g", 65_536) > 1.1);
    let per_byte = parameters.iter().find(|p| p["parameter"] == "G").unwrap();
    assert_eq!((&per_byte["unit"], &per_byte["ratio"]), (&"ns_per_byte".into(), &Value::Null));
    let line = String::from_utf8(run(&["compare", &a, &b, "--fail-on", "5%"]).stderr).unwrap();
    assert!(line.contains("T of sim at 65536 B 1.1"), "{line}");
}

#[test]
fn other_surroundings_are_doubts() {
    let folder = Folder::new();
    let a = measured(&folder, "a.json", TRUTH, &["--launches", "3", "--max-time", "1s"]);
    let b = folder.edited(&a, "b.json", |record| {
        let environment = &mut record["environment"];
        for field in ["host", "cpu_model", "kernel", "governor"] {
            environment[field] = "other".into();
        }
        record["version"] = "9.9".into();
        let result = &mut record["results"][0];
        (result["wait"], result["distance"], result["faults"]) =
            ("yield".into(), "far".into(), "loss=0.1".into());
        (result["dials"], result["profile"]) =
            ("latency=1us".into(), "repeat 9us\nat 0ns latency+9us\nat 9us latency+0ns\n".into());
    });
    let comparison = json(&[&a, &b]);
    let expected =
        ["host_differs", "cpu_model_differs", "kernel_differs", "governor_differs", "version_differs"];
    assert!(expected.iter().all(|name| doubts(&comparison).contains(name)), "{:?}", doubts(&comparison));
    let of_pair = doubts(&comparison["comparisons"][0]);
    for name in ["wait_differs", "distance_differs", "faults_differ", "dials_differ", "profiles_differ"] {
        assert!(of_pair.contains(&name), "{name}: {of_pair:?}");
    }
    assert!(comparison.to_string().contains("repeat 9us; at 0ns latency+9us; at 9us latency+0ns"));
}

/// Each of these settings changes what the figures of its verb are of, and was once not told.
#[test]
fn other_settings_of_a_verb_are_doubts() {
    let folder = Folder::new();
    let measured = |name: &str, args: &str| {
        let file = folder.path(name);
        let args: Vec<&str> = args.split(' ').collect();
        let common =
            ["--over", "sim", "--truth", TRUTH, "--launches", "1", "--max-time", "1s", "--out", &file];
        stdout_of(&[&args[..], &common].concat());
        file
    };
    for (verb, [a, b], doubt) in [
        ("bulk --largest 1KiB", ["--direction store", "--direction get"], "direction_differs"),
        ("contention", ["--procs 3", "--procs 4"], "procs_differ"),
    ] {
        let (a, b) = (measured("a.json", &format!("{verb} {a}")), measured("b.json", &format!("{verb} {b}")));
        let comparison = json(&[&a, &b]);
        let of_pair = doubts(&comparison["comparisons"][0]);
        assert!(of_pair.contains(&doubt), "{verb}: {of_pair:?}");
        assert!(!doubts(&json(&[&a, &a])["comparisons"][0]).contains(&doubt), "{verb}");
    }
}

#[test]
fn a_comparison_has_a_page() {
    let folder = Folder::new();
    let a = measured(&folder, "a.json", TRUTH, &["--launches", "6"]);
    let b = measured(&folder, "b.json", "o_s=3us,o_r=2us,g=5us,L=7us", &["--launches", "6"]);
    let page = folder.path("page.html");
    assert!(stdout_of(&["compare", &a, &b, "--out", &page]).is_empty());
    let page = fs::read_to_string(&page).unwrap();
    assert_eq!(stdout_of(&["compare", &a, &b, "--format", "html"]), page);
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"));
    for words in ["b.json against", "Larger in B: ", "data-series=\"ratios\"", "not interleaved"] {
        assert!(page.contains(words), "{words}");
    }
}

#[test]
fn bad_input_is_one_line_and_exit_code_2() {
    let folder = Folder::new();
    let a = measured(&folder, "a.json", TRUTH, &["--launches", "1"]);
    let other_size = measured(&folder, "b.json", TRUTH, &["--launches", "1", "--size", "64"]);
    let empty = folder.edited(&a, "empty.json", |record| record["results"] = Value::Array(Vec::new()));
    let text = folder.path("text.json");
    fs::write(&text, "hello").unwrap();
    let cases: &[(&[&str], &str)] = &[
        (&[], "<A>"),
        (&[&a], "<B>"),
        (&[&a, "/nonexistent.json"], "/nonexistent.json"),
        (&[&a, &text], "text.json"),
        (&[&a, &other_size], "sim logp 64 B"),
        (&[&a, &empty], "nothing"),
        (&[&format!("{a}:udp"), &a], "'udp'"),
        (&[&a, &a, "--fail-on", "5"], "as in 5%"),
        (&[&a, &a, "--fail-on", "-5%"], "as in 5%"),
        (&[&a, &a, "--fail-on", "much%"], "as in 5%"),
        (&[&a, &a, "--fail-on", "NaN%"], "as in 5%"),
        (&[&a, &a, "--confidence", "2"], "0.95"),
        (&[&a, &a, "--out", "/nonexistent/file"], "/nonexistent/file"),
    ];
    for (args, names) in cases {
        let line = error_of(&[&["compare"], *args].concat(), 2);
        assert!(line.contains(names), "{args:?}: {line}");
    }
}

#[test]
fn one_launch_has_no_interval_and_decides_nothing() {
    let folder = Folder::new();
    let a = measured(&folder, "a.json", TRUTH, &["--launches", "1"]);
    let b =
        measured(&folder, "b.json", "o_s=3us,o_r=2us,g=5us,L=7us", &["--launches", "1", "--max-time", "1s"]);
    let one = |from: &str, name: &str| {
        folder
            .edited(from, name, |record| record["results"][0]["launches"].as_array_mut().unwrap().truncate(1))
    };
    let (a, b) = (one(&a, "one-a.json"), one(&b, "one-b.json"));
    let comparison = json(&[&a, &b, "--fail-on", "5%"]);
    assert_eq!(parameter(&comparison, "o_s")["verdict"], "undecided");
    assert!(doubts(&comparison["comparisons"][0]).contains(&"few_launches"));
}
