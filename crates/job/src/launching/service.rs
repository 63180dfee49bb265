//! The service of PMI to ranks that are connected: it reads from their sockets, asks the [`Server`], and writes the
//! answers.

use super::server::{self, Answer, Server, Stop};
use super::{End, LaunchError};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant, SystemTime};

/// Time in which a process that has closed its socket ends, if it closed it by ending.
const CLOSING: Duration = Duration::from_millis(500);

/// The result of a job, or the reason why it has none.
pub(super) type Verdict = Result<End, LaunchError>;

/// The sockets of all ranks, and what the ranks have put.
pub(super) struct Service {
    server: Server,
    lines: Vec<Line>,
}

/// The connection of a rank.
#[derive(Default)]
struct Line {
    /// The socket from the connection to its end.
    socket: Option<OwnedFd>,
    /// When the rank closed it.
    closed: Option<Instant>,
}

impl Service {
    /// Serves so many ranks. None is connected yet.
    pub fn new(procs: usize) -> Self {
        let lines = (0..procs).map(|_| Line::default()).collect();
        Self { server: Server::new(space(), procs), lines }
    }

    /// Connects a rank.
    pub fn connect(&mut self, rank: usize, socket: OwnedFd) {
        self.lines[rank].socket = Some(socket);
    }

    /// Returns the ranks that are connected, and their sockets.
    pub fn sockets(&self) -> impl Iterator<Item = (usize, &OwnedFd)> {
        self.lines.iter().enumerate().filter_map(|(rank, line)| Some((rank, line.socket.as_ref()?)))
    }

    /// Reads from the socket of a rank, and answers. Nothing is answered once the job `is_over`. Sets the verdict on
    /// the job, if the rank ends it and there is none yet.
    pub fn listen(&mut self, rank: usize, is_over: bool, verdict: &mut Option<Verdict>) {
        if let Err(found) = self.hear(rank, is_over) {
            verdict.get_or_insert(found);
        }
    }

    fn hear(&mut self, rank: usize, is_over: bool) -> Result<(), Verdict> {
        let mut bytes = [0; server::LONGEST_LINE];
        let Some(socket) = &self.lines[rank].socket else { return Ok(()) };
        let len = match recv(socket, &mut bytes[..], RecvFlags::DONTWAIT) {
            Ok((len, _)) => len,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
            // The process has ended before it had read all answers.
            Err(_) => 0,
        };
        if len == 0 {
            self.close(rank);
            return Ok(());
        }
        if is_over {
            return Ok(());
        }
        match self.server.hear(rank, &bytes[..len]) {
            Ok(answers) => answers.iter().try_for_each(|answer| self.answer(answer)).map_err(Err),
            Err(Stop::Abort(code)) => Err(Ok(End::Aborted { rank, code })),
            Err(Stop::Misuse(misuse)) => Err(Err(LaunchError::Misuse { rank, misuse })),
        }
    }

    fn answer(&self, Answer { to, line }: &Answer) -> Result<(), LaunchError> {
        let Some(socket) = &self.lines[*to].socket else { return Ok(()) };
        match send(socket, line.as_bytes(), SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(len) if len == line.len() => Ok(()),
            Ok(_) | Err(Errno::AGAIN) => Err(LaunchError::Deaf(*to)),
            // The process has closed its socket, which is seen when it is read.
            Err(_) => Ok(()),
        }
    }

    /// Closes the connection of a rank.
    pub fn close(&mut self, rank: usize) {
        let line = &mut self.lines[rank];
        line.socket = None;
        line.closed.get_or_insert_with(Instant::now);
    }

    /// Reports whether a rank has begun its part in the job and not ended it.
    pub fn is_taking_part(&self, rank: usize) -> bool {
        self.server.is_taking_part(rank)
    }

    /// Returns a rank that was connected and has closed its connection without a word.
    pub fn lost(&self) -> Option<usize> {
        let is_lost = |rank: usize| self.lines[rank].closed.is_some() && !self.server.has_finalized(rank);
        (0..self.lines.len()).find(|rank| is_lost(*rank))
    }

    /// Returns the error of a barrier in which ranks wait for one that does not come.
    pub fn deserted(&self, has_ended: impl Fn(usize) -> bool) -> Option<LaunchError> {
        let waiting = self.server.waiting()?;
        let absent = |rank: usize| {
            let reason = match self.lines[rank].closed {
                _ if has_ended(rank) => "ended",
                _ if self.server.has_finalized(rank) => "finalized",
                Some(closed) if closed.elapsed() > CLOSING => "closed its connection",
                _ => return None,
            };
            (!self.server.is_in_barrier(rank)).then_some(LaunchError::Deserted { rank, waiting, reason })
        };
        (0..self.lines.len()).find_map(absent)
    }
}

/// Returns a name for the values of a launch that no other launch on this host has.
fn space() -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("netdyno-{}-{}", std::process::id(), now.as_nanos())
}
