//! The launching side: child processes and workers on other hosts, with one control connection each.

use crate::frame::{self, FrameError};
use crate::remote::hear_out;
use crate::shared_files::SharedFiles;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::fs::File;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant, SystemTime};
use thiserror::Error;

/// Timeout for the remainder of a message after its first byte.
const REST_OF_MESSAGE: Duration = Duration::from_secs(10);
/// Time in which a worker must end by itself after its connection is closed.
const GRACE: Duration = Duration::from_millis(500);
/// Time in which a dismissed worker must close its layer.
const GRACE_DISMISSED: Duration = Duration::from_secs(3);

/// Reports why a worker could not be launched or heard.
#[derive(Debug, Error)]
pub enum WorkersError {
    /// The system refused to start a child.
    #[error("cannot start a process: {0}")]
    Spawn(#[source] io::Error),
    /// The connection to a running worker failed.
    #[error("{place} cannot be talked to: {error}")]
    Control {
        /// The worker.
        place: Place,
        /// The error of the connection.
        #[source]
        error: FrameError,
    },
    /// The system call that waits for workers failed.
    #[error("cannot wait for processes: {0}")]
    Wait(#[source] io::Error),
}

/// An event of a worker.
#[derive(Debug)]
pub enum Event<T> {
    /// The worker sent a message.
    Message(T),
    /// The worker ended.
    Ended(End),
}

/// How a worker ended, as far as the launching side can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A child process exited with this status.
    Exit(ExitStatus),
    /// The connection to a worker on another host was closed. Only that host knows its exit status.
    Closed,
}

/// Formats the end as text that follows the name of the worker.
impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Exit(status) = self else { return f.write_str("is gone: its connection was closed") };
        match (status.signal(), status.code()) {
            (Some(signal), _) => write!(f, "was killed by signal {signal}"),
            (None, Some(code)) => write!(f, "ended early with exit code {code}"),
            (None, None) => f.write_str("ended early"),
        }
    }
}

/// The location of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A child of this process, with its process identifier.
    Child(u32),
    /// Another host, with its address.
    Host(SocketAddr),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Child(pid) => write!(f, "process {pid}"),
            Self::Host(address) => write!(f, "host {}", address.ip()),
        }
    }
}

/// Starts `command` with `control` as its standard input and no standard output. The process is not in the
/// foreground group of the terminal.
///
/// # Errors
/// Returns an I/O error if the system refuses to start a process.
pub fn spawn(mut command: Command, control: OwnedFd) -> io::Result<Child> {
    command
        .stdin(Stdio::from(control))
        .stdout(Stdio::null())
        // Signals that a terminal sends to its foreground group are for the launching side only.
        .process_group(0)
        .spawn()
}

/// The workers of a launch, ranked from 0 in the order in which they were added.
#[derive(Debug, Default)]
pub struct Workers {
    members: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    /// A stream socket, local or between hosts.
    control: File,
    kind: Kind,
    has_ended: bool,
    began: SystemTime,
}

#[derive(Debug)]
enum Kind {
    Child(Child),
    Remote(TcpStream, SocketAddr),
}

impl Workers {
    /// Creates an empty set of workers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts `command` as a worker. Its standard input is the control connection, and it has no standard
    /// output. Returns the worker's rank.
    pub fn launch(&mut self, command: Command) -> Result<usize, WorkersError> {
        let (control, theirs) = UnixStream::pair().map_err(WorkersError::Spawn)?;
        control.set_read_timeout(Some(REST_OF_MESSAGE)).map_err(WorkersError::Spawn)?;
        control.set_write_timeout(Some(REST_OF_MESSAGE)).map_err(WorkersError::Spawn)?;
        let child = spawn(command, theirs.into()).map_err(WorkersError::Spawn)?;
        Ok(self.add(OwnedFd::from(control), Kind::Child(child)))
    }

    /// Adds a worker on another host, with `control` as the connection to it. Returns the worker's rank.
    pub fn enlist(&mut self, control: TcpStream) -> Result<usize, WorkersError> {
        control.set_read_timeout(Some(REST_OF_MESSAGE)).map_err(WorkersError::Spawn)?;
        control.set_write_timeout(Some(REST_OF_MESSAGE)).map_err(WorkersError::Spawn)?;
        let address = control.peer_addr().map_err(WorkersError::Spawn)?;
        let listened_to = control.try_clone().map_err(WorkersError::Spawn)?;
        Ok(self.add(OwnedFd::from(listened_to), Kind::Remote(control, address)))
    }

    fn add(&mut self, control: OwnedFd, kind: Kind) -> usize {
        let began = SystemTime::now();
        self.members.push(Member { control: File::from(control), kind, has_ended: false, began });
        self.members.len() - 1
    }

    /// Returns the location of a worker.
    pub fn place(&self, rank: usize) -> Place {
        self.members[rank].place()
    }

    /// Sends a message to a worker. If the worker has ended, the message is dropped and `next` reports the
    /// end.
    pub fn send<T: Serialize>(&mut self, rank: usize, message: &T) -> Result<(), WorkersError> {
        let member = &mut self.members[rank];
        match frame::send(&mut member.control, message) {
            Ok(()) | Err(FrameError::Closed) => Ok(()),
            Err(error) => Err(WorkersError::Control { place: member.place(), error }),
        }
    }

