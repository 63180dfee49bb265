//! What a rank needs to connect to the process that has started the job: an address and a secret key. It travels as one
//! word of a command line.

use crate::hex;
use crate::keepalive::KeepAlive;
use crate::place::Place;
use crate::pmi::{ABORTED, argument};
use netdyno_host::signals::without_signals;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use thiserror::Error;

/// Bytes of a key.
pub const KEY_BYTES: usize = 16;
/// The beginning of the first line of a rank. The key follows.
const GREETING: &str = "netdyno-rank ";
/// Bytes of that line.
pub(super) const GREETING_BYTES: usize = GREETING.len() + 2 * KEY_BYTES + 1;
/// Time for a step of the start: a connection, and the answer to the key.
const STEP: Duration = Duration::from_secs(60);
/// Connections that a rank tries, and the time between two of them.
const TRIES: usize = 5;
const PAUSE: Duration = Duration::from_millis(200);
/// The longest answer to the key, in bytes.
const LONGEST_ANSWER: u64 = 256;
/// The life of a connection without its host. A host may be busy for long.
pub(super) const KEEP_ALIVE: KeepAlive = KeepAlive {
    after: Duration::from_secs(30),
    each: Duration::from_secs(10),
    given_up_after: Duration::from_secs(60),
};

/// An address and a key.
#[derive(Clone, PartialEq, Eq)]
pub struct Invitation {
    /// Where the process listens.
    pub address: SocketAddr,
    /// The secret.
    pub key: [u8; KEY_BYTES],
}

/// The text has the key: do not print it.
impl fmt::Display for Invitation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, hex::digits(&self.key))
    }
}

impl fmt::Debug for Invitation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/…", self.address)
    }
}

/// A text that is no invitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the invitation is not as in 192.0.2.1:4000/KEY, with {} hexadecimal digits of the key", 2 * KEY_BYTES)]
pub struct NoInvitation;

impl FromStr for Invitation {
    type Err = NoInvitation;

    fn from_str(text: &str) -> Result<Self, NoInvitation> {
        let (address, key) = text.split_once('/').ok_or(NoInvitation)?;
        let address = address.parse().map_err(|_| NoInvitation)?;
        let key = hex::bytes(key).and_then(|bytes| bytes.try_into().ok()).ok_or(NoInvitation)?;
        Ok(Self { address, key })
    }
}

/// The reason why a rank cannot connect.
#[derive(Debug, Error)]
pub enum JoinError {
    /// The address is not reached, or the connection fails.
    #[error("cannot reach the process that has started the job at {address}: {error}")]
    Reach {
        /// The address.
        address: SocketAddr,
        /// The reason.
        #[source]
        error: io::Error,
    },
    /// The process does not take this rank.
    #[error("the process at {0} does not take this rank: the job is complete, or the key is another one's")]
    Refused(SocketAddr),
}

/// Why the connection of a rank has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The process that has started the job has said that it is over.
    Over,
    /// That process has ended, or is not reached.
    Gone,
}

/// The connection of a rank. The drop of the last clone closes it.
#[derive(Clone, Debug)]
pub struct Joined(Arc<Connection>);

#[derive(Debug)]
struct Connection {
    socket: TcpStream,
    /// Whether this process lives on when the connection ends.
    is_unwatched: AtomicBool,
    /// Whether this process has read that the job is over.
    is_over: AtomicBool,
}

impl Invitation {
    /// Returns the first line of a rank.
    pub(super) fn greeting(&self) -> String {
        format!("{GREETING}{}\n", hex::digits(&self.key))
    }

    /// Connects to the process that has started the job. Returns the place of this process in it.
    ///
    /// # Errors
    /// Returns a `JoinError` if the process is not reached or takes no rank.
    pub fn accept(&self) -> Result<(Joined, Place), JoinError> {
        for _ in 0..TRIES {
            if let Some(taken) =
                self.ask().map_err(|error| JoinError::Reach { address: self.address, error })?
            {
                return Ok(taken);
            }
            // Too many others may have connected.
            thread::sleep(PAUSE);
        }
        Err(JoinError::Refused(self.address))
    }

