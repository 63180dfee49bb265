//! Where processes that a launcher has started come to: a port that is open for one launch,
//! with a key of its own, whoever else may knock.

use crate::frame;
use crate::key::Key;
use crate::place::{Place, machine};
use crate::remote::{self, DialError, Hurried, SHAKING};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

/// How often it is looked whether the lobby is closed.
const LOOK: Duration = Duration::from_millis(100);
/// Connections that may be strangers' at once. Each is heard for a few seconds at most.
const KNOCKING_AT_MOST: usize = 256;
/// Time to reach one of several addresses.
const TRYING: Duration = Duration::from_secs(2);
/// Time to reach the lobby.
const REACHING: Duration = Duration::from_secs(10);

/// A process that has come.
#[derive(Debug)]
pub struct Guest {
    /// Its control connection.
    pub control: TcpStream,
    /// Its place, as its launcher told it.
    pub place: Option<Place>,
    /// The machine that it is on.
    pub machine: String,
}

/// What a process says when it comes.
#[derive(Serialize, Deserialize)]
struct Card {
    place: Option<Place>,
    machine: String,
}

/// An open lobby. It closes when it is dropped.
#[derive(Debug)]
pub struct Lobby {
    address: SocketAddr,
    key_text: String,
    guests: Receiver<Guest>,
    is_closed: Arc<AtomicBool>,
}

impl Lobby {
    /// Opens one at an address of this host, any port, with a fresh key.
    ///
    /// # Errors
    /// The system gives no such socket, no random bits or no thread.
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

    /// Where to come to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The key to come with.
    pub fn key_text(&self) -> &str {
        &self.key_text
    }

    /// The next guest, if one comes within `timeout`.
    pub fn next(&self, timeout: Duration) -> Option<Guest> {
        self.guests.recv_timeout(timeout).ok()
    }
}

impl Drop for Lobby {
    fn drop(&mut self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }
}

/// Comes to the lobby at `address`.
///
/// # Errors
/// It cannot be reached, or does not take the key, in a bounded time.
pub fn enter(address: SocketAddr, key: &Key, place: Option<Place>) -> Result<TcpStream, DialError> {
    let mut control = remote::dial(address, Some(key), REACHING)?;
    let failed = |error: frame::FrameError| DialError::Connect(io::Error::other(error.to_string()));
    frame::send(&mut control, &Card { place, machine: machine() }).map_err(failed)?;
    Ok(control)
}

/// Whether the lobby with this key is at `address`: it is asked in, and does not go in.
pub fn is_at(address: SocketAddr, key: &Key) -> bool {
    remote::dial(address, Some(key), TRYING).is_ok()
}

/// Who stands at the door.
struct Porter {
    listener: TcpListener,
    key: Key,
    is_closed: Arc<AtomicBool>,
}

impl Porter {
    fn admit_all(&self, guests: &mpsc::Sender<Guest>) {
        let knocking = Arc::new(AtomicUsize::new(0));
        let timeout = Timespec::try_from(LOOK).ok();
        while !self.is_closed.load(Ordering::Relaxed) {
            // Interrupted or in vain: there is nothing to accept then.
            let _ = poll(&mut [PollFd::new(&self.listener, PollFlags::IN)], timeout.as_ref());
            let Ok((control, _)) = self.listener.accept() else { continue };
            if knocking.fetch_add(1, Ordering::Relaxed) >= KNOCKING_AT_MOST {
                knocking.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let (key, guests, left) = (self.key.clone(), guests.clone(), Arc::clone(&knocking));
            let hear = move || {
                if let Some(guest) = admit(control, &key) {
                    // Nobody waits for it where the lobby is closed.
                    let _ = guests.send(guest);
                }
                left.fetch_sub(1, Ordering::Relaxed);
            };
            // Where there is no thread for it, it comes in vain, and its launch says so.
            let _ = thread::Builder::new().spawn(hear);
        }
    }
}

/// A stranger is turned away.
fn admit(control: TcpStream, key: &Key) -> Option<Guest> {
    control.set_nonblocking(false).ok()?;
    remote::welcome(&control, Some(key)).ok()?;
    let Card { place, machine } = frame::receive(&mut Hurried::new(&control, SHAKING)).ok()?;
    Some(Guest { control, place, machine })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::Ipv4Addr;

    const LONG: Duration = Duration::from_secs(20);
    const SHORT: Duration = Duration::from_millis(200);

    fn lobby() -> Lobby {
        Lobby::open(Ipv4Addr::LOCALHOST.into()).unwrap()
    }

    #[test]
    fn who_has_the_key_is_let_in_and_says_its_place() {
        let lobby = lobby();
        let place = Some(Place { rank: 1, procs: 2 });
        let key = Key::new(lobby.key_text()).unwrap();
        enter(lobby.address(), &key, place).unwrap();
        let guest = lobby.next(LONG).unwrap();
        assert_eq!((guest.place, guest.machine), (place, machine()));
        assert!(lobby.next(SHORT).is_none());
    }

    #[test]
    fn strangers_are_turned_away_and_hold_up_nobody() {
        let lobby = lobby();
        let mut silent = TcpStream::connect(lobby.address()).unwrap();
        silent.write_all(b"nety").unwrap();
        let wrong = Key::new("some other key that is long enough").unwrap();
        assert!(enter(lobby.address(), &wrong, None).is_err());
        let key = Key::new(lobby.key_text()).unwrap();
        enter(lobby.address(), &key, None).unwrap();
        assert_eq!(lobby.next(LONG).unwrap().place, None);
    }

    #[test]
    fn where_it_is_can_be_found_out_without_going_in() {
        let lobby = lobby();
        let key = Key::new(lobby.key_text()).unwrap();
        assert!(is_at(lobby.address(), &key));
        assert!(!is_at(lobby.address(), &Key::new("some other key that is long enough").unwrap()));
        assert!(lobby.next(SHORT).is_none());
    }

    #[test]
    fn keys_are_never_the_same() {
        assert_ne!(lobby().key_text(), lobby().key_text());
    }
}
