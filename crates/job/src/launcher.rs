//! External launchers, such as mpiexec and srun, that start processes on this host and others.

use crate::place;
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsStr;
use std::fmt;
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use thiserror::Error;

/// Placeholder for the number of processes in the text of a launcher.
pub const NUMBER: &str = "{n}";
/// Time in which a launcher must end after its processes have ended.
const GRACE: Duration = Duration::from_secs(3);
/// Time in which a launcher must end after SIGTERM.
const GRACE_ASKED: Duration = Duration::from_secs(2);
/// Number of output lines that are kept. The last lines explain why the launcher ended.
const LINES_KEPT: usize = 40;
/// Number of these lines that fit on one line for the user.
const LINES_TOLD: usize = 3;

/// Reports why text is not a valid launcher.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LauncherError {
    /// The quotes of the text do not match.
    #[error("its quotes do not match")]
    Quotes,
    /// The text has no placeholder for the number of processes.
    #[error("it must say where the number of processes goes: as in 'mpiexec -n {{n}}'")]
    NoNumber,
}

/// A command that starts a given number of processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launcher {
    text: String,
    words: Vec<String>,
}

impl FromStr for Launcher {
    type Err = LauncherError;

    fn from_str(text: &str) -> Result<Self, LauncherError> {
        let words = shlex::split(text).ok_or(LauncherError::Quotes)?;
        let has_number = words.iter().skip(1).any(|word| word.contains(NUMBER));
        if has_number { Ok(Self { text: text.into(), words }) } else { Err(LauncherError::NoNumber) }
    }
}

impl fmt::Display for Launcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Launcher {
    /// Returns the launcher's program name.
    pub fn program(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    /// Returns the command that starts `procs` processes of `program` with its arguments.
    pub fn command(&self, procs: usize, program: &Command) -> Command {
        let mut words = self.words.iter().map(|word| word.replace(NUMBER, &procs.to_string()));
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).arg(program.get_program()).args(program.get_args());
        command
    }

    /// Starts `procs` processes of `program` with its arguments. `variables` are set in the launcher's
    /// environment. Most launchers pass them to all processes, and some only to those on their own host.
    ///
    /// # Errors
    /// Returns an I/O error if the launcher cannot be started.
    pub fn start(&self, procs: usize, program: &Command, variables: &[(&str, &OsStr)]) -> io::Result<Job> {
        let mut command = self.command(procs, program);
        // This process may belong to a job of another launcher.
        for name in place::variables() {
            command.env_remove(name);
        }
        command
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            // Signals that a terminal sends to its foreground group are for this process only.
            .process_group(0);
        let mut child = command.spawn()?;
        let said = Arc::new(Mutex::new(Vec::new()));
        let listening = child.stderr.take().map(|stderr| {
            let said = Arc::clone(&said);
            thread::spawn(move || listen(BufReader::new(stderr), &said))
        });
        Ok(Job { child, said, listening })
    }
}

/// Keeps the last lines of the launcher's output.
fn listen(from: impl BufRead, said: &Mutex<Vec<String>>) {
    for line in from.split(b'\n').map_while(Result::ok) {
        let mut lines = said.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == LINES_KEPT {
            lines.remove(0);
        }
        lines.push(String::from_utf8_lossy(&line).into_owned());
    }
}

/// A running launcher. It is ended when this value is dropped.
#[derive(Debug)]
pub struct Job {
    child: Child,
    said: Arc<Mutex<Vec<String>>>,
    listening: Option<JoinHandle<()>>,
}

impl Job {
    /// Returns the exit status of the launcher and its last output, or `None` while it runs.
    ///
    /// # Errors
    /// Returns an I/O error if the system does not report the status.
    pub fn ended(&mut self) -> io::Result<Option<(ExitStatus, String)>> {
        let Some(status) = self.child.try_wait()? else { return Ok(None) };
        if let Some(listening) = self.listening.take() {
            // The launcher's processes may hold the pipe open a little longer.
            let until = Instant::now() + Duration::from_millis(200);
            while !listening.is_finished() && Instant::now() < until {
                thread::sleep(Duration::from_millis(5));
            }
        }
        Ok(Some((status, self.last_words())))
    }

