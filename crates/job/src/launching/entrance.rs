//! The port to which the ranks of a job connect that others have started. Each shows the key. A connection that does not
//! is closed, and keeps nobody waiting.

use super::invitation::{GREETING_BYTES, Invitation, KEEP_ALIVE};
use netdyno_host::random;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use std::io;
use std::net::{IpAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Time for the first line of a rank.
const GREETING_TIME: Duration = Duration::from_secs(10);
/// The most connections without a key. A new one takes the place of the oldest.
const CALLERS_AT_MOST: usize = 256;
/// The most connections that are accepted at once.
const ACCEPTED_AT_ONCE: usize = 64;

/// An open port and its key. A drop closes it.
#[derive(Debug)]
pub struct Entrance {
    listener: TcpListener,
    invitation: Invitation,
    /// Connections that have not yet shown the key, the oldest first.
    callers: Vec<Caller>,
}

/// A connection without a key.
#[derive(Debug)]
struct Caller {
    socket: TcpStream,
    heard: Vec<u8>,
    since: Instant,
}

/// What is known about a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caught {
    /// It has the key.
    Rank,
    /// It has not said everything yet.
    Nothing,
    /// It does not have the key.
    Stranger,
}

impl Entrance {
    /// Opens a port at an address of this host, with a new key.
    ///
    /// # Errors
    /// Returns an I/O error if the system refuses the port or the random bytes.
    pub fn open(ip: IpAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((ip, 0))?;
        listener.set_nonblocking(true)?;
        let invitation = Invitation { address: listener.local_addr()?, key: random::bytes()? };
        Ok(Self { listener, invitation, callers: Vec::new() })
    }

    /// Returns what a rank needs to connect.
    pub fn invitation(&self) -> &Invitation {
        &self.invitation
    }

    /// Returns the port and the connections that are readable when [`Entrance::admit`] has something to do.
    pub(super) fn port(&self) -> (&TcpListener, impl Iterator<Item = &TcpStream>) {
        (&self.listener, self.callers.iter().map(|caller| &caller.socket))
    }

    /// Takes new connections, and returns those that have shown the key.
    ///
    /// # Errors
    /// Returns an I/O error if there is no descriptor for a connection, although no stranger has one.
    pub(super) fn admit(&mut self) -> io::Result<Vec<TcpStream>> {
        let accepted = self.accept();
        let callers = self.callers.len();
        let ranks = self.hear();
        // If nobody has left, those who have said nothing make place for others.
        if let Err(error) = accepted
            && self.callers.len() == callers
        {
            if callers == 0 {
                return Err(error);
            }
            drop(self.callers.remove(0));
        }
        let too_many = self.callers.len().saturating_sub(CALLERS_AT_MOST);
        self.callers.drain(..too_many);
        Ok(ranks)
    }

    /// Accepts connections.
    ///
    /// # Errors
    /// Returns an I/O error if there is no descriptor for one.
    fn accept(&mut self) -> io::Result<()> {
        for _ in 0..ACCEPTED_AT_ONCE {
            match self.listener.accept() {
                Ok((socket, _)) => {
                    self.callers.push(Caller { socket, heard: Vec::new(), since: Instant::now() });
                }
                Err(error) if lacks_descriptor(&error) => return Err(error),
                // There is none, or it was closed again.
                Err(_) => break,
            }
        }
        Ok(())
    }

    /// Returns the connections that have shown the key by now. Keeps those that may still do so.
    fn hear(&mut self) -> Vec<TcpStream> {
        let line = self.invitation.greeting();
        let mut ranks = Vec::new();
        for mut caller in std::mem::take(&mut self.callers) {
            match caller.hear(line.as_bytes()) {
                Caught::Rank if KEEP_ALIVE.set(&caller.socket).is_ok() => ranks.push(caller.socket),
                Caught::Nothing if caller.since.elapsed() < GREETING_TIME => self.callers.push(caller),
                _ => {}
            }
        }
        ranks
    }
}

impl Caller {
    /// Reads what the caller says, and compares it with the line that it must say.
    fn hear(&mut self, line: &[u8]) -> Caught {
        let mut bytes = [0; GREETING_BYTES];
        let room = &mut bytes[self.heard.len()..];
        match recv(&self.socket, room, RecvFlags::DONTWAIT) {
            Ok((_, 0)) => return Caught::Stranger,
            Ok((_, len)) => self.heard.extend_from_slice(&bytes[self.heard.len()..self.heard.len() + len]),
            Err(Errno::AGAIN | Errno::INTR) => return Caught::Nothing,
            Err(_) => return Caught::Stranger,
        }
        match self.heard.len() {
            GREETING_BYTES if is_same(&self.heard, line) && self.is_there() => Caught::Rank,
            GREETING_BYTES => Caught::Stranger,
            _ => Caught::Nothing,
        }
    }

    /// Reports whether the caller still waits for its answer. One that has waited for too long has connected again.
    fn is_there(&self) -> bool {
        let next = recv(&self.socket, &mut [0; 1][..], RecvFlags::PEEK | RecvFlags::DONTWAIT);
        matches!(next, Err(Errno::AGAIN))
    }
}

/// Reports whether the process or the system has no descriptor left.
fn lacks_descriptor(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// Compares in a time that does not tell where the first difference is.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}
