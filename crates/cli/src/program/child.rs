//! The program of a run as a child process: its start, its end, its exit code.

use crate::program::guard::GuardedFolder;
use crate::terminal::fault::Fault;
use crate::terminal::interrupt::Interrupt;
use netdyno_job::shared_files::SharedFiles;
use rustix::process::{Pid, Signal, kill_process};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// How often a signal is looked for while the program runs.
const LOOK: Duration = Duration::from_millis(20);

/// After this time, and after twice as long each time, the program's files in shared memory are looked
/// for: rarely, as each look takes milliseconds of a processor.
const FIRST_LOOK: Duration = Duration::from_millis(250);

/// Starts a program; where that fails, with the exit code that `timeout` would give.
pub fn spawn(command: &mut Command) -> Result<Child, Fault> {
    // Ctrl-C of a terminal is for both; whoever ends the command alone ends the program as well.
    command.spawn().map_err(|error| {
        let code = if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
        Fault::Ended(code, format!("cannot run '{}': {error}", command.get_program().to_string_lossy()))
    })
}

/// The exit code that a shell would give.
pub fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(125)
}

/// Waits for the program of a run to end; a signal to this command goes on to it, and what the program
/// then leaves in shared memory is removed.
pub fn wait(mut child: Child, run: &GuardedFolder, interrupt: &Interrupt) -> Result<ExitStatus, Fault> {
    let lost = |error: &dyn std::fmt::Display| Fault::Failed(format!("cannot wait for the program: {error}"));
    let pid = Pid::from_child(&child);
    let (ended, end) = mpsc::channel();
    thread::spawn(move || ended.send(child.wait()));
    let (mut is_told, mut shared) = (false, SharedFiles::default());
    let (began, mut look_at) = (Instant::now(), FIRST_LOOK);
    loop {
        match end.recv_timeout(LOOK) {
            Ok(status) => {
                if interrupt.check().is_err() {
                    shared.remove_unused();
                }
                return status.map_err(|error| lost(&error));
            }
            Err(RecvTimeoutError::Timeout) if !is_told && interrupt.check().is_err() => {
                is_told = true;
                shared.add(run.shared_files());
                let _ = kill_process(pid, Signal::TERM);
            }
            // A terminal's Ctrl-C ends the ranks before this side has looked.
            Err(RecvTimeoutError::Timeout) if began.elapsed() > look_at => {
                look_at *= 2;
                shared.add(run.shared_files());
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(lost(&"its thread is gone")),
        }
    }
}
