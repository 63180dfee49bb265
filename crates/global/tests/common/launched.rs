//! A job that a launcher has started, whatever it is: `netdyno launch`, or `mpiexec`.

use super::installed::Installed;
use super::shared_memory::{self, Shared};
use super::work;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Only a job that never begins or ends takes this long.
const TOO_LONG: Duration = Duration::from_secs(120);

/// A job of an installed program. A drop kills its launcher and its ranks.
pub struct Launched<'a> {
    installed: &'a Installed,
    launcher: Child,
    /// The files of its standard output and its standard error.
    streams: tempfile::TempDir,
}

/// The end of a job.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub output: String,
    pub errors: String,
}

impl<'a> Launched<'a> {
    /// Starts the launcher.
    pub fn start(installed: &'a Installed, mut command: Command) -> Self {
        installed.prepare(&mut command);
        let streams = tempfile::tempdir().unwrap();
        let stream = |name| File::create(streams.path().join(name)).unwrap();
        command.stdin(Stdio::null()).stdout(stream("output")).stderr(stream("errors"));
        Self { installed, launcher: command.spawn().unwrap(), streams }
    }

    /// Waits until so many ranks have joined and worked for a while. Returns their processes.
    pub fn work(&mut self, ranks: usize) -> Vec<u32> {
        let mut processes = Vec::new();
        self.await_that("the ranks do not work", |job| {
            processes = (0..ranks).filter_map(|rank| job.installed.process_of(rank)).collect();
            processes.len() == ranks && processes.iter().all(|process| work::is_done(*process))
        });
        processes
    }

    /// Waits until something has come about. The launcher runs meanwhile.
    pub fn await_that(&mut self, problem: &str, mut has_come: impl FnMut(&Self) -> bool) {
        let until = Instant::now() + TOO_LONG;
        while !has_come(self) {
            let end = self.launcher.try_wait().unwrap();
            assert!(Instant::now() < until && end.is_none(), "{problem}: {end:?}: {}", self.errors());
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Returns what the job has written to its standard error so far.
    pub fn errors(&self) -> String {
        self.read("errors")
    }

    fn read(&self, name: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.streams.path().join(name)).unwrap()).into_owned()
    }

    /// Waits for the end of the launcher and of the ranks.
    pub fn end(mut self) -> Ended {
        let until = Instant::now() + TOO_LONG;
        let status = loop {
            if let Some(status) = self.launcher.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < until, "the job does not end: {}", self.errors());
            thread::sleep(Duration::from_millis(5));
        };
        while !self.installed.processes().is_empty() && Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
        Ended { status, output: self.read("output"), errors: self.errors() }
    }
}

impl Drop for Launched<'_> {
    fn drop(&mut self) {
        // Both fail if the launcher was waited for already.
        let _ = self.launcher.kill();
        let _ = self.launcher.wait();
        self.installed.processes().into_iter().for_each(kill);
    }
}

/// Kills a process that may have ended.
pub fn kill(process: u32) {
    if let Some(process) = i32::try_from(process).ok().and_then(Pid::from_raw) {
        let _ = kill_process(process, Signal::KILL);
    }
}

/// Kills a rank of so many once all of them work. Returns the end of the job, and the shared memory that each rank had.
pub fn kill_one(
    installed: &Installed,
    command: Command,
    ranks: usize,
    victim: usize,
) -> (Ended, Vec<Shared>) {
    let mut job = Launched::start(installed, command);
    let processes = job.work(ranks);
    let shared: Vec<Shared> = processes.iter().map(|process| shared_memory::of(*process)).collect();
    assert!(shared.iter().all(|shared| !shared.is_empty()), "a rank has no segment: {shared:?}");
    kill(processes[victim]);
    (job.end(), shared)
}
