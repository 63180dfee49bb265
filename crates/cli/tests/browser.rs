//! The report in headless Chromium: it renders, and says nothing on the console. Skipped
//! with a word where there is no Chromium; `./check` installs it.

#![allow(clippy::unwrap_used, reason = "a test")]

mod common;

use common::{stdout_of, wait};
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
    if Command::new("chromium").arg("--version").output().is_err() {
        println!("SKIPPED: no Chromium");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (real, sim, page) = (path("real.json"), path("sim.json"), path("report.html"));
    let args =
        ["logp", "--over", "am+shm,am+udp,udp,tcp", "--launches", "6", "--max-time", "2s", "--wait", wait()];
    stdout_of(&[&args[..], &["--out", real.to_str().unwrap()]].concat());
    let truth = "o_s=1us,o_r=2us,g=5us,L=7us,noise=0.05";
    stdout_of(&["logp", "--over", "sim", "--truth", truth, "--out", sim.to_str().unwrap()]);
    stdout_of(&["report", real.to_str().unwrap(), sim.to_str().unwrap(), "--out", page.to_str().unwrap()]);

    let shot = path("report.png");
    let rendered = chromium(folder.path(), &[&format!("--screenshot={}", shot.display())], &page);
    let stderr = String::from_utf8_lossy(&rendered.stderr);
    assert!(!stderr.contains("CONSOLE"), "{stderr}");
    // An empty page of that size is a few kilobytes.
    assert!(shot.metadata().unwrap().len() > 50_000);

    let dom = chromium(folder.path(), &["--dump-dom"], &page);
    let dom = String::from_utf8_lossy(&dom.stdout);
    for layer in ["am+shm", "am+udp", "udp", "tcp", "sim"] {
        assert!(dom.contains(layer), "{layer}");
    }
    assert!(!dom.contains("NaN"));
}

/// That the test above can fail: an error in a script does reach the console.
#[test]
fn an_error_in_a_script_is_seen() {
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
