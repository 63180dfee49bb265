//! Measures the run time of the command: the bare command, and each layer alone to 2 % at 95 % confidence.
//! Goals: two minutes, and 15 s on a quiet machine.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot run has nothing to report")]

use netdyno_measure::record::Record;
use std::process::{Command, Stdio};
use std::time::Instant;

fn netdyno(args: &[&str]) -> (String, f64) {
    let began = Instant::now();
    let output =
        Command::new(env!("CARGO_BIN_EXE_netdyno")).args(args).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (String::from_utf8(output.stdout).unwrap(), began.elapsed().as_secs_f64())
}

fn main() {
    for layer in ["am+shm", "am+udp", "udp", "tcp"] {
        let (json, seconds) = netdyno(&["logp", "--over", layer, "--format", "json"]);
        let record = Record::from_json(&json).unwrap();
        let result = &record.results[0];
        let reached = !result.doubts.iter().any(|doubt| doubt.name == "imprecise");
        println!(
            "{layer:<8} {seconds:>6.1} s, {} launches, 2 % at 95 % {}",
            result.launches(),
            if reached { "reached" } else { "not reached" }
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let (_, seconds) = netdyno(&["--dir", folder.path().to_str().unwrap()]);
    println!("main job {seconds:>6.1} s");
}