    /// Returns the next event of any worker, or `None` if none occurs within `timeout`.
    pub fn next<T: DeserializeOwned>(
        &mut self,
        timeout: Duration,
    ) -> Result<Option<(usize, Event<T>)>, WorkersError> {
        let live: Vec<usize> =
            (0..self.members.len()).filter(|&rank| !self.members[rank].has_ended).collect();
        let mut fds: Vec<PollFd<'_>> =
            live.iter().map(|&rank| PollFd::new(&self.members[rank].control, PollFlags::IN)).collect();
        let timeout = Timespec::try_from(timeout).unwrap_or_default();
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => return Ok(None),
            Ok(_) => {}
            Err(error) => return Err(WorkersError::Wait(error.into())),
        }
        let Some(rank) = fds.iter().position(|fd| !fd.revents().is_empty()).map(|at| live[at]) else {
            return Ok(None);
        };
        let member = &mut self.members[rank];
        match frame::receive(&mut member.control) {
            Ok(message) => Ok(Some((rank, Event::Message(message)))),
            Err(FrameError::Closed) => {
                member.has_ended = true;
                Ok(Some((rank, Event::Ended(member.end().map_err(WorkersError::Wait)?))))
            }
            Err(error) => Err(WorkersError::Control { place: member.place(), error }),
        }
    }
}

impl Workers {
    /// Ends the workers after their work is done. Each closes its layer first, which requires that all are
    /// still running. A worker that takes too long is killed, as all are when this value is dropped without
    /// this call.
    pub fn dismiss(mut self) {
        for member in &self.members {
            // Fails if the worker has already ended, which is harmless.
            let _ = net::shutdown(&member.control, net::Shutdown::Write);
        }
        let until = Instant::now() + GRACE_DISMISSED;
        while Instant::now() < until && !self.members.iter_mut().all(Member::is_gone) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Member {
    /// Reports whether a child has ended. Remote workers are waited for only when the workers is dropped.
    fn is_gone(&mut self) -> bool {
        match &mut self.kind {
            Kind::Child(child) => !matches!(child.try_wait(), Ok(None)),
            Kind::Remote(..) => true,
        }
    }

    fn place(&self) -> Place {
        match &self.kind {
            Kind::Child(child) => Place::Child(child.id()),
            Kind::Remote(_, address) => Place::Host(*address),
        }
    }

    /// Returns how a worker with a closed connection ended. A child that does not exit in time is killed.
    fn end(&mut self) -> io::Result<End> {
        let Kind::Child(child) = &mut self.kind else { return Ok(End::Closed) };
        let until = Instant::now() + GRACE;
        while Instant::now() < until {
            if let Some(status) = child.try_wait()? {
                return Ok(End::Exit(status));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill()?;
        child.wait().map(End::Exit)
    }
}

impl Drop for Workers {
    /// Ends all workers, so that none outlives the launching side.
    fn drop(&mut self) {
        for member in &mut self.members {
            // Fails if the worker has already ended, which is harmless.
            let _ = match &mut member.kind {
                Kind::Child(child) => child.kill(),
                // A worker ends when its connection is closed.
                Kind::Remote(control, _) => control.shutdown(Shutdown::Write),
            };
        }
        for member in &mut self.members {
            match &mut member.kind {
                Kind::Child(child) => {
                    drop(child.wait());
                    SharedFiles::of_ended_process(child.id(), member.began).remove();
                }
                Kind::Remote(control, _) => hear_out(control, GRACE),
            }
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
        let mut workers = Workers::new();
        // The shell replies on its standard input, which is the connection: length 4, then JSON.
        workers.launch(shell(r"printf '\004\000\000\000true' >&0; exit 3")).unwrap();
        let next = |workers: &mut Workers| workers.next::<bool>(Duration::from_secs(10)).unwrap().unwrap();
        assert!(matches!(next(&mut workers), (0, Event::Message(true))));
        let (0, Event::Ended(End::Exit(status))) = next(&mut workers) else { panic!() };
        assert_eq!(status.code(), Some(3));
        assert!(workers.next::<bool>(Duration::from_millis(1)).unwrap().is_none());
    }

    #[test]
    fn no_child_outlives_its_crew() {
        let mut workers = Workers::new();
        let rank = workers.launch(shell("exec sleep 1000")).unwrap();
        let Place::Child(pid) = workers.place(rank) else { panic!() };
        let path = format!("/proc/{pid}");
        assert!(std::path::Path::new(&path).exists());
        drop(workers);
        assert!(!std::path::Path::new(&path).exists());
    }

    /// Returns both ends of a connection to this host, like one between hosts.
    fn connection() -> (TcpStream, TcpStream) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (stream, listener.accept().unwrap().0)
    }

    #[test]
    fn a_worker_on_another_host_is_a_member_like_others() {
        let (here, there) = connection();
        let worker = shell(r"printf '\004\000\000\000true' >&0; exit 3");
        let mut worker = spawn(worker, there.into()).unwrap();
        let mut workers = Workers::new();
        assert_eq!(workers.enlist(here).unwrap(), 0);
        let next = |workers: &mut Workers| workers.next::<bool>(Duration::from_secs(10)).unwrap().unwrap();
        assert!(matches!(next(&mut workers), (0, Event::Message(true))));
        assert!(matches!(next(&mut workers), (0, Event::Ended(End::Closed))));
        worker.wait().unwrap();
    }

    #[test]
    fn a_worker_on_another_host_ends_with_the_crew() {
        let (here, there) = connection();
        // Reads until the connection is closed.
        let mut worker = spawn(shell("exec cat"), there.into()).unwrap();
        let mut workers = Workers::new();
        workers.enlist(here).unwrap();
        assert!(worker.try_wait().unwrap().is_none());
        drop(workers);
        worker.wait().unwrap();
    }
}
