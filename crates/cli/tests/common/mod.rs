//! Running the built command.

#![allow(dead_code, reason = "each test file uses a part")]

use netdyno_measure::record::Record;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};

/// Held while a command runs: two that measure at once take each other's processors.
static PROCESSORS: Mutex<()> = Mutex::new(());

/// The built command.
pub fn netdyno(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_netdyno"));
    command.args(args).stdin(Stdio::null());
    command
}

/// Runs the built command to its end, and no other meanwhile.
pub fn run(args: &[&str]) -> Output {
    alone(&mut netdyno(args))
}

/// Runs a command to its end, and no other that measures meanwhile.
pub fn alone(command: &mut Command) -> Output {
    // A test that failed has left nothing behind.
    let _alone = PROCESSORS.lock().unwrap_or_else(PoisonError::into_inner);
    command.output().unwrap()
}

/// There were so many launches of each layer, or fewer because the time was up.
pub fn assert_launched(record: &Record, launches: usize) {
    let were_fewer = record.doubts.iter().any(|doubt| doubt.name == "fewer_launches");
    for result in &record.results {
        assert!(result.launches_in_all() >= launches || were_fewer, "{}", result.layer);
    }
}

/// Standard output of a run that must succeed.
pub fn stdout_of(args: &[&str]) -> String {
    let output = run(args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// What a run that must fail with `code` said: one line on standard error, nothing on
/// standard output.
pub fn error_of(args: &[&str], code: i32) -> String {
    let output = run(args);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {stderr}");
    assert!(output.stdout.is_empty(), "{args:?}");
    assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr}");
    assert!(stderr.starts_with("error: "), "{args:?}: {stderr}");
    stderr
}

/// Way to wait that suits the machine: tests have to run on a single processor too.
pub fn wait() -> &'static str {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    if processors > 1 { "spin" } else { "yield" }
}

/// Processes, other than this one, that were started from the built command as workers
/// of `parent`.
pub fn workers_of(parent: u32) -> Vec<u32> {
    let mut workers = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let Ok(stat) = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")) else {
            continue;
        };
        // After the name in parentheses: state, parent.
        let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        let (state, of) = (fields.next(), fields.next());
        if of == Some(&parent.to_string()) && state != Some("Z") {
            workers.push(pid);
        }
    }
    workers
}
