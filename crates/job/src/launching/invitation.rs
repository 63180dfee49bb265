//! What a rank needs to connect to the process that has started the job: an address and a secret key. It travels as one
//! word of a command line.

use crate::place::Place;
use crate::pmi::{ABORTED, argument};
use netdyno_host::signals::without_signals;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv, sockopt};
use std::fmt::{self, Write as _};
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
/// Time without a word after which a host is asked whether it is there, and time between two such questions.
const SILENCE: Duration = Duration::from_secs(30);
const ASK_EVERY: Duration = Duration::from_secs(10);
/// Questions without an answer after which the host is lost.
const ASK_AT_MOST: u32 = 3;

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
        write!(f, "{}/{}", self.address, digits(&self.key))
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
        if key.len() != 2 * KEY_BYTES || !key.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(NoInvitation);
        }
        let mut bytes = [0; KEY_BYTES];
        for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(&key[at..at + 2], 16).map_err(|_| NoInvitation)?;
        }
        Ok(Self { address, key: bytes })
    }
}

/// Returns the key as hexadecimal digits.
fn digits(key: &[u8]) -> String {
    key.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
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
    flags: Arc<Flags>,
}

/// What is known about a connection when it ends.
#[derive(Debug, Default)]
struct Flags {
    /// Whether this process has closed it.
    is_closed: AtomicBool,
    /// Whether this process has read that the job is over.
    is_over: AtomicBool,
}

impl Invitation {
    /// Returns the first line of a rank.
    pub(super) fn greeting(&self) -> String {
        format!("{GREETING}{}\n", digits(&self.key))
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
        keep_alive(&socket)?;
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
        Ok(Some((Joined(Arc::new(Connection { socket, flags: Arc::default() })), place)))
    }
}

/// Lets the system notice that the host at the other end is gone.
pub(super) fn keep_alive(socket: &TcpStream) -> io::Result<()> {
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, SILENCE)?;
    sockopt::set_tcp_keepintvl(socket, ASK_EVERY)?;
    sockopt::set_tcp_keepcnt(socket, ASK_AT_MOST)?;
    // Bytes that the other host does not acknowledge suspend the questions.
    sockopt::set_tcp_user_timeout(socket, (SILENCE + ASK_EVERY * ASK_AT_MOST).as_millis() as u32)?;
    socket.set_nodelay(true)
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
        self.0.flags.is_closed.store(true, Ordering::SeqCst);
    }

    /// Starts a thread that calls `lost` once the connection has ended, unless this process has closed it.
    ///
    /// # Errors
    /// Returns an I/O error if the system refuses the thread.
    pub fn watch(&self, lost: impl FnOnce(Loss) + Send + 'static) -> io::Result<()> {
        let (socket, flags) = (self.0.socket.try_clone()?, Arc::clone(&self.0.flags));
        let watch = move || {
            await_end(&socket);
            if !flags.is_closed.load(Ordering::SeqCst) {
                lost(why(&socket, &flags));
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

/// Finds the word with which the other end has closed the connection, in what is not read or was.
fn why(socket: &TcpStream, flags: &Flags) -> Loss {
    let mut bytes = [0; 4096];
    let len = recv(socket, &mut bytes[..], RecvFlags::PEEK | RecvFlags::DONTWAIT).map_or(0, |(len, _)| len);
    let is_over = has_word(&bytes[..len]) || flags.is_over.load(Ordering::SeqCst);
    if is_over { Loss::Over } else { Loss::Gone }
}

fn has_word(bytes: &[u8]) -> bool {
    bytes.windows(ABORTED.len()).any(|word| word == ABORTED.as_bytes())
}

impl Read for Joined {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        // The flag is set before the word leaves the socket, because the thread that watches looks in both places.
        let Connection { socket, flags } = &*self.0;
        let len = socket.peek(bytes)?;
        if has_word(&bytes[..len]) {
            flags.is_over.store(true, Ordering::SeqCst);
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
        self.flags.is_closed.store(true, Ordering::SeqCst);
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
            prop_assert!(!shown.contains(&digits(&key)));
        }

        #[test]
        fn no_text_panics(text: String, address in "127.0.0.1:4/.{0,40}") {
            let _ = text.parse::<Invitation>();
            let _ = address.parse::<Invitation>();
        }
    }
}
