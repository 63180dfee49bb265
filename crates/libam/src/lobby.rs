//! The listening socket of the process. An endpoint that has a message for a named endpoint calls here, and both exchange
//! the addresses of their ports of [`netdyno_stack::am`].
//!
//! ```text
//! caller                                       thread of the lobby         the called endpoint, in its poll
//! greeting: version, number and key  ----->    finds the endpoint
//!                                    <-----    its host, or refuses
//! own name, wire, address of a port  ----->    puts the call into the inbox ----> opens a port, connects
//!                                    <-------------------------------------------- address of its port
//! ```
//!
//! A rank that ends the job in a handler cannot send messages, so it calls here too. It sends the end instead of an
//! address. A rank whose process ends, as by `exit`, says that it leaves:
//!
//! ```text
//! own name, END, the end             ----->    puts the notice into the inbox
//! or own name, LEFT                  <-----    accepted
//! ```
//!
//! A caller that says nothing or nonsense costs a thread for a second, one that knows a key for a few, and there are few of
//! these threads. A caller that finds none calls again.

use crate::lock::held;
use crate::name::Name;
use crate::settings;
use netdyno_host::signals::without_signals;
use netdyno_host::timed::Timed;
use netdyno_host::{machine, random};
use netdyno_stack::am::Wire;
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// The beginning of a greeting.
const GREETING: [u8; 8] = *b"ndam2/1\n";
/// Bytes of the longest address of a port, and of the longest name of a host.
const LONGEST: usize = 4096;
/// Callers that are served at once.
const CALLERS: usize = 64;
/// Time for the greeting of a caller, and time for its offer after a greeting with the right key.
const GREETING_TIME: Duration = Duration::from_secs(1);
const OFFER_TIME: Duration = Duration::from_secs(10);
/// Time for a step of a call that the lobby's thread answers.
const STEP: Duration = Duration::from_secs(5);
/// Time for the rest of an answer.
const REST: Duration = Duration::from_secs(1);
/// The most calls, and the most notices, that wait for an endpoint.
const MOST_WAITING: usize = 1 << 16;
/// Time in which a caller calls again, if the lobby has too many callers.
const CALL_AGAIN: Duration = Duration::from_secs(15);

/// Answers to a greeting and to a call.
pub const ACCEPTED: u8 = 0;
pub const REFUSED: u8 = 1;
/// In the place of a wire: the call tells the end of the job, or of the caller.
const END: u8 = 2;
const LEFT: u8 = 3;

/// A call for an endpoint.
pub struct Call {
    pub from: Name,
    pub wire: Wire,
    /// The address of the caller's port.
    pub address: Vec<u8>,
    pub stream: TcpStream,
}

/// The end of the job, as a rank tells it: the exit code, the barriers and the gatherings of that rank.
pub type End = [u64; 3];

/// What a rank tells without a message.
#[derive(Clone, Copy)]
pub enum Notice {
    /// It has ended the job.
    End(End),
    /// Its process ends, and it has not ended the job.
    Left,
}

/// Takes a notice in the thread that serves its caller.
pub type Hearer = fn(&Name, Notice);

/// The calls for an endpoint that it has not answered yet.
pub struct Inbox {
    /// `None` once the endpoint was freed.
    calls: Mutex<Option<Vec<Call>>>,
    /// What ranks have told, the last of each.
    notices: Mutex<Vec<(Name, Notice)>>,
    /// The endpoint is that of the job. Others take no notices.
    hearer: OnceLock<Hearer>,
}

impl Default for Inbox {
    fn default() -> Self {
        Self { calls: Mutex::new(Some(Vec::new())), notices: Mutex::default(), hearer: OnceLock::new() }
    }
}

/// Whether a call has come since the last [`take_news`].
static HAS_NEWS: AtomicBool = AtomicBool::new(false);

/// Reports whether a call has come since the inboxes were last looked at. Costs next to nothing while there is none.
#[inline]
pub fn has_news() -> bool {
    // A call that this load misses is seen by a later poll.
    HAS_NEWS.load(Ordering::Relaxed)
}

/// Says that the inboxes are looked at now.
pub fn take_news() {
    // Before the look: a call that comes later is news again. The locks of the inboxes order the rest.
    HAS_NEWS.store(false, Ordering::SeqCst);
}

