//! The launching side: child processes and workers on other hosts, with one control connection each.

use crate::connection::Connection;
use crate::frame::{self, FrameError};
use crate::shared_files::SharedFiles;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use thiserror::Error;

/// Timeout for each read of the remainder of a message after its first byte.
const REST_OF_MESSAGE: Duration = Duration::from_secs(10);
/// Timeout for all of it: a peer that sends a byte now and then must not hold this side.
const WHOLE_MESSAGE: Duration = Duration::from_secs(60);
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

/// Runs `command` as the worker at the other end of `control`, and returns its exit status. The worker has a
/// local connection, because the keys of `control` belong to this process, which passes all data on.
///
/// # Errors
/// Returns an I/O error if the system refuses a socket, a thread or the process.
pub fn run(command: Command, mut control: Connection) -> io::Result<ExitStatus> {
    let (here, there) = UnixStream::pair()?;
    let mut outgoing = control.try_clone()?;
    // The copies fail once a side is gone, and so end like those of a side that has closed its connection.
    thread::scope(|scope| {
        thread::Builder::new().spawn_scoped(scope, || {
            let _ = io::copy(&mut &here, &mut outgoing);
            net::shutdown(&outgoing, net::Shutdown::Both)
        })?;
        let mut child = spawn(command, there.into())?;
        let _ = io::copy(&mut control, &mut &here);
        let _ = here.shutdown(Shutdown::Write);
        child.wait()
    })
}

/// The workers of a launch, ranked from 0 in the order in which they were added.
#[derive(Debug, Default)]
pub struct Workers {
    members: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    control: Connection,
    kind: Kind,
    has_ended: bool,
    began: SystemTime,
}

#[derive(Debug)]
enum Kind {
    Child(Child),
    Remote(SocketAddr),
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
        let child = spawn(command, theirs.into()).map_err(WorkersError::Spawn)?;
        self.add(Connection::plain(control), Kind::Child(child))
    }

    /// Adds a worker on another host, with `control` as the connection to it. Returns the worker's rank.
    pub fn enlist(&mut self, control: Connection) -> Result<usize, WorkersError> {
        let address = control.peer_addr().map_err(WorkersError::Spawn)?;
        self.add(control, Kind::Remote(address))
    }

    fn add(&mut self, control: Connection, kind: Kind) -> Result<usize, WorkersError> {
        // The member owns a child before an error can occur, because its drop ends the child.
        let set = control.set_timeout(Some(REST_OF_MESSAGE));
        self.members.push(Member { control, kind, has_ended: false, began: SystemTime::now() });
        set.map_err(WorkersError::Spawn)?;
        Ok(self.members.len() - 1)
    }

    /// Returns the number of workers, ended ones included.
    pub fn count(&self) -> usize {
        self.members.len()
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
        let unread = live.iter().copied().find(|&rank| self.members[rank].control.has_unread());
        let Some(rank) = unread.map_or_else(|| self.readable(&live, timeout), |rank| Ok(Some(rank)))? else {
            return Ok(None);
        };
        let member = &mut self.members[rank];
        let began = Instant::now();
        let received = member.control.receive_within(WHOLE_MESSAGE);
        // Succeeds, because the system accepts timeouts on every socket.
        let _ = member.control.set_timeout(Some(REST_OF_MESSAGE));
        match received {
            Ok(message) => Ok(Some((rank, Event::Message(message)))),
            Err(FrameError::Closed) if began.elapsed() >= WHOLE_MESSAGE => {
                let error = FrameError::Malformed(format!("all of it has not come within {WHOLE_MESSAGE:?}"));
                Err(WorkersError::Control { place: member.place(), error })
            }
            Err(FrameError::Closed) => {
                member.has_ended = true;
                Ok(Some((rank, Event::Ended(member.end().map_err(WorkersError::Wait)?))))
            }
            Err(error) => Err(WorkersError::Control { place: member.place(), error }),
        }
    }

    /// Returns a worker among `live` whose connection has data or was closed, if there is one within
    /// `timeout`.
    fn readable(&self, live: &[usize], timeout: Duration) -> Result<Option<usize>, WorkersError> {
        let mut fds: Vec<PollFd<'_>> =
            live.iter().map(|&rank| PollFd::new(&self.members[rank].control, PollFlags::IN)).collect();
        let timeout = Timespec::try_from(timeout).unwrap_or_default();
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => Ok(None),
            Ok(_) => Ok(fds.iter().position(|fd| !fd.revents().is_empty()).map(|at| live[at])),
            Err(error) => Err(WorkersError::Wait(error.into())),
        }
    }

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
            Kind::Remote(_) => true,
        }
    }

    fn place(&self) -> Place {
        match &self.kind {
            Kind::Child(child) => Place::Child(child.id()),
            Kind::Remote(address) => Place::Host(*address),
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
                Kind::Remote(_) => net::shutdown(&member.control, net::Shutdown::Write).map_err(Into::into),
            };
        }
        for member in &mut self.members {
            match &mut member.kind {
                Kind::Child(child) => {
                    drop(child.wait());
                    SharedFiles::of_ended_process(child.id(), member.began).remove();
                }
                Kind::Remote(_) => member.control.hear_out(GRACE),
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
    fn connection() -> (Connection, Connection) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut ends = [stream, listener.accept().unwrap().0].map(Connection::plain);
        ends.iter_mut().zip(crate::connection::tests::keys()).for_each(|(end, keys)| end.encrypt(keys));
        let [here, there] = ends;
        (here, there)
    }

    #[test]
    fn a_worker_on_another_host_is_a_member_like_others() {
        let (here, there) = connection();
        let worker = shell(r"printf '\004\000\000\000true' >&0; exit 3");
        let worker = thread::spawn(|| run(worker, there).unwrap());
        let mut workers = Workers::new();
        assert_eq!(workers.enlist(here).unwrap(), 0);
        let next = |workers: &mut Workers| workers.next::<bool>(Duration::from_secs(10)).unwrap().unwrap();
        assert!(matches!(next(&mut workers), (0, Event::Message(true))));
        assert!(matches!(next(&mut workers), (0, Event::Ended(End::Closed))));
        assert_eq!(worker.join().unwrap().code(), Some(3));
    }

    #[test]
    fn messages_that_were_encrypted_together_are_events_of_their_own() {
        let (here, mut there) = connection();
        let mut workers = Workers::new();
        workers.enlist(here).unwrap();
        std::io::Write::write_all(&mut there, b"\x04\0\0\0true\x04\0\0\0true").unwrap();
        for _ in 0..2 {
            let event = workers.next::<bool>(Duration::from_secs(10)).unwrap().unwrap();
            assert!(matches!(event, (0, Event::Message(true))));
        }
    }

    #[test]
    fn a_worker_on_another_host_ends_with_the_crew() {
        let (here, there) = connection();
        // Reads until the connection is closed.
        let worker = thread::spawn(|| run(shell("exec cat"), there).unwrap());
        let mut workers = Workers::new();
        workers.enlist(here).unwrap();
        assert!(!worker.is_finished());
        drop(workers);
        worker.join().unwrap();
    }
}
