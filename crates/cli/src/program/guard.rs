//! `netdyno guard`: a process beside a run that outlives the command. Where the command is killed, the
//! guard ends the run: its processes, its files in shared memory, its folder.

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

/// How long processes may take to end that are asked to (SIGTERM).
const GRACE: Duration = Duration::from_secs(2);
/// How long the kernel may take to end those that are killed.
const GRACE_KILLED: Duration = Duration::from_secs(5);
/// How often they are looked for meanwhile.
const LOOK: Duration = Duration::from_millis(20);

/// `netdyno guard`.
#[derive(Debug, Args)]
pub struct GuardArgs {
    /// The folder of the run
    folder: PathBuf,
}

/// Waits for the end of the command, which closes standard input; then ends the run.
pub fn run(args: &GuardArgs) -> Result<(), Fault> {
    let began = SystemTime::now();
    // However the connection ends, the command has.
    let _ = io::stdin().read(&mut [0]);
    end_processes(&args.folder, began);
    // It may be gone already.
    let _ = fs::remove_dir_all(&args.folder);
    Ok(())
}

/// The folder of a run, with a guard beside it. Both are gone when this is dropped.
#[derive(Debug)]
pub struct GuardedFolder {
    folder: TempDir,
    began: SystemTime,
    _guard: Guard,
}

impl GuardedFolder {
    /// Makes a folder among those of temporary files.
    ///
    /// # Errors
    /// The system gives no folder, or no process to guard it.
    pub fn new() -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("netdyno-run-").tempdir()?;
        let guard = Guard::of(folder.path())?;
        Ok(Self { folder, began: SystemTime::now(), _guard: guard })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The files in shared memory that the processes of this run have now.
    pub fn shared_files(&self) -> SharedFiles {
        shared_files(&processes_of(self.path()), self.began)
    }
}

/// The process. It is ended, without a look at the run, when this is dropped.
#[derive(Debug)]
struct Guard(Child);

impl Guard {
    fn of(folder: &Path) -> io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("guard").arg(folder).env_remove(FOLDER);
        // A reader of this command's output must not wait for the guard to end; a signal to the command's process
        // group must not end the guard.
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        command.spawn().map(Self)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // What has ended already cannot be ended, and need not be.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The processes of a run: those that have its folder in their environment. That stays true of the
/// children of one that has ended.
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

/// Ends the processes of a run in a bounded time, and removes what they leave in shared memory.
fn end_processes(folder: &Path, since: SystemTime) {
    let left = processes_of(folder);
    let files = shared_files(&left, since);
    send(&left, Signal::TERM);
    let mut until = Instant::now() + GRACE;
    while Instant::now() < until && !processes_of(folder).is_empty() {
        thread::sleep(LOOK);
    }
    until = Instant::now() + GRACE_KILLED;
    loop {
        let left = processes_of(folder);
        if left.is_empty() || Instant::now() > until {
            break;
        }
        // One that has been started meanwhile as well.
        send(&left, Signal::KILL);
        thread::sleep(LOOK);
    }
    files.remove_unused();
}

fn send(processes: &[u32], signal: Signal) {
    for pid in processes.iter().filter_map(|&pid| Pid::from_raw(i32::try_from(pid).ok()?)) {
        // What has ended already hears nothing.
        let _ = kill_process(pid, signal);
    }
}
