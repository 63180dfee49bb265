//! An address that several providers of this host share. Discriminators tell the providers apart.
//!
//! On hardware all programs of a host open one NIC, which has one address. A UDP socket belongs to one
//! provider. So the first provider at an address holds its socket, and every other provider is a guest.
//! A guest has a socket at another port, and registers with the holder the discriminators at which it
//! accepts requests.
//!
//! ```text
//!   peer                         holder                     guest
//!
//!                                       <--- register ----  listens at a discriminator
//!   request to the address --->  passes it on ----------->
//!          <------------------------------- accept --------  from its own port
//! ```
//!
//! From then on peer and guest communicate without the holder ([`super::ways`]). Each guest has a Unix
//! socket to the holder ([`Agent`]), so that each side notices the other's end. When the holder has
//! gone, one of the guests takes the address, and the others register with the new holder.

use super::host;
use crate::vi::agent::{Agent, Conn, Heard};
use netdyno_host::datagram::{DatagramSocket, DatagramWire};
use netdyno_protocol::frame::vi_signal::{LONGEST, Request, Signal};
use rustix::io::Errno;
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::thread;
use std::time::{Duration, Instant};

/// The prefix of the holders' socket names.
const SPACE: &str = "netdyno-vi-udp";
/// Attempts to connect to the holder of a taken address, which may not listen yet.
const ATTEMPTS: u32 = 10;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(1);
/// Time between two attempts of a guest to find a holder, or to become the holder.
const SEEK_AGAIN: Duration = Duration::from_millis(100);
/// Time between two attempts of a guest to tell a holder whose queue is full.
const TELL_AGAIN: Duration = Duration::from_millis(10);
/// Requests of each kind that the holder remembers, because peers repeat them until they are answered.
const MOST_REMEMBERED: usize = 1024;
/// Maximum number of datagrams at the shared address that are taken in one poll.
const AT_ONCE: usize = 16;

/// The first byte of a guest's message: the guest exists, or it starts or stops to listen at the
/// discriminator that follows.
const HERE: u8 = b'=';
const LISTEN: u8 = b'+';
const IGNORE: u8 = b'-';
/// The first byte of a request that the holder passes on. Then follow the length of the sender's
/// address, that address, and the datagram.
const PASSED: u8 = b'>';

/// A datagram for this provider that arrived at the shared address, and its sender.
pub type Passed = (Vec<u8>, SocketAddr);

pub struct Sharing {
    agent: Agent,
    address: SocketAddr,
    /// The name of the holder's Unix socket: the shared address as text.
    name: Vec<u8>,
    part: Part,
    /// The discriminators at which this provider listens, and how often each.
    listening: HashMap<Vec<u8>, usize>,
    /// A guest's messages to the holder that its queue has not taken: the holder may not have polled for long.
    untold: VecDeque<Vec<u8>>,
    heard: VecDeque<Heard>,
    passed: VecDeque<Passed>,
}

enum Part {
    Holder(Box<Holder>),
    Guest(Conn),
    /// The holder has gone, and no new one is known.
    Seeking {
        again: Instant,
    },
}

#[derive(Default)]
struct Holder {
    /// The discriminators at which each guest listens.
    guests: HashMap<Conn, Vec<Vec<u8>>>,
    /// The discriminators at which guests listened before. A peer repeats its request until it has learnt that a guest
    /// has accepted it, and the guest may not listen any more.
    left: VecDeque<(Vec<u8>, Conn)>,
    /// The numbers of requests that were passed on, and the guest of each.
    passed: VecDeque<(u64, Conn)>,
    /// The numbers of requests to the holder itself. A late copy must not go to a guest that has
    /// registered since.
    own: VecDeque<u64>,
    /// The socket at the shared address, if another provider held it before.
    socket: Option<DatagramSocket>,
}

impl Holder {
    /// Returns the guests that the request with this number was passed on to.
    fn passed_to(&self, number: u64) -> Vec<Conn> {
        self.passed.iter().filter(|(known, _)| *known == number).map(|(_, guest)| *guest).collect()
    }

    fn guests_at(&self, discriminator: &[u8]) -> Vec<Conn> {
        let listens = |places: &[Vec<u8>]| places.iter().any(|place| place == discriminator);
        self.guests.iter().filter(|(_, places)| listens(places)).map(|(conn, _)| *conn).collect()
    }

    fn remember_passed(&mut self, number: u64, guest: Conn) {
        if !self.passed.contains(&(number, guest)) {
            remember(&mut self.passed, (number, guest));
        }
    }