    /// Connects and shows the key. Returns `None` if the answer is no place in the job.
    fn ask(&self) -> io::Result<Option<(Joined, Place)>> {
        let mut socket = TcpStream::connect_timeout(&self.address, STEP)?;
        KEEP_ALIVE.set(&socket)?;
        socket.set_read_timeout(Some(STEP))?;
        let mut answer = String::new();
        // A word that follows the answer stays in the socket. A process that takes no rank closes the connection.
        let is_answered = socket.write_all(self.greeting().as_bytes()).is_ok()
            && BufReader::with_capacity(1, (&socket).take(LONGEST_ANSWER)).read_line(&mut answer).is_ok();
        let number = |name| argument(answer.trim_end(), name)?.parse().ok();
        let place = match (number("rank"), number("size")) {
            (Some(rank), Some(procs)) if is_answered && rank < procs => Place { rank, procs },
            _ => return Ok(None),
        };
        socket.set_read_timeout(None)?;
        Ok(Some((Joined(Arc::new(Connection::over(socket))), place)))
    }
}

impl Joined {
    /// Returns the address of this process in the connection.
    ///
    /// # Errors
    /// Returns an I/O error if the connection has failed.
    pub fn own_address(&self) -> io::Result<IpAddr> {
        Ok(self.0.socket.local_addr()?.ip())
    }

    /// Lets this process live on when the connection ends.
    pub fn unwatch(&self) {
        self.0.is_unwatched.store(true, Ordering::SeqCst);
    }

    /// Starts a thread that calls `lost` once the connection has ended, unless this process has closed it.
    ///
    /// # Errors
    /// Returns an I/O error if the system refuses the thread.
    pub fn watch(&self, lost: impl FnOnce(Loss) + Send + 'static) -> io::Result<()> {
        let (socket, connection) = (self.0.socket.try_clone()?, Arc::downgrade(&self.0));
        let watch = move || {
            await_end(&socket);
            // There is none once this process has closed it.
            let connection = connection.upgrade();
            if let Some(connection) = connection.filter(|one| !one.is_unwatched.load(Ordering::SeqCst)) {
                lost(connection.loss());
            }
        };
        let builder = thread::Builder::new().name("netdyno-launcher".into());
        without_signals(|| builder.spawn(watch))?;
        Ok(())
    }
}

/// Waits until the other end has closed the connection.
fn await_end(socket: &TcpStream) {
    loop {
        match poll(&mut [PollFd::new(socket, PollFlags::RDHUP)], None) {
            Err(Errno::INTR) => {}
            // An error of the call is taken for the end: a rank must not outlive its job.
            _ => return,
        }
    }
}

impl Connection {
    fn over(socket: TcpStream) -> Self {
        Self { socket, is_unwatched: AtomicBool::new(false), is_over: AtomicBool::new(false) }
    }

    /// Finds the word with which the other end has closed the connection, in what is not read or was.
    fn loss(&self) -> Loss {
        let mut bytes = [0; 4096];
        let peeked = recv(&self.socket, &mut bytes[..], RecvFlags::PEEK | RecvFlags::DONTWAIT);
        let len = peeked.map_or(0, |(len, _)| len);
        let is_over = has_word(&bytes[..len]) || self.is_over.load(Ordering::SeqCst);
        if is_over { Loss::Over } else { Loss::Gone }
    }
}

fn has_word(bytes: &[u8]) -> bool {
    bytes.windows(ABORTED.len()).any(|word| word == ABORTED.as_bytes())
}

impl Read for Joined {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        // The flag is set before the word leaves the socket, because the thread that watches looks in both places.
        let Connection { socket, is_over, .. } = &*self.0;
        let len = socket.peek(bytes)?;
        if has_word(&bytes[..len]) {
            is_over.store(true, Ordering::SeqCst);
        }
        (&mut &*socket).read(&mut bytes[..len])
    }
}

impl Write for Joined {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&self.0.socket).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Ends the thread that watches, too. A connection that has failed is closed already.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_invitation_comes_back(key: [u8; KEY_BYTES], ip: IpAddr, port: u16) {
            let invitation = Invitation { address: SocketAddr::new(ip, port), key };
            prop_assert_eq!(invitation.to_string().parse(), Ok(invitation.clone()));
            let shown = format!("{invitation:?}");
            prop_assert!(!shown.contains(&hex::digits(&key)));
        }

        #[test]
        fn no_text_panics(text: String, address in "127.0.0.1:4/.{0,40}") {
            let _ = text.parse::<Invitation>();
            let _ = address.parse::<Invitation>();
        }
    }
}
