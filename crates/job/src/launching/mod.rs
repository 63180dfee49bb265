//! netdyno's own launcher of ranks: it starts the processes of a program on this host, serves PMI version 1.1 to them
//! ([`server`]), and ends all of them once one has failed.
//!
//! The processes end with the thread that has called [`run`], in whatever way it ends: the kernel kills them.
//!
//! Ranks that others have started, on any host, connect to an [`entrance`] by an [`invitation`]. [`remote`] serves them.

pub mod entrance;
pub mod invitation;
mod process;
pub mod remote;
pub mod server;
mod service;

use crate::place::{self, Place};
use crate::pmi::DESCRIPTOR;
use process::Process;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::Signal;
use server::Misuse;
use service::{Service, Verdict};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use thiserror::Error;

/// The most processes of a launch: the most ranks of a job of global memory.
pub const PROCS_AT_MOST: usize = 1 << 16;
/// Time in which the processes must end after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);
/// Time in which a killed process ends after its sockets have been closed, which other processes notice and fail by.
const NOTICING: Duration = Duration::from_millis(20);
/// The time that a rank which has lost another one leaves its launcher to end it. A launcher sees the end of a process as
/// soon as the ranks do, and names it. That takes some milliseconds, and some hundred on a busy machine.
pub const LAUNCHER_TIME: Duration = Duration::from_secs(2);
/// Interval between two calls of `stop`.
const LOOK: Duration = Duration::from_millis(50);
/// The exit code of `timeout`(1) for an end that has none.
const NO_CODE: u8 = 125;

/// How the processes of a launch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All ended with exit code 0.
    Done,
    /// A process failed, before any other one did. The others were ended.
    Failed {
        /// Its rank.
        rank: usize,
        /// Its exit status.
        status: ExitStatus,
    },
    /// A process ended with exit code 0, but had begun its part in the job and not ended it: it has left without
    /// `MPI_Finalize` or the like. The others were ended.
    Left {
        /// Its rank.
        rank: usize,
    },
    /// A process asked for the end of the job. The others were ended.
    Aborted {
        /// Its rank.
        rank: usize,
        /// The exit code that it asked for.
        code: i32,
    },
    /// `stop` returned this signal. All processes were ended.
    Stopped(i32),
}

impl End {
    /// Returns the exit code of the launch: that of the process that failed first, as a shell returns it.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed { status, .. } => exit_code(status),
            Self::Left { .. } => 1,
            // The low byte, as of exit(3). An abort is no success.
            Self::Aborted { code, .. } => (code as u8).max(1),
            Self::Stopped(signal) => u8::try_from(128 + signal).unwrap_or(NO_CODE),
        }
    }
}

/// Formats the end as one line.
impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("all ranks ended with exit code 0"),
            Self::Failed { rank, status } => write!(f, "rank {rank} {}", ended(status)),
            Self::Left { rank } => {
                write!(f, "rank {rank} has ended, and has not ended its part in the job before")
            }
            Self::Aborted { rank, code } => {
                write!(f, "rank {rank} has aborted the job with exit code {code}")
            }
            Self::Stopped(signal) => write!(f, "signal {signal} has ended the launch"),
        }
    }
}

/// Says how a process has ended.
fn ended(status: &ExitStatus) -> String {
    match status.signal() {
        Some(signal) => format!("was killed by signal {signal}"),
        None => format!("ended with exit code {}", exit_code(*status)),
    }
}

/// Returns the exit code that a shell would return.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(NO_CODE)
}