impl Inbox {
    /// Takes the calls that have come.
    pub fn take(&self) -> Vec<Call> {
        held(&self.calls).as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Takes what ranks have told.
    pub fn take_notices(&self) -> Vec<(Name, Notice)> {
        std::mem::take(&mut *held(&self.notices))
    }

    /// Takes notices from now on, as the endpoint of the job. `hearer` is told of each at once, and the thread that polls
    /// the endpoint takes it later.
    pub fn hear_notices(&self, hearer: Hearer) {
        let _ = self.hearer.set(hearer);
    }

    /// Returns whether the notice was taken.
    fn put_notice(&self, from: Name, notice: Notice) -> bool {
        let Some(hearer) = self.hearer.get() else { return false };
        let mut notices = held(&self.notices);
        notices.retain(|(other, _)| *other != from);
        if notices.len() >= MOST_WAITING {
            return false;
        }
        notices.push((from, notice));
        HAS_NEWS.store(true, Ordering::Relaxed);
        drop(notices);
        hearer(&from, notice);
        true
    }

    /// Hangs up on all callers, now and later.
    pub fn close(&self) {
        *held(&self.calls) = None;
    }

    /// Keeps a call until it is answered. A caller that calls again has given up before. Hangs up if too many wait.
    fn put(&self, call: Call) {
        if let Some(calls) = &mut *held(&self.calls) {
            calls.retain(|other| other.from != call.from);
            if calls.len() >= MOST_WAITING {
                return;
            }
            calls.push(call);
            HAS_NEWS.store(true, Ordering::Relaxed);
        }
    }

    fn is_empty(&self) -> bool {
        held(&self.calls).as_ref().is_none_or(Vec::is_empty) && held(&self.notices).is_empty()
    }
}

/// The listening socket of the process, and its endpoints by number and key.
pub struct Lobby {
    at: SocketAddrV4,
    inboxes: Mutex<HashMap<(u32, u32), Arc<Inbox>>>,
    next: AtomicU32,
    callers: AtomicUsize,
}

static LOBBY: Mutex<Option<Arc<Lobby>>> = Mutex::new(None);

/// Returns the lobby of the process. The first call opens it, at the address of the settings.
///
/// # Errors
/// Returns an error text if the address is not valid, or if the process cannot listen there.
pub fn open() -> Result<Arc<Lobby>, String> {
    if let Some(lobby) = &*held(&LOBBY) {
        return Ok(lobby.clone());
    }
    open_at(settings::address()?)
}

/// Opens the lobby of the process at an address, if it is not open.
///
/// # Errors
/// Returns an error text if the process cannot listen there.
pub fn open_at(address: Ipv4Addr) -> Result<Arc<Lobby>, String> {
    let mut opened = held(&LOBBY);
    if let Some(lobby) = &*opened {
        return Ok(lobby.clone());
    }
    let lobby =
        Lobby::open(address).map_err(|error| format!("this process cannot listen at {address}: {error}"))?;
    *opened = Some(lobby.clone());
    Ok(lobby)
}

impl Lobby {
    fn open(address: Ipv4Addr) -> io::Result<Arc<Self>> {
        let listener = TcpListener::bind((address, 0))?;
        let SocketAddr::V4(at) = listener.local_addr()? else {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        };
        let lobby = Arc::new(Self {
            at,
            inboxes: Mutex::default(),
            next: AtomicU32::new(0),
            callers: AtomicUsize::new(0),
        });
        let of_thread = lobby.clone();
        let builder = thread::Builder::new().name("netdyno-lobby".into());
        without_signals(|| builder.spawn(move || of_thread.listen(&listener)))?;
        Ok(lobby)
    }

    /// Adds an endpoint. Returns its inbox and its name.
    ///
    /// # Errors
    /// Returns an error if the system has no random bytes.
    pub fn add(&self) -> io::Result<(Arc<Inbox>, Name)> {
        let identity = (self.next.fetch_add(1, Ordering::Relaxed), u32::from_le_bytes(random::bytes()?));
        let inbox = Arc::<Inbox>::default();
        held(&self.inboxes).insert(identity, inbox.clone());
        Ok((inbox, Name::new(self.at, identity.0, identity.1)))
    }

    /// Removes an endpoint. Calls for it are refused from now on.
    pub fn remove(&self, name: &Name) {
        held(&self.inboxes).remove(&name.identity());
    }

    /// Says that there are calls, if an inbox still has some: those for endpoints of other threads.
    pub fn keep_news(&self) {
        if held(&self.inboxes).values().any(|inbox| !inbox.is_empty()) {
            HAS_NEWS.store(true, Ordering::Relaxed);
        }
    }

