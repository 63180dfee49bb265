//! Runs the built command.

#![allow(dead_code, reason = "each test binary uses a part")]

pub mod bench;
pub mod folder;
pub mod mpi;
pub mod network;
pub mod schemas;
pub mod served;
pub mod traces;

use netdyno_measure::record::Record;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag::register_conditional_default;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

/// Two concurrent measurements take each other's processors.
static PROCESSORS: RwLock<()> = RwLock::new(());

/// Gives the processes that this one starts the default of the signals that end them. A shell has what it starts with `&`
/// ignore some of them, and so would netdyno.
fn end_by_signals() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // A handler is not inherited. This one does what the system does without it.
            register_conditional_default(signal, Arc::new(AtomicBool::new(true))).unwrap();
        }
    });
}

/// Returns a guard beside which no other measuring test runs.
pub fn alone() -> RwLockWriteGuard<'static, ()> {
    end_by_signals();
    // A failed test leaves nothing behind, so a poisoned lock is ignored.
    PROCESSORS.write().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a guard beside which other tests run. What such a test asserts holds on a busy machine.
pub fn beside() -> RwLockReadGuard<'static, ()> {
    end_by_signals();
    PROCESSORS.read().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the built command.
pub fn netdyno(args: &[&str]) -> Command {
    end_by_signals();
    let mut command = Command::new(env!("CARGO_BIN_EXE_netdyno"));
    command.args(args).stdin(Stdio::null());
    command
}

/// Runs the built command to its end.
pub fn run(args: &[&str]) -> Output {
    netdyno(args).output().unwrap()
}

/// Asserts that each layer has this many launches, or fewer because the time was up.
pub fn assert_launched(record: &Record, launches: usize) {
    let were_fewer = record.doubts.iter().any(|doubt| doubt.name == "fewer_launches");
    for result in &record.results {
        assert!(result.launches_in_all() >= launches || were_fewer, "{}", result.layer);
    }
}

/// Removes the result of the launches before the one that failed, if they were enough for one. It has the error that the
/// command has told.
pub fn remove_result_before(out: &Path, stderr: &str) {
    let Ok(text) = fs::read_to_string(out) else { return };
    let record = Record::from_json(&text).unwrap();
    assert!(record.failed.is_some_and(|error| stderr.contains(&error)), "{stderr}");
    fs::remove_file(out).unwrap();
}

/// Returns the standard output of a run that must succeed.
pub fn stdout_of(args: &[&str]) -> String {
    let output = run(args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the error of a run that must fail with `code`: one line on standard error, nothing on standard
/// output.
pub fn error_of(args: &[&str], code: i32) -> String {
    let output = run(args);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {stderr}");
    assert!(output.stdout.is_empty(), "{args:?}");
    assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr}");
    assert!(stderr.starts_with("error: "), "{args:?}: {stderr}");
    stderr
}

/// Returns the wait policy for this machine, because tests also run on a single processor.
pub fn wait() -> &'static str {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    if processors > 1 { "spin" } else { "yield" }
}

/// Reports whether the first thread of a process has had a processor for so long. A worker's start takes 10 to 20 ms of it,
/// and that of a process with MPI up to 100 ms.
pub fn has_worked(pid: u32, time: Duration) -> bool {
    let schedstat = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
    let ran_ns = schedstat.split_whitespace().next().and_then(|ns| ns.parse().ok());
    ran_ns.is_some_and(|ns| Duration::from_nanos(ns) >= time)
}

/// Reports whether a process is a worker, as the command starts for a launch.
pub fn is_worker(pid: u32) -> bool {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut words = words.split(|byte| *byte == 0);
    words.next().is_some_and(|name| name.ends_with(b"netdyno")) && words.next() == Some(b"worker")
}

/// Returns the worker processes that `parent` has started.
pub fn workers_of(parent: u32) -> Vec<u32> {
    let mut workers = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let Ok(stat) = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")) else {
            continue;
        };
        // The fields after the name in parentheses are the state and the parent.
        let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        let (state, of) = (fields.next(), fields.next());
        if of == Some(&parent.to_string()) && state != Some("Z") {
            workers.push(pid);
        }
    }
    workers
}

/// Returns the names of the files in a folder.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
