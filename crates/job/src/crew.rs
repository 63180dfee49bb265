//! The side that launches: children with a control connection each.

use crate::frame::{self, FrameError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use thiserror::Error;

/// Once a message has begun to come, the rest must come within this time.
const REST_OF_MESSAGE: Duration = Duration::from_secs(10);
/// How long a child may take to end by itself when its connection is closed.
const GRACE: Duration = Duration::from_millis(500);

/// Why a crew could not be launched or heard.
#[derive(Debug, Error)]
pub enum CrewError {
    /// The system refused to start a child.
    #[error("cannot start a process: {0}")]
    Spawn(#[source] io::Error),
    /// A child's connection broke while it lives.
    #[error("process {rank} cannot be talked to: {error}")]
    Control {
        /// Which child.
        rank: usize,
        /// What happened.
        #[source]
        error: FrameError,
    },
    /// The system refused to wait.
    #[error("cannot wait for processes: {0}")]
    Wait(#[source] io::Error),
}

/// What a child did.
#[derive(Debug)]
pub enum Event<T> {
    /// It sent a message.
    Message(T),
    /// It ended.
    Ended(ExitStatus),
}

/// Children, numbered from 0 in the order in which they were launched.
#[derive(Debug, Default)]
pub struct Crew {
    members: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    child: Child,
    control: UnixStream,
    has_ended: bool,
}

impl Crew {
    /// A crew without children.
    pub fn new() -> Self {
        Self::default()
    }

    /// Launches `command` with a control connection on its standard input and nothing on
    /// its standard output. Returns its rank.
    pub fn launch(&mut self, mut command: Command) -> Result<usize, CrewError> {
        let (control, theirs) = UnixStream::pair().map_err(CrewError::Spawn)?;
        control.set_read_timeout(Some(REST_OF_MESSAGE)).map_err(CrewError::Spawn)?;
        control.set_write_timeout(Some(REST_OF_MESSAGE)).map_err(CrewError::Spawn)?;
        let child = command
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            // What a terminal sends to its foreground group is for the launching side.
            .process_group(0)
            .spawn()
            .map_err(CrewError::Spawn)?;
        self.members.push(Member { child, control, has_ended: false });
        Ok(self.members.len() - 1)
    }

    /// The process id of a child.
    pub fn pid(&self, rank: usize) -> u32 {
        self.members[rank].child.id()
    }

    /// Sends a message to a child. One that has ended gets none; its end is an event.
    pub fn send<T: Serialize>(&mut self, rank: usize, message: &T) -> Result<(), CrewError> {
        match frame::send(&mut self.members[rank].control, message) {
            Ok(()) | Err(FrameError::Closed) => Ok(()),
            Err(error) => Err(CrewError::Control { rank, error }),
        }
    }

    /// The next event of any child, or `None` where none comes within `timeout`.
    pub fn next<T: DeserializeOwned>(
        &mut self,
        timeout: Duration,
    ) -> Result<Option<(usize, Event<T>)>, CrewError> {
        let live: Vec<usize> =
            (0..self.members.len()).filter(|&rank| !self.members[rank].has_ended).collect();
        let mut fds: Vec<PollFd<'_>> =
            live.iter().map(|&rank| PollFd::new(&self.members[rank].control, PollFlags::IN)).collect();
        let timeout = Timespec::try_from(timeout).unwrap_or_default();
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => return Ok(None),
            Ok(_) => {}
            Err(error) => return Err(CrewError::Wait(error.into())),
        }
        let Some(rank) = fds.iter().position(|fd| !fd.revents().is_empty()).map(|at| live[at]) else {
            return Ok(None);
        };
        let member = &mut self.members[rank];
        match frame::receive(&mut member.control) {
            Ok(message) => Ok(Some((rank, Event::Message(message)))),
            Err(FrameError::Closed) => {
                member.has_ended = true;
                Ok(Some((rank, Event::Ended(member.end().map_err(CrewError::Wait)?))))
            }
            Err(error) => Err(CrewError::Control { rank, error }),
        }
    }
}

impl Member {
    /// Waits for a child whose connection is closed, and kills it where it lingers.
    fn end(&mut self) -> io::Result<ExitStatus> {
        let until = Instant::now() + GRACE;
        while Instant::now() < until {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.child.kill()?;
        self.child.wait()
    }
}

impl Drop for Crew {
    /// No child outlives its crew.
    fn drop(&mut self) {
        for member in &mut self.members {
            // A child that has ended already cannot be killed, and need not be.
            let _ = member.child.kill();
            let _ = member.child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn messages_and_ends_are_events() {
        let mut crew = Crew::new();
        // The shell answers on its standard input, which is the connection: length 4, then JSON.
        crew.launch(shell(r"printf '\004\000\000\000true' >&0; exit 3")).unwrap();
        let next = |crew: &mut Crew| crew.next::<bool>(Duration::from_secs(10)).unwrap().unwrap();
        assert!(matches!(next(&mut crew), (0, Event::Message(true))));
        let (0, Event::Ended(status)) = next(&mut crew) else { panic!() };
        assert_eq!(status.code(), Some(3));
        assert!(crew.next::<bool>(Duration::from_millis(1)).unwrap().is_none());
    }

    #[test]
    fn no_child_outlives_its_crew() {
        let mut crew = Crew::new();
        let rank = crew.launch(shell("exec sleep 1000")).unwrap();
        let path = format!("/proc/{}", crew.pid(rank));
        assert!(std::path::Path::new(&path).exists());
        drop(crew);
        assert!(!std::path::Path::new(&path).exists());
    }
}