    fn listen(self: &Arc<Self>, listener: &TcpListener) {
        for stream in listener.incoming() {
            let Ok(stream) = stream else {
                // No descriptor is free: one may be later.
                thread::sleep(Duration::from_millis(10));
                continue;
            };
            if self.callers.fetch_add(1, Ordering::Relaxed) >= CALLERS {
                self.callers.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let lobby = self.clone();
            let spawned = thread::Builder::new().name("netdyno-caller".into()).spawn(move || {
                // A caller that fails is told nothing more.
                let _ = lobby.serve(stream);
                lobby.callers.fetch_sub(1, Ordering::Relaxed);
            });
            if spawned.is_err() {
                self.callers.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// Takes a call and puts it into the inbox of the endpoint.
    fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_write_timeout(Some(STEP))?;
        let mut greeting = [0; GREETING.len() + 8];
        Timed::new(&stream, GREETING_TIME).read_exact(&mut greeting)?;
        let (version, identity) = greeting.split_at(GREETING.len());
        if version != GREETING {
            return stream.write_all(&[REFUSED]);
        }
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|nth| identity[at + nth]));
        let Some(inbox) = held(&self.inboxes).get(&(word(0), word(4))).cloned() else {
            return stream.write_all(&[REFUSED]);
        };
        stream.write_all(&[&[ACCEPTED], &counted(machine::host().as_bytes())[..]].concat())?;
        let mut front = [0; Name::LEN + 1];
        let mut offer = Timed::new(&stream, OFFER_TIME);
        offer.read_exact(&mut front)?;
        let from = Name::decode(&std::array::from_fn(|at| front[at]));
        let wire = match front[Name::LEN] {
            0 => Wire::Shm,
            1 => Wire::Udp,
            other => {
                let is_taken =
                    read_notice(other, &mut offer)?.is_some_and(|notice| inbox.put_notice(from, notice));
                return stream.write_all(&[if is_taken { ACCEPTED } else { REFUSED }]);
            }
        };
        let address = read_counted(&mut offer)?;
        inbox.put(Call { from, wire, address, stream });
        Ok(())
    }
}

/// A call of this process for an endpoint.
pub struct Calling(TcpStream);

impl Calling {
    /// Greets the process of an endpoint. Returns the call and the name of its host, or `None` if the process has no
    /// such endpoint. A process that is stopped answers once it goes on, if that is in time.
    ///
    /// # Errors
    /// Returns an error if the process cannot be reached, or does not answer in time.
    pub fn begin(name: &Name, until: Instant) -> io::Result<Option<(Self, String)>> {
        let began = Instant::now();
        loop {
            match Self::greet(name, until) {
                Err(error) if is_dismissal(&error) && began.elapsed() < CALL_AGAIN => {
                    thread::sleep(Duration::from_millis(10));
                }
                begun => return begun,
            }
        }
    }

    fn greet(name: &Name, until: Instant) -> io::Result<Option<(Self, String)>> {
        let left = until.saturating_duration_since(Instant::now()).min(STEP);
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let mut stream = TcpStream::connect_timeout(&name.at().into(), left)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(left))?;
        let (number, key) = name.identity();
        stream.write_all(&[&GREETING[..], &number.to_le_bytes(), &key.to_le_bytes()].concat())?;
        let mut answers = Timed::until(&stream, until);
        let mut answer = [0];
        answers.read_exact(&mut answer)?;
        if answer != [ACCEPTED] {
            return Ok(None);
        }
        let host = read_counted(&mut answers)?;
        Ok(Some((Self(stream), String::from_utf8_lossy(&host).into_owned())))
    }

    /// Sends the own name, and the address of the port.
    ///
    /// # Errors
    /// Returns an error if the process is gone.
    pub fn offer(&mut self, own: &Name, wire: Wire, address: &[u8]) -> io::Result<()> {
        let wire = u8::from(wire != Wire::Shm);
        self.0.write_all(&[&own.encode()[..], &[wire], &counted(address)].concat())?;
        self.0.set_nonblocking(true)
    }

    /// Sends the own name and a notice. Waits until it was taken.
    ///
    /// # Errors
    /// Returns an error if the process is gone, or does not take it in time.
    pub fn tell(mut self, own: &Name, notice: Notice, until: Instant) -> io::Result<()> {
        let notice = match notice {
            Notice::End(end) => [&[END], &end.map(u64::to_le_bytes).concat()[..]].concat(),
            Notice::Left => vec![LEFT],
        };
        self.0.write_all(&[&own.encode()[..], &notice].concat())?;
        Timed::until(&self.0, until).read_exact(&mut [0])
    }

    /// Returns the address of the other port, once the endpoint has answered. An empty address refuses the call.
    ///
    /// # Errors
    /// Returns an error if the process is gone.
    pub fn answered(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut answer = [0];
        match self.0.read(&mut answer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        }
        if answer != [ACCEPTED] {
            return Ok(Some(Vec::new()));
        }
        // A correct endpoint has sent the rest with the first byte.
        self.0.set_nonblocking(false)?;
        read_counted(&mut Timed::new(&self.0, REST)).map(Some)
    }
}

/// Reports whether a lobby has closed a connection without a word: it has too many callers, or this one was too slow.
fn is_dismissal(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

/// Answers a call with the address of a port, or refuses it.
pub fn answer(mut stream: &TcpStream, address: Option<&[u8]>) {
    let answer = match address {
        Some(address) => [&[ACCEPTED], &counted(address)[..]].concat(),
        None => vec![REFUSED],
    };
    // A caller that is gone needs no answer.
    let _ = stream.write_all(&answer);
}

/// Reads the rest of a notice that begins with `kind`. Returns `None` if there is no such notice.
fn read_notice(kind: u8, stream: &mut impl Read) -> io::Result<Option<Notice>> {
    Ok(match kind {
        END => {
            let mut end = [[0; 8]; 3];
            end.iter_mut().try_for_each(|word| stream.read_exact(word))?;
            Some(Notice::End(end.map(u64::from_le_bytes)))
        }
        LEFT => Some(Notice::Left),
        _ => None,
    })
}

fn counted(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u16).to_le_bytes(), bytes].concat()
}

fn read_counted(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut len = [0; 2];
    stream.read_exact(&mut len)?;
    let len = usize::from(u16::from_le_bytes(len));
    if len > LONGEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; len];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}
