//! The rendezvous of processes that a launcher has started. It is a TCP port that is open for one launch and
//! has a key of its own. It rejects all other connections.

use crate::connection::Connection;
use crate::frame;
use crate::key::Key;
use crate::place::Place;
use crate::remote::{self, DialError, SHAKING};
use netdyno_host::machine;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

/// Interval at which the port checks whether it must close.
const LOOK: Duration = Duration::from_millis(100);
/// Interval at which the port looks whether it may admit one more.
const FULL: Duration = Duration::from_millis(1);
/// Maximum number of unauthenticated connections at a time. Each is closed after a few seconds at most.
const KNOCKING_AT_MOST: usize = 256;
/// Timeout of a connection to one of several addresses.
const TRYING: Duration = Duration::from_secs(2);
/// Timeout of a connection to the rendezvous.
const REACHING: Duration = Duration::from_secs(10);

/// An authenticated process that has connected.
#[derive(Debug)]
pub struct Arrival {
    /// Its control connection.
    pub control: Connection,
    /// Its rank and the job size, if its launcher reported them.
    pub place: Option<Place>,
    /// Identifier of its machine.
    pub machine: String,
}

/// The first message of a process after the handshake.
#[derive(Serialize, Deserialize)]
struct Card {
    place: Option<Place>,
    machine: String,
}

/// An open rendezvous port. It closes when it is dropped.
#[derive(Debug)]
pub struct Rendezvous {
    address: SocketAddr,
    key_text: String,
    guests: Receiver<Arrival>,
    is_closed: Arc<AtomicBool>,
}

impl Rendezvous {
    /// Opens a port at an address of this host, with a new key.
    ///
    /// # Errors
    /// Returns an I/O error if the system refuses the socket, the random bytes or the thread.
    pub fn open(ip: IpAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((ip, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let key_text = Key::random_text()?;
        let key = Key::new(&key_text).map_err(io::Error::other)?;
        let is_closed = Arc::new(AtomicBool::new(false));
        let (sender, guests) = mpsc::channel();
        let porter = Porter { listener, key, is_closed: Arc::clone(&is_closed) };
        thread::Builder::new().spawn(move || porter.admit_all(&sender))?;
        Ok(Self { address, key_text, guests, is_closed })
    }

    /// Returns the address of the port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the key that a process needs to connect.
    pub fn key_text(&self) -> &str {
        &self.key_text
    }

    /// Returns the next process that connects within `timeout`.
    pub fn next(&self, timeout: Duration) -> Option<Arrival> {
        self.guests.recv_timeout(timeout).ok()
    }
}

impl Drop for Rendezvous {
    fn drop(&mut self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }
}

/// Connects to the rendezvous at `address`, and sends the place of this process.
///
/// # Errors
/// Returns `DialError` if the address cannot be reached or the handshake fails. Both have timeouts.
pub fn enter(address: SocketAddr, key: &Key, place: Option<Place>) -> Result<Connection, DialError> {
    let mut control = remote::dial(address, Some(key), REACHING)?;
    let failed = |error: frame::FrameError| DialError::Connect(io::Error::other(error.to_string()));
    frame::send(&mut control, &Card { place, machine: machine::name() }).map_err(failed)?;
    Ok(control)
}

/// Reports whether a rendezvous with this key is at `address`. It performs the handshake and then
/// disconnects.
pub fn is_at(address: SocketAddr, key: &Key) -> bool {
    remote::dial(address, Some(key), TRYING).is_ok()
}

/// The thread that accepts and authenticates connections.
struct Porter {
    listener: TcpListener,
    key: Key,
    is_closed: Arc<AtomicBool>,
}

impl Porter {
    fn admit_all(&self, guests: &mpsc::Sender<Arrival>) {
        let knocking = Arc::new(AtomicUsize::new(0));
        let timeout = Timespec::try_from(LOOK).ok();
        while !self.is_closed.load(Ordering::Relaxed) {
            // Further ones wait at the door: the processes of a large job come at once.
            if knocking.load(Ordering::Relaxed) >= KNOCKING_AT_MOST {
                thread::sleep(FULL);
                continue;
            }
            // After a timeout or an interrupt, `accept` finds no connection and the loop continues.
            let _ = poll(&mut [PollFd::new(&self.listener, PollFlags::IN)], timeout.as_ref());
            let Ok((control, _)) = self.listener.accept() else {
                thread::sleep(FULL);
                continue;
            };
            knocking.fetch_add(1, Ordering::Relaxed);
            let (key, guests, left) = (self.key.clone(), guests.clone(), Arc::clone(&knocking));
            let hear = move || {
                if let Some(guest) = admit(control, &key) {
                    // Fails if the rendezvous is already closed, which is harmless.
                    let _ = guests.send(guest);
                }
                left.fetch_sub(1, Ordering::Relaxed);
            };
            // If no thread can start, the connection is dropped. The process then reports the failure to its
            // launcher.
            if thread::Builder::new().spawn(hear).is_err() {
                knocking.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }
}

/// Authenticates a connection and receives its first message. Returns `None` for an unknown peer.
fn admit(control: TcpStream, key: &Key) -> Option<Arrival> {
    control.set_nonblocking(false).ok()?;
    let mut control = remote::welcome(control, Some(key)).ok()?;
    let Card { place, machine } = control.receive_within(SHAKING).ok()?;
    Some(Arrival { control, place, machine })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::Ipv4Addr;

    const LONG: Duration = Duration::from_secs(20);
    const SHORT: Duration = Duration::from_millis(200);

    fn rendezvous() -> Rendezvous {
        Rendezvous::open(Ipv4Addr::LOCALHOST.into()).unwrap()
    }

    #[test]
    fn who_has_the_key_is_let_in_and_says_its_place() {
        let rendezvous = rendezvous();
        let place = Some(Place { rank: 1, procs: 2 });
        let key = Key::new(rendezvous.key_text()).unwrap();
        enter(rendezvous.address(), &key, place).unwrap();
        let guest = rendezvous.next(LONG).unwrap();
        assert_eq!((guest.place, guest.machine), (place, machine::name()));
        assert!(rendezvous.next(SHORT).is_none());
    }

    #[test]
    fn strangers_are_turned_away_and_hold_up_nobody() {
        let rendezvous = rendezvous();
        let mut silent = TcpStream::connect(rendezvous.address()).unwrap();
        silent.write_all(b"nety").unwrap();
        let wrong = Key::new("some other key that is long enough").unwrap();
        assert!(enter(rendezvous.address(), &wrong, None).is_err());
        let key = Key::new(rendezvous.key_text()).unwrap();
        enter(rendezvous.address(), &key, None).unwrap();
        assert_eq!(rendezvous.next(LONG).unwrap().place, None);
    }

    #[test]
    fn where_it_is_can_be_found_out_without_going_in() {
        let rendezvous = rendezvous();
        let key = Key::new(rendezvous.key_text()).unwrap();
        assert!(is_at(rendezvous.address(), &key));
        assert!(!is_at(rendezvous.address(), &Key::new("some other key that is long enough").unwrap()));
        assert!(rendezvous.next(SHORT).is_none());
    }

    #[test]
    fn keys_are_never_the_same() {
        assert_ne!(rendezvous().key_text(), rendezvous().key_text());
    }
}
