//! `netdyno guard`: a process beside a run that outlives the command. If the command is killed, the guard
//! ends the run: its processes, its files in shared memory, its folder.

use crate::terminal::fault::Fault;
use clap::Args;
use netdyno_apparatus_fi::page::FOLDER;
use netdyno_job::shared_files::{SharedFiles, processes};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use tempfile::TempDir;

/// Timeout for processes to end by themselves or after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);
/// Timeout for the kernel to end processes after SIGKILL.
const GRACE_KILLED: Duration = Duration::from_secs(5);
/// Interval between two checks for processes of the run.
const LOOK: Duration = Duration::from_millis(20);

/// End a run whose command was killed; started by netdyno itself
#[derive(Debug, Args)]
pub struct GuardArgs {
    /// The folder of the run
    folder: PathBuf,
}

/// Waits for the end of the command, which closes standard input; then ends the run.
pub fn run(args: &GuardArgs) -> Result<(), Fault> {
    let began = SystemTime::now();
    // Even a failed read means that the command has ended.
    let _ = io::stdin().read(&mut [0]);
    end_processes(&args.folder, began);
    // The folder may be gone already.
    let _ = fs::remove_dir_all(&args.folder);
    Ok(())
}

/// The folder of a run, with a guard process. A drop removes both.
#[derive(Debug)]
pub struct GuardedFolder {
    folder: TempDir,
    began: SystemTime,
    _guard: Guard,
}

impl GuardedFolder {
    /// Creates a folder among the temporary files.
    ///
    /// # Errors
    /// Returns an error if the system cannot create the folder or start the guard.
    pub fn new() -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("netdyno-run-").tempdir()?;
        let guard = Guard::of(folder.path())?;
        Ok(Self { folder, began: SystemTime::now(), _guard: guard })
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the files in shared memory that the processes of this run have now.
    pub fn shared_files(&self) -> SharedFiles {
        shared_files(&processes_of(self.path()), self.began)
    }

    /// Ends the processes of this run that are left, within a bounded time, and removes their files in shared memory.
    pub fn end(&self) {
        if !processes_of(self.path()).is_empty() {
            end_processes(self.path(), self.began);
        }
    }

    /// Waits until the processes of this run have ended, within a bounded time, and no longer than `goes_on` says.
    pub fn await_end(&self, goes_on: impl Fn() -> bool) {
        await_end(self.path(), goes_on);
    }
}

/// The guard process. A drop ends it, without ending the run.
#[derive(Debug)]
struct Guard(Child);

impl Guard {
    fn of(folder: &Path) -> io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("guard").arg(folder).env_remove(FOLDER);
        // Without standard output, a reader of this command's output does not wait for the guard. In its own
        // process group, the guard survives a signal to the command's group.
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        command.spawn().map(Self)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the processes of a run: those with its folder in their environment. Children inherit it, so they
/// are found even after their parent has ended.
fn processes_of(folder: &Path) -> Vec<u32> {
    let variable = [FOLDER.as_bytes(), b"=", folder.as_os_str().as_bytes()].concat();
    let is_of_run = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|entry| entry == variable)
    };
    processes().into_iter().filter(is_of_run).collect()
}

fn shared_files(processes: &[u32], since: SystemTime) -> SharedFiles {
    let mut all = SharedFiles::default();
    processes.iter().for_each(|&pid| all.add(SharedFiles::of_process(pid, since)));
    all
}

/// Ends the processes of a run within a bounded time, and removes their files in shared memory.
fn end_processes(folder: &Path, since: SystemTime) {
    let left = processes_of(folder);
    let files = shared_files(&left, since);
    send(&left, Signal::TERM);
    await_end(folder, || true);
    let until = Instant::now() + GRACE_KILLED;
    loop {
        let left = processes_of(folder);
        if left.is_empty() || Instant::now() > until {
            break;
        }
        // This includes processes that were started meanwhile.
        send(&left, Signal::KILL);
        thread::sleep(LOOK);
    }
    files.remove_unused();
}

/// Waits until the processes of a run have ended, within a bounded time, and no longer than `goes_on` says.
fn await_end(folder: &Path, goes_on: impl Fn() -> bool) {
    let until = Instant::now() + GRACE;
    while goes_on() && Instant::now() < until && !processes_of(folder).is_empty() {
        thread::sleep(LOOK);
    }
}

fn send(processes: &[u32], signal: Signal) {
    for pid in processes.iter().filter_map(|&pid| Pid::from_raw(i32::try_from(pid).ok()?)) {
        // The process may have ended already.
        let _ = kill_process(pid, signal);
    }
}
