//! The report in headless Chromium: it renders, prints nothing on the console, and is readable in windows of
//! every width. The tests are skipped with a message if Chromium is missing; `./check` installs it.

#[path = "../../../report/tests/support/mod.rs"]
mod support;

use crate::common::{alone, beside, stdout_of, wait};
use netdyno_measure::record::{Found, LayerResult, Record};
use netdyno_report::compare::{Side, Terms, compare};
use netdyno_report::html;
use std::path::Path;
use std::process::{Command, Output};

const CHROMIUM: &[&str] = &[
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--window-size=1280,3000",
];

fn chromium(folder: &Path, args: &[&str], page: &Path) -> Output {
    Command::new("timeout")
        .args(["120", "chromium"])
        .args(CHROMIUM)
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .args(args)
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap()
}

#[test]
fn the_report_renders_without_a_word_on_the_console() {
    let _alone = alone();
    if Command::new("chromium").arg("--version").output().is_err() {
        println!("SKIPPED: no Chromium");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (real, sim, page) = (path("real.json"), path("sim.json"), path("report.html"));
    let args = [
        "logp",
        "--over",
        "am+shm,am+udp,udp,tcp",
        "--launches",
        "6",
        "--max-time",
        "600ms",
        "--wait",
        wait(),
    ];
    stdout_of(&[&args[..], &["--out", real.to_str().unwrap()]].concat());
    let truth = "o_s=1us,o_r=2us,g=5us,L=7us,noise=0.05";
    stdout_of(&["logp", "--over", "sim", "--truth", truth, "--out", sim.to_str().unwrap()]);
    stdout_of(&["report", real.to_str().unwrap(), sim.to_str().unwrap(), "--out", page.to_str().unwrap()]);

    let shot = path("report.png");
    let rendered = chromium(folder.path(), &[&format!("--screenshot={}", shot.display())], &page);
    let stderr = String::from_utf8_lossy(&rendered.stderr);
    assert!(!stderr.contains("CONSOLE"), "{stderr}");
    // An empty page of that size has a few kilobytes.
    assert!(shot.metadata().unwrap().len() > 50_000);

    let dom = chromium(folder.path(), &["--dump-dom"], &page);
    let dom = String::from_utf8_lossy(&dom.stdout);
    for layer in ["am+shm", "am+udp", "udp", "tcp", "sim"] {
        assert!(dom.contains(layer), "{layer}");
    }
    assert!(!dom.contains("NaN"));
}

/// Checks that the test above can fail: an error in a script reaches the console.
#[test]
fn an_error_in_a_script_is_seen() {
    let _beside = beside();
    if Command::new("chromium").arg("--version").output().is_err() {
        println!("SKIPPED: no Chromium");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("broken.html");
    std::fs::write(&page, "<!DOCTYPE html><script>nothing()</script>").unwrap();
    let rendered = chromium(folder.path(), &["--dump-dom"], &page);
    assert!(String::from_utf8_lossy(&rendered.stderr).contains("CONSOLE"));
}

/// Widths of the windows of a telephone, a tablet and a screen.
const WIDTHS: [u32; 3] = [400, 800, 1400];

/// Returns a page of each verb, for simulated layers.
fn pages() -> Vec<(&'static str, String)> {
    let page = |results: Vec<LayerResult>| html::render(&[support::record(results)]);
    let overlap = [
        support::overlap_layer("am+shm", "o_s=1us,o_r=2us,g=50ns,L=2us,G=0.5ns/B,steal=0.1ns/B", 6),
        support::overlap_layer("tcp", "o_s=2us,o_r=3us,g=1us,L=8us,G=0.8ns/B,helper=0.6ns/B,noise=0.05", 6),
    ];
    let ways = [
        support::completion_layer("vi+shm", "spin", "o_s=1us,o_r=1us,g=1us,L=2us,G=0.6ns/B", 6),
        support::completion_layer("vi+shm", "block", "o_s=1us,o_r=8us,g=1us,L=2us,G=0.6ns/B,noise=0.05", 6),
        support::completion_layer("am+udp", "spin", "o_s=2us,o_r=2us,g=2us,L=9us,G=1ns/B,window=4", 6),
    ];
    let dials: [support::Dial<'_>; 2] = [
        ("latency", &[10e3, 20e3, 40e3, 100e3], true, &|ns| 1.0 + 0.1 * ns / 31e3),
        ("gap-per-byte", &[0.5, 1.0, 2.0, 4.0], false, &|ns| 1.0 + 0.02 * ns),
    ];
    let memory = "register=1us+50ns/page,fault=250ns,cached=100ns,kept=on";
    let (logp, bulk) = (support::various(), support::record(vec![changing_twice()]));
    vec![
        ("logp", html::render(std::slice::from_ref(&logp))),
        ("bulk", html::render(std::slice::from_ref(&bulk))),
        ("contention", page(vec![support::contention_layer("am+shm", 6)])),
        ("contention of many", page(vec![support::contention_layer("am+shm", 40)])),
        ("overlap", page(overlap.into())),
        ("completion", page(ways.into())),
        ("registration", page(vec![support::registration_layer("ofi:tcp", memory, 6)])),
        ("validate", page(vec![support::validation_layer("am+shm")])),
        ("sweep", html::of_sweep(&support::sweep(&dials, 0.02, 7))),
        (
            "compare",
            compared(&logp, &support::record(vec![support::layer("udp", "o_s=2us,o_r=2us,g=1us,L=4us", 9)])),
        ),
        (
            "compare bulk",
            compared(
                &bulk,
                &support::record(vec![support::bulk_layer("sim", "o_s=1us,o_r=2us,g=5us,L=8us", 6)]),
            ),
        ),
    ]
}

/// Returns messages of every size over a layer whose protocol changes at two adjacent sizes.
fn changing_twice() -> LayerResult {
    let truth = "o_s=1us,o_r=2us,g=5us,L=7us,G=0.5ns/B,change=16KiB,change_G=0.25ns/B,change_L=20us";
    let mut result = support::bulk_layer("sim", truth, 6);
    let Found::Bulk(bulk) = &mut result.found else { panic!("another verb") };
    let first = bulk.changes[0];
    bulk.changes.push(netdyno_measure::bulk::record::Change { at_most_bytes: 26 << 10, ..first });
    result
}

fn compared(a: &Record, b: &Record) -> String {
    let side = |name, record| Side { name, record, layer: None };
    let terms = Terms { confidence: 0.95, fail_on: Some(0.05) };
    html::of_comparison(&compare(side("before.json", a), side("after.json", b), terms).unwrap())
}

/// No page is wider than its window. No label of a chart is too small, cut off, or on top of another label or
/// an axis. No curve runs backwards.
#[test]
fn every_page_can_be_read_at_every_width() {
    let _beside = beside();
    if Command::new("chromium").arg("--version").output().is_err() {
        println!("SKIPPED: no Chromium");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut frames = String::new();
    for (nth, (verb, page)) in pages().iter().enumerate() {
        std::fs::write(folder.path().join(format!("{nth}.html")), page).unwrap();
        for width in WIDTHS {
            frames +=
                &format!("<iframe title='{verb}' width='{width}' height='900' src='{nth}.html'></iframe>");
        }
    }
    let looks = folder.path().join("looks.html");
    let script = include_str!("../common/layout.js");
    let text = format!("<!DOCTYPE html><meta charset='utf-8'><body>{frames}<script>{script}</script>");
    std::fs::write(&looks, text).unwrap();
    let looked = chromium(folder.path(), &["--allow-file-access-from-files", "--dump-dom"], &looks);
    let dom = String::from_utf8_lossy(&looked.stdout);
    let report = dom.split_once("<pre>").and_then(|(_, rest)| rest.split_once("</pre>"));
    let report = report.unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&looked.stderr))).0;
    let (charts, found) = report.split_once('\n').unwrap_or((report, ""));
    assert!(found.is_empty(), "{found}");
    let charts: usize = charts.strip_suffix(" charts").unwrap().parse().unwrap();
    assert!(charts >= 50 * WIDTHS.len(), "{charts}");
}