    /// Returns the launcher's last output if it ends within `time` with any output.
    pub fn parting_words(&mut self, time: Duration) -> Option<String> {
        if !self.ends_within(time) {
            return None;
        }
        let (_, words) = self.ended().ok()??;
        (!words.is_empty()).then_some(words)
    }

    /// Returns the last lines of output, joined into one line. Lines without letters or digits are left out.
    fn last_words(&self) -> String {
        let lines = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let is_telling = |line: &&str| line.chars().any(char::is_alphanumeric);
        let telling: Vec<&str> = lines.iter().map(|line| line.trim()).filter(is_telling).collect();
        telling[telling.len().saturating_sub(LINES_TOLD)..].join(" / ")
    }

    fn ends_within(&mut self, time: Duration) -> bool {
        let until = Instant::now() + time;
        while Instant::now() < until {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return true;
            }
            thread::sleep(Duration::from_millis(2));
        }
        false
    }
}

impl Drop for Job {
    /// Waits for the launcher to clean up after its processes, which end when their control connections
    /// close. If it does not end in time, it gets SIGTERM and then SIGKILL, with all processes of its group: a script may
    /// have started another launcher.
    fn drop(&mut self) {
        if self.ends_within(GRACE) {
            return;
        }
        let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) else { return };
        // Fails if all have already ended, which is harmless.
        let _ = kill_process_group(group, Signal::TERM);
        self.ends_within(GRACE_ASKED);
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launcher(text: &str) -> Launcher {
        text.parse().unwrap()
    }

    fn end_of(job: &mut Job) -> (ExitStatus, String) {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(end) = job.ended().unwrap() {
                return end;
            }
            assert!(Instant::now() < until);
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn what_is_no_launcher_is_told() {
        assert_eq!("mpiexec -n 2".parse::<Launcher>(), Err(LauncherError::NoNumber));
        assert_eq!("mpiexec 'x {n}".parse::<Launcher>(), Err(LauncherError::Quotes));
        assert_eq!("{n}".parse::<Launcher>(), Err(LauncherError::NoNumber));
        assert_eq!("".parse::<Launcher>(), Err(LauncherError::NoNumber));
        assert_eq!(launcher("'my mpiexec' -n {n}").program(), "my mpiexec");
    }

    #[test]
    fn a_launcher_is_told_how_many_and_what() {
        let mut program = Command::new("worker");
        program.arg("--dial");
        let say = launcher(r#"sh -c 'printf "%s\n" "$* $NAME" >&2; exit 3' sh -n {n}"#);
        let mut job = say.start(5, &program, &[("NAME", OsStr::new("value"))]).unwrap();
        let (status, words) = end_of(&mut job);
        assert_eq!((status.code(), words.as_str()), (Some(3), "-n 5 worker --dial value"));
    }

    #[test]
    fn the_last_words_leave_out_rules() {
        let script = "printf '%s\\n' one two ---- 'three  ' ==== four >&2";
        let mut job =
            launcher(&format!("sh -c \"{script}\" {{n}}")).start(1, &Command::new("x"), &[]).unwrap();
        assert_eq!(end_of(&mut job).1, "two / three / four");
    }

    /// A shell with a further command stays, and the sleep is its child.
    #[test]
    fn what_a_launcher_has_started_ends_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let pid = folder.path().join("pid");
        let script = format!("sh -c 'sleep 1000 & echo $! > {}; wait; :' {{n}}", pid.display());
        let job = launcher(&script).start(1, &Command::new("x"), &[]).unwrap();
        let until = Instant::now() + Duration::from_secs(20);
        let child = loop {
            let said = std::fs::read_to_string(&pid).unwrap_or_default();
            if let Ok(child) = said.trim().parse::<u32>() {
                break child;
            }
            assert!(Instant::now() < until);
            thread::sleep(Duration::from_millis(5));
        };
        drop(job);
        let is_running = || {
            std::fs::read_to_string(format!("/proc/{child}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
        };
        while is_running() {
            assert!(Instant::now() < until, "it is left");
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_launcher_that_does_not_end_is_ended() {
        let job = launcher("sh -c 'exec sleep 1000' {n}").start(1, &Command::new("x"), &[]).unwrap();
        let path = format!("/proc/{}", job.child.id());
        assert!(std::path::Path::new(&path).exists());
        drop(job);
        assert!(!std::path::Path::new(&path).exists());
    }
}