/// The reason why a launch failed although no process did.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// A number of processes that cannot be started.
    #[error("{0} processes cannot be started: use 1 to {PROCS_AT_MOST}")]
    Procs(usize),
    /// The system refuses a process, or the program cannot be executed.
    #[error("cannot run '{program}' as rank {rank}: {error}")]
    Start {
        /// The rank.
        rank: usize,
        /// The program.
        program: String,
        /// The reason.
        #[source]
        error: io::Error,
    },
    /// A process does not keep the protocol.
    #[error("rank {rank} {misuse}")]
    Misuse {
        /// The rank.
        rank: usize,
        /// What it has done.
        misuse: Misuse,
    },
    /// A process reads none of the answers that it asks for.
    #[error("rank {0} does not read the launcher's answers")]
    Deaf(usize),
    /// A process will not come to a barrier in which another one waits.
    #[error("rank {waiting} waits in a barrier to which rank {rank} does not come: it has {reason}")]
    Deserted {
        /// The rank that does not come.
        rank: usize,
        /// A rank that waits.
        waiting: usize,
        /// The reason.
        reason: &'static str,
    },
    /// Ranks that others have started do not connect.
    #[error("only {came} of {procs} ranks have connected to {address} within {} s: see whether they start and reach it", .within.as_secs())]
    Absent {
        /// Those that have come.
        came: usize,
        /// All.
        procs: usize,
        /// Where they connect.
        address: SocketAddr,
        /// The time that they had.
        within: Duration,
    },
    /// There is no descriptor for the connection of a rank.
    #[error("cannot take more ranks: {0}; raise the limit (ulimit -n)")]
    Admit(io::Error),
    /// A rank that others have started has ended or is not reached any more.
    #[error("rank {0} has ended before the job, or is not reached any more")]
    Lost(usize),
    /// A command that starts ranks has failed.
    #[error("'{name}' {}", ended(.status))]
    Starter {
        /// The command.
        name: String,
        /// Its exit status.
        status: ExitStatus,
    },
    /// A system call failed.
    #[error("cannot wait for the processes: {0}")]
    Wait(#[from] io::Error),
}

impl LaunchError {
    /// Returns the exit code of a job that has ended by this error.
    pub fn code(&self) -> u8 {
        match self {
            Self::Starter { status, .. } => exit_code(*status),
            _ => 1,
        }
    }
}

/// Starts `procs` processes, and waits for their end. `rank` returns the command of each rank; its standard input and
/// the variables of a launcher are set here. Rank 0 has the standard input of this process, and the others have none.
/// `stop` is called every 50 ms and before each start, and returns a signal if the launch must end.
///
/// Once a process has failed or cannot be started, the others get SIGTERM, and SIGKILL 2 s later. All have ended when
/// this returns.
///
/// # Errors
/// Returns an error if a process cannot be started or does not keep the protocol. All have ended then as well.
pub fn run(
    procs: usize,
    mut rank: impl FnMut(usize) -> Command,
    mut stop: impl FnMut() -> Option<i32>,
) -> Result<End, LaunchError> {
    if !(1..=PROCS_AT_MOST).contains(&procs) {
        return Err(LaunchError::Procs(procs));
    }
    let mut launch = Launch { ranks: Vec::new(), service: Service::new(procs), told: None };
    let mut verdict = None;
    for nth in 0..procs {
        verdict = stop().map(|signal| Ok(End::Stopped(signal)));
        if verdict.is_none() {
            verdict = launch.start(nth, procs, rank(nth)).err().map(Err);
        }
        if verdict.is_some() {
            break;
        }
    }
    while launch.ranks.iter().any(Process::is_running) {
        if verdict.is_none() {
            verdict = stop().map(|signal| Ok(End::Stopped(signal)));
        }
        if verdict.is_some() {
            launch.tell();
        }
        let seen = launch.look()?;
        verdict = verdict.or(seen);
    }
    verdict.unwrap_or(Ok(End::Done))
}

/// The processes of a launch.
struct Launch {
    ranks: Vec<Process>,
    service: Service,
    /// When the processes were told to end.
    told: Option<Instant>,
}

impl Launch {
    fn start(&mut self, rank: usize, procs: usize, mut command: Command) -> Result<(), LaunchError> {
        let program = command.get_program().to_string_lossy().into_owned();
        let mut start = || {
            let (socket, theirs) = UnixStream::pair()?;
            let theirs = OwnedFd::from(theirs);
            for name in place::variables() {
                command.env_remove(name);
            }
            place::set(&mut command, Place { rank, procs }).env(DESCRIPTOR, theirs.as_raw_fd().to_string());
            command.stdin(if rank == 0 { Stdio::inherit() } else { Stdio::null() });
            let command = std::mem::replace(&mut command, Command::new(""));
            self.ranks.push(Process::start(command, theirs)?);
            self.service.connect(rank, socket.into());
            Ok(())
        };
        start().map_err(|error| LaunchError::Start { rank, program, error })
    }