    /// Returns the guests that a peer-to-peer request is for. If several peers use the same
    /// discriminator, all of them get the request; each knows which request is its own.
    fn peers_of(&mut self, request: &Request) -> Vec<Conn> {
        let mut guests = self.guests_at(&request.to.discriminator);
        let listened = self.left.iter().filter(|(place, _)| *place == request.to.discriminator);
        for (_, guest) in listened {
            if !guests.contains(guest) {
                guests.push(*guest);
            }
        }
        guests.iter().for_each(|guest| self.remember_passed(request.number, *guest));
        guests
    }

    /// Returns the guest that a client's request is for; `None` if it is for the holder.
    fn server_of(&mut self, request: &Request, is_own: bool) -> Option<Conn> {
        if self.own.contains(&request.number) {
            return None;
        }
        let known = self.passed_to(request.number).first().copied();
        if known.is_some() {
            return known;
        }
        let guests = if is_own { Vec::new() } else { self.guests_at(&request.to.discriminator) };
        match guests.first() {
            Some(guest) => self.remember_passed(request.number, *guest),
            None => remember(&mut self.own, request.number),
        }
        guests.first().copied()
    }

    /// Takes a message of a guest.
    fn take(&mut self, conn: Conn, said: &[u8]) {
        let places = self.guests.entry(conn).or_default();
        match said.split_first() {
            Some((&LISTEN, place)) => places.push(place.to_vec()),
            Some((&IGNORE, place)) => {
                places.retain(|known| known != place);
                let left = (place.to_vec(), conn);
                if !self.left.contains(&left) {
                    remember(&mut self.left, left);
                }
            }
            _ => {}
        }
    }

    fn lose(&mut self, conn: Conn) {
        self.guests.remove(&conn);
        self.passed.retain(|(_, guest)| *guest != conn);
        self.left.retain(|(_, guest)| *guest != conn);
    }
}

impl Sharing {
    /// Becomes the holder of the address of the provider's own socket.
    ///
    /// # Errors
    /// Returns an error if the system refuses a resource.
    pub fn hold(socket: &DatagramSocket) -> Result<Self, Errno> {
        let mut sharing = Self::open(socket.local(), Part::Holder(Box::default()))?;
        // If another user owns the name, the address is not shared.
        let _ = sharing.agent.listen(&sharing.name);
        Ok(sharing)
    }

    /// Becomes a guest at an address. Returns `None` if no provider of this user holds it.
    ///
    /// # Errors
    /// Returns an error if the system refuses a resource.
    pub fn join(address: SocketAddr) -> Result<Option<Self>, Errno> {
        let mut sharing = Self::open(address, Part::Seeking { again: Instant::now() })?;
        for _ in 0..ATTEMPTS {
            if sharing.register() {
                return Ok(Some(sharing));
            }
            thread::sleep(BETWEEN_ATTEMPTS);
        }
        Ok(None)
    }

    fn open(address: SocketAddr, part: Part) -> Result<Self, Errno> {
        Ok(Self {
            agent: Agent::open(SPACE)?,
            address,
            name: address.to_string().into_bytes(),
            part,
            listening: HashMap::new(),
            untold: VecDeque::new(),
            heard: VecDeque::new(),
            passed: VecDeque::new(),
        })
    }

    /// Returns the shared address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Makes the descriptor readable when the provider's own socket is readable.
    ///
    /// # Errors
    /// Returns an error if the system refuses.
    pub fn watch(&self, socket: &DatagramSocket) -> Result<(), Errno> {
        self.agent.watch_other(socket.as_fd())
    }

