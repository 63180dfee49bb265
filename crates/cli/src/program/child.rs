//! The program of a run as a child process: its start, its end, its exit code.

use crate::program::guard::GuardedFolder;
use crate::program::leftovers::Leftovers;
use crate::terminal::fault::Fault;
use crate::terminal::interrupt::Interrupt;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Interval between two checks for a signal, or for new files in shared memory, while the program runs.
const CHECK: Duration = Duration::from_millis(20);

/// Time in which a program that has taken too long must end after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);

/// A signal so long after the first one kills the program. One that comes earlier may be the same, sent to all
/// processes by a terminal and once more by a launcher.
const AFTERTHOUGHT: Duration = Duration::from_secs(1);

/// Starts a program. An error is that of [`cannot_run`].
pub fn spawn(command: &mut Command) -> Result<Child, Fault> {
    // The program stays in this process group, so that Ctrl-C reaches both. `wait` passes on a signal to this
    // process alone.
    command.spawn().map_err(|error| cannot_run(&command.get_program().to_string_lossy(), &error))
}

/// Returns the error of a program that the system does not start, with the exit code of `timeout`(1): 127 if it is not
/// found, else 126; 125 if the system lacks room.
pub fn cannot_run(program: &str, error: &io::Error) -> Fault {
    let code = match Errno::from_io_error(error) {
        Some(Errno::NOENT) => 127,
        // The system has no room for another process, whatever the program is.
        Some(Errno::MFILE | Errno::NFILE | Errno::AGAIN | Errno::NOMEM) => 125,
        _ => 126,
    };
    Fault::Ended(code, format!("cannot run '{program}': {error}"))
}

/// Returns what a program has written to a file, from its beginning.
pub fn said(output: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    output.rewind()?;
    output.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The end of a program.
pub struct Ended {
    /// Its exit status.
    pub status: ExitStatus,
    /// When it ended; what it left behind is removed after that.
    pub at: Instant,
}

/// Waits for the program of a run to end. Passes a signal to this command on to the program as SIGTERM, and a later one as
/// SIGKILL. Ends the processes that the program leaves behind, and removes its files in shared memory. A program that does
/// not end within `limit`, if there is one, is ended, which is an error.
pub fn wait(
    mut child: Child,
    run: &GuardedFolder,
    interrupt: &Interrupt,
    limit: Option<Duration>,
) -> Result<Ended, Fault> {
    let lost = |error: &dyn std::fmt::Display| Fault::Failed(format!("cannot wait for the program: {error}"));
    let pid = Pid::from_child(&child);
    let (ended, end) = mpsc::channel();
    thread::spawn(move || {
        let status = child.wait();
        ended.send((status, Instant::now()))
    });
    let (mut told, mut leftovers) = (None::<Instant>, Leftovers::of(run));
    let late = |time: Duration| Fault::Failed(format!("the program has not ended within {time:?}"));
    let mut until = limit.map(|limit| Instant::now() + limit);
    loop {
        match end.recv_timeout(CHECK) {
            Ok((status, at)) => {
                if told.is_none() {
                    // Its processes may take a moment to end.
                    run.await_end(|| interrupt.check().is_ok());
                }
                // A shell ends by the signal without what it has started, and a launcher may end before its ranks.
                run.end();
                leftovers.remove();
                let is_late = told.is_some() && interrupt.signal().is_none();
                return match limit.filter(|_| is_late) {
                    Some(limit) => Err(late(limit)),
                    None => status.map(|status| Ended { status, at }).map_err(|error| lost(&error)),
                };
            }
            Err(RecvTimeoutError::Timeout)
                if interrupt.has_more() || told.is_none() && interrupt.check().is_err() =>
            {
                leftovers.note_mapped();
                let is_second = told.is_some_and(|told| told.elapsed() > AFTERTHOUGHT);
                end_by(pid, if is_second { Signal::KILL } else { Signal::TERM });
                told = told.or(Some(Instant::now()));
            }
            Err(RecvTimeoutError::Timeout) if until.is_some_and(|until| Instant::now() > until) => {
                leftovers.note_mapped();
                end_by(pid, if told.is_some() { Signal::KILL } else { Signal::TERM });
                (told, until) = (told.or(Some(Instant::now())), Some(Instant::now() + GRACE));
            }
            Err(RecvTimeoutError::Timeout) => leftovers.note(),
            Err(RecvTimeoutError::Disconnected) => return Err(lost(&"its thread is gone")),
        }
    }
}

/// Sends a signal to the program, and lets it go on if it was stopped, as timeout(1) does. It may have ended.
fn end_by(pid: Pid, signal: Signal) {
    let _ = kill_process(pid, signal);
    let _ = kill_process(pid, Signal::CONT);
}
