//! Commands that start processes on this host and others, such as mpiexec and srun.

use rustix::process::{Pid, Signal, kill_process};
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

/// Where the number of processes goes.
const NUMBER: &str = "{n}";
/// How long a launcher may take to end once its processes have.
const GRACE: Duration = Duration::from_secs(3);
/// How long it may take when it is asked to.
const GRACE_ASKED: Duration = Duration::from_secs(2);
/// Lines of what it says that are kept: the last ones say why it ended.
const LINES_KEPT: usize = 40;
/// Lines of these that fit on the user's one line.
const LINES_TOLD: usize = 3;

/// Why text is no launcher.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LauncherError {
    /// It cannot be split into words.
    #[error("its quotes do not match")]
    Quotes,
    /// It says nothing of how many processes to start.
    #[error("it must say where the number of processes goes: as in 'mpiexec -n {{n}}'")]
    NoNumber,
}

/// A command that starts as many processes as it is told to.
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
    /// Its first word.
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

    /// Starts `procs` processes of `program` with its arguments; `variables` go into the
    /// environment, which launchers pass on, some of them on their own host alone.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(&self, procs: usize, program: &Command, variables: &[(&str, &OsStr)]) -> io::Result<Job> {
        let mut command = self.command(procs, program);
        command
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            // What a terminal sends to its foreground group is for this side.
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

/// Keeps the last lines.
fn listen(from: impl BufRead, said: &Mutex<Vec<String>>) {
    for line in from.split(b'\n').map_while(Result::ok) {
        let mut lines = said.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == LINES_KEPT {
            lines.remove(0);
        }
        lines.push(String::from_utf8_lossy(&line).into_owned());
    }
}

/// What a launcher has started. It ends when this is dropped.
#[derive(Debug)]
pub struct Job {
    child: Child,
    said: Arc<Mutex<Vec<String>>>,
    listening: Option<JoinHandle<()>>,
}

impl Job {
    /// How it ended, if it has, with what it said last.
    ///
    /// # Errors
    /// The system does not say.
    pub fn ended(&mut self) -> io::Result<Option<(ExitStatus, String)>> {
        let Some(status) = self.child.try_wait()? else { return Ok(None) };
        if let Some(listening) = self.listening.take() {
            // Its processes may hold the pipe open a little longer.
            let until = Instant::now() + Duration::from_millis(200);
            while !listening.is_finished() && Instant::now() < until {
                thread::sleep(Duration::from_millis(5));
            }
        }
        Ok(Some((status, self.last_words())))
    }

    /// What it says within `time` of why it ends, if it does.
    pub fn parting_words(&mut self, time: Duration) -> Option<String> {
        if !self.ends_within(time) {
            return None;
        }
        let (_, words) = self.ended().ok()??;
        (!words.is_empty()).then_some(words)
    }

    /// The end of what it said, on one line, without rules and boxes.
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
    /// Its processes end when their control connections do. It is to clean up after them, and
    /// is killed only where it does not.
    fn drop(&mut self) {
        if self.ends_within(GRACE) {
            return;
        }
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // What has ended already cannot be ended, and need not be.
            let _ = kill_process(pid, Signal::TERM);
        }
        if !self.ends_within(GRACE_ASKED) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
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

    #[test]
    fn a_launcher_that_does_not_end_is_ended() {
        let job = launcher("sh -c 'exec sleep 1000' {n}").start(1, &Command::new("x"), &[]).unwrap();
        let path = format!("/proc/{}", job.child.id());
        assert!(std::path::Path::new(&path).exists());
        drop(job);
        assert!(!std::path::Path::new(&path).exists());
    }
}