    /// Returns the descriptor that becomes readable when there is something for the provider.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.agent.descriptor()
    }

    /// Returns whether no guest depends on this provider.
    pub fn is_alone(&self) -> bool {
        !matches!(&self.part, Part::Holder(holder) if !holder.guests.is_empty())
    }

    /// Returns the time until the provider tries again to find a holder, or to be found as one: the
    /// previous holder may still own the name, or this process may have no descriptor left to answer.
    pub fn until_due(&self) -> Duration {
        match self.part {
            Part::Seeking { again } => again.saturating_duration_since(Instant::now()),
            Part::Holder(_) if !self.agent.has_place(&self.name) || self.agent.has_unaccepted() => SEEK_AGAIN,
            Part::Guest(_) if !self.untold.is_empty() => TELL_AGAIN,
            Part::Holder(_) | Part::Guest(_) => Duration::MAX,
        }
    }

    /// Starts to listen at a discriminator.
    pub fn listen(&mut self, discriminator: &[u8]) {
        let count = self.listening.entry(discriminator.to_vec()).or_default();
        *count += 1;
        if *count == 1 {
            self.tell_holder(LISTEN, discriminator);
        }
    }

    /// Ends one [`Sharing::listen`] at a discriminator.
    pub fn ignore(&mut self, discriminator: &[u8]) {
        let Some(count) = self.listening.get_mut(discriminator) else { return };
        *count -= 1;
        if *count == 0 {
            self.listening.remove(discriminator);
            self.tell_holder(IGNORE, discriminator);
        }
    }

    fn tell_holder(&mut self, what: u8, discriminator: &[u8]) {
        self.untold.push_back([&[what], discriminator].concat());
        self.tell();
    }

    /// Sends the holder what it has not been told, as far as its queue takes it. Another provider than a guest tells
    /// nothing.
    fn tell(&mut self) {
        let Part::Guest(holder) = self.part else { return self.untold.clear() };
        while self.untold.front().is_some_and(|message| self.agent.say(holder, message, None)) {
            self.untold.pop_front();
        }
    }

    /// Registers with the holder. Returns false if there is no holder.
    fn register(&mut self) -> bool {
        let Ok(holder) = self.agent.connect(&self.name) else { return false };
        self.part = Part::Guest(holder);
        let places = self.listening.keys().map(|discriminator| [&[LISTEN], &discriminator[..]].concat());
        self.untold = [vec![HERE]].into_iter().chain(places).collect();
        self.tell();
        true
    }

    /// Becomes the holder if there is none, or registers with the new holder.
    fn seek(&mut self) {
        if let Ok(socket) = DatagramSocket::bind_wide(self.address)
            && self.watch(&socket).is_ok()
        {
            let _ = self.agent.listen(&self.name);
            self.part = Part::Holder(Box::new(Holder { socket: Some(socket), ..Holder::default() }));
        } else if !self.register() {
            self.part = Part::Seeking { again: Instant::now() + SEEK_AGAIN };
        }
    }

    /// Takes the messages of the guests or of the holder.
    fn attend(&mut self) {
        self.agent.hear(&mut self.heard);
        while let Some(heard) = self.heard.pop_front() {
            match heard {
                Heard::Message { conn, bytes, .. } => match &mut self.part {
                    Part::Holder(holder) => holder.take(conn, &bytes),
                    Part::Guest(_) | Part::Seeking { .. } => self.passed.extend(parse_passed(&bytes)),
                },
                Heard::Gone(conn) => self.lose(conn),
            }
        }
        if matches!(self.part, Part::Seeking { again } if again <= Instant::now()) {
            self.seek();
        }
        self.tell();
    }

    fn lose(&mut self, conn: Conn) {
        self.agent.close(conn);
        match &mut self.part {
            Part::Holder(holder) => holder.lose(conn),
            Part::Guest(holder) if *holder == conn => self.part = Part::Seeking { again: Instant::now() },
            Part::Guest(_) | Part::Seeking { .. } => {}
        }
    }

    /// Returns the datagrams for this provider that arrived at the shared address but not at its own
    /// socket.
    pub fn hear(&mut self) -> VecDeque<Passed> {
        self.attend();
        if let Part::Holder(holder) = &mut self.part
            && let Some(socket) = &mut holder.socket
        {
            let mut room = [0; LONGEST + 1];
            for _ in 0..AT_ONCE {
                let Some(datagrams) = socket.receive(&mut room) else { break };
                self.passed.push_back((room[..datagrams.len].to_vec(), datagrams.from));
            }
        }
        std::mem::take(&mut self.passed)
    }

    /// Passes a signal that arrived at the shared address on to its guests. Returns whether it is for
    /// nobody else.
    pub fn pass_on(&mut self, signal: &Signal, bytes: &[u8], from: SocketAddr) -> bool {
        if !matches!(self.part, Part::Holder(_)) {
            return false;
        }
        // A guest may have registered meanwhile.
        self.attend();
        let Part::Holder(holder) = &mut self.part else { return false };
        let (guests, is_theirs) = match signal {
            Signal::Request(request) if request.is_of_peer => (holder.peers_of(request), false),
            Signal::Request(request) => {
                let is_own = self.listening.contains_key(&request.to.discriminator);
                let server = holder.server_of(request, is_own);
                (server.into_iter().collect(), server.is_some())
            }
            Signal::Disconnect { to: 0, number } => (holder.passed_to(*number), false),
            Signal::Accept { .. } | Signal::Refuse { .. } | Signal::Disconnect { .. } => return false,
        };
        let origin = host::encode(from);
        let passed = [&[PASSED, origin.len() as u8], &origin[..], bytes].concat();
        for guest in guests {
            self.agent.say(guest, &passed, None);
        }
        is_theirs
    }
}

fn remember<T>(known: &mut VecDeque<T>, new: T) {
    if known.len() == MOST_REMEMBERED {
        known.pop_front();
    }
    known.push_back(new);
}

/// Parses the datagram in a message of the holder.
fn parse_passed(said: &[u8]) -> Option<Passed> {
    let (&[PASSED, len], rest) = said.split_first_chunk()? else { return None };
    let (origin, datagram) = rest.split_at_checked(len.into())?;
    Some((datagram.to_vec(), host::parse(origin)?))
}