    /// Tells the processes to end: first SIGTERM, then SIGKILL.
    fn tell(&mut self) {
        let signal = match self.told {
            None => Signal::TERM,
            Some(told) if told.elapsed() > GRACE => Signal::KILL,
            Some(_) => return,
        };
        self.told.get_or_insert_with(Instant::now);
        self.ranks.iter().for_each(|rank| rank.signal(signal));
    }

    /// Waits for the next events and takes them. Returns the verdict on the launch if it must end.
    fn look(&mut self) -> Result<Option<Verdict>, LaunchError> {
        let (readable, ended) = self.events()?;
        let mut verdict = None;
        let is_over = self.told.is_some();
        readable.into_iter().for_each(|rank| self.service.listen(rank, is_over, &mut verdict));
        let mut failed = self.failed(ended, &mut verdict)?;
        if !failed.is_empty() && self.told.is_none() && !failed.iter().any(is_killed) {
            thread::sleep(NOTICING);
            let (_, ended) = self.events()?;
            failed.extend(self.failed(ended, &mut verdict)?);
        }
        // Of processes that fail at once, one that was killed is the cause: the others have noticed its end.
        let first = failed.iter().find(|end| is_killed(end)).or(failed.first()).copied();
        Ok(verdict.or(first.map(Ok)).or_else(|| self.deserted().map(Err)))
    }

    /// Takes the exit statuses and the last words of processes that have ended, and returns the failures.
    fn failed(&mut self, ended: Vec<usize>, verdict: &mut Option<Verdict>) -> io::Result<Vec<End>> {
        let mut failed = Vec::new();
        for rank in ended {
            let status = self.ranks[rank].reap()?;
            // Its last words may have come after the look at its socket.
            self.service.listen(rank, self.told.is_some(), verdict);
            let has_left = self.service.is_taking_part(rank);
            // A process that it has left behind is not served.
            self.service.close(rank);
            if !status.success() {
                failed.push(End::Failed { rank, status });
            } else if has_left {
                failed.push(End::Left { rank });
            }
        }
        Ok(failed)
    }

    /// Waits for events. Returns the ranks with something to read, and those that have ended.
    fn events(&self) -> Result<(Vec<usize>, Vec<usize>), LaunchError> {
        let lives = self.ranks.iter().enumerate().filter_map(|(nth, rank)| Some((nth, rank.life()?)));
        let (of_sockets, mut fds): (Vec<usize>, Vec<PollFd<'_>>) =
            self.service.sockets().map(|(nth, socket)| (nth, readable(socket))).unzip();
        let (of_lives, of_ends): (Vec<usize>, Vec<PollFd<'_>>) =
            lives.map(|(nth, life)| (nth, readable(life))).unzip();
        fds.extend(of_ends);
        let is_ready = await_any(&mut fds)?;
        let (sockets, lives) = is_ready.split_at(of_sockets.len());
        Ok((chosen(of_sockets, sockets), chosen(of_lives, lives)))
    }

    /// Returns the error of a barrier in which ranks wait for one that does not come.
    fn deserted(&self) -> Option<LaunchError> {
        self.service.deserted(|rank| !self.ranks[rank].is_running())
    }
}

fn readable<'a>(descriptor: &'a (impl AsFd + 'a)) -> PollFd<'a> {
    PollFd::new(descriptor, PollFlags::IN)
}

/// Waits until a descriptor has an event, for [`LOOK`] at most. Returns which have one.
fn await_any(fds: &mut [PollFd<'_>]) -> Result<Vec<bool>, LaunchError> {
    match poll(fds, Some(&Timespec::try_from(LOOK).unwrap_or_default())) {
        Ok(_) => Ok(fds.iter().map(|fd| !fd.revents().is_empty()).collect()),
        Err(Errno::INTR) => Ok(vec![false; fds.len()]),
        Err(error) => Err(LaunchError::Wait(error.into())),
    }
}

/// Returns those whose descriptor has an event.
fn chosen(all: Vec<usize>, is_ready: &[bool]) -> Vec<usize> {
    all.into_iter().zip(is_ready).filter(|(_, is_ready)| **is_ready).map(|(nth, _)| nth).collect()
}

fn is_killed(end: &End) -> bool {
    matches!(end, End::Failed { status, .. } if status.signal().is_some())
}
