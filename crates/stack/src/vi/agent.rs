//! The agent: by which processes of one host find each other, and speak beside the wire.
//!
//! An agent that listens under a name has a Unix socket of that name, in the namespace that is abstract:
//! nothing is left of it when the process is gone, however it went. Over shared memory the names are
//! discriminators. Each request for a connection has a socket of its own, over which signals travel, and
//! with them the memory that the peer may write to. Over UDP the names are addresses that NICs share. Both
//! sides ask the kernel for the other's user ([`credentials`]), and speak to processes of their own user
//! alone, in whichever namespace of processes: nothing depends on a number.

use netdyno_host::credentials;
use netdyno_protocol::frame::vi_signal::LONGEST;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect,
    listen, recvmsg, sendmsg, socket_with,
};
use std::collections::{HashMap, VecDeque};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Sockets that may wait to be admitted under a name.
const BACKLOG: i32 = 64;
/// Peers at once, linked or about to be: whoever comes then is turned away.
const MOST: usize = 4096;
/// Of those that have come, how many may have said nothing: whoever asks does so at once.
const MOST_SILENT: usize = 64;
/// Messages of one peer taken in a row.
const AT_ONCE: usize = 64;
/// What wakes a peer.
const KICK: &[u8] = &[0];
/// Of an event: it is of a place where requests come.
const LISTENER: u64 = 1 << 63;
/// Of an event: it is of a socket of the caller's own.
const OTHER: u64 = LISTENER;
/// Bytes of a message at most: a signal, and what is said about it.
const LONGEST_MESSAGE: usize = LONGEST + 64;

/// The socket to one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Conn(u64);

/// What has come.
pub(super) enum Heard {
    /// Bytes of a peer's, with the memory that it passed.
    Message { conn: Conn, pid: u32, bytes: Vec<u8>, memory: Option<OwnedFd> },
    /// A peer is gone, or has said what nobody says.
    Gone(Conn),
}

struct Peer {
    fd: OwnedFd,
    pid: u32,
}

struct Place {
    count: usize,
    id: u64,
    /// `None` while another process of this user has it.
    fd: Option<OwnedFd>,
}

pub(super) struct Agent {
    epoll: OwnedFd,
    /// What its names begin with.
    space: &'static str,
    user: u32,
    next: u64,
    places: HashMap<Vec<u8>, Place>,
    peers: HashMap<u64, Peer>,
    /// Those that have come and said nothing yet, the first that came first.
    silent: VecDeque<u64>,
}

impl Agent {
    /// Opens an agent whose names are told apart from those of other spaces.
    pub(super) fn open(space: &'static str) -> Result<Self, Errno> {
        Ok(Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            space,
            user: rustix::process::geteuid().as_raw(),
            next: 0,
            places: HashMap::new(),
            peers: HashMap::new(),
            silent: VecDeque::new(),
        })
    }

    fn name(&self, discriminator: &[u8]) -> Result<SocketAddrUnix, Errno> {
        let mut name = format!("{}/{}/", self.space, self.user).into_bytes();
        name.extend_from_slice(discriminator);
        SocketAddrUnix::new_abstract_name(&name)
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn watch(&self, fd: BorrowedFd<'_>, id: u64) -> Result<(), Errno> {
        epoll::add(&self.epoll, fd, epoll::EventData::new_u64(id), epoll::EventFlags::IN)
    }

    /// Requests may come at a discriminator from now on.
    ///
    /// # Errors
    /// They can not, for another user has the name.
    pub(super) fn listen(&mut self, discriminator: &[u8]) -> Result<(), Errno> {
        let id = self.number() | LISTENER;
        let place = self.places.entry(discriminator.to_vec());
        place.or_insert(Place { count: 0, id, fd: None }).count += 1;
        self.take_places();
        if !self.has_place(discriminator) && matches!(self.reach(discriminator), Err(Errno::ACCESS)) {
            self.ignore(discriminator);
            return Err(Errno::ACCESS);
        }
        Ok(())
    }

    /// Whether requests come to this process that are for a discriminator.
    pub(super) fn has_place(&self, discriminator: &[u8]) -> bool {
        self.places.get(discriminator).is_some_and(|place| place.fd.is_some())
    }

    /// One fewer waits there.
    pub(super) fn ignore(&mut self, discriminator: &[u8]) {
        if let Some(place) = self.places.get_mut(discriminator) {
            place.count -= 1;
            if place.count == 0 {
                self.places.remove(discriminator);
            }
        }
    }

    /// Places that were another process's may have become free.
    fn take_places(&mut self) {
        let wanted = self.places.iter().filter(|(_, place)| place.fd.is_none());
        for discriminator in wanted.map(|(discriminator, _)| discriminator.clone()).collect::<Vec<_>>() {
            let Ok(fd) = self.open_place(&discriminator) else { continue };
            if let Some(place) = self.places.get_mut(&discriminator) {
                place.fd = Some(fd);
            }
        }
    }

    fn open_place(&self, discriminator: &[u8]) -> Result<OwnedFd, Errno> {
        let fd = socket()?;
        bind(&fd, &self.name(discriminator)?)?;
        listen(&fd, BACKLOG)?;
        if let Some(place) = self.places.get(discriminator) {
            self.watch(fd.as_fd(), place.id)?;
        }
        Ok(fd)
    }

    /// A socket to whoever listens at a discriminator.
    pub(super) fn connect(&mut self, discriminator: &[u8]) -> Result<Conn, Errno> {
        let (fd, pid) = self.reach(discriminator)?;
        self.admit(fd, pid)
    }

    /// The same, with the number of its process.
    fn reach(&self, discriminator: &[u8]) -> Result<(OwnedFd, u32), Errno> {
        let fd = socket()?;
        connect(&fd, &self.name(discriminator)?)?;
        let pid = self.check(&fd)?;
        Ok((fd, pid))
    }

    /// A socket is to a process of this user, or it is none for us.
    fn check(&self, fd: &OwnedFd) -> Result<u32, Errno> {
        let peer = credentials::of_peer(fd).map_err(|_| Errno::ACCESS)?;
        if peer.uid == self.user { Ok(peer.pid) } else { Err(Errno::ACCESS) }
    }

    fn admit(&mut self, fd: OwnedFd, pid: u32) -> Result<Conn, Errno> {
        if self.peers.len() >= MOST {
            return Err(Errno::MFILE);
        }
        let id = self.number();
        self.watch(fd.as_fd(), id)?;
        self.peers.insert(id, Peer { fd, pid });
        Ok(Conn(id))
    }

    /// Says something to a peer, and passes it memory. What cannot be said now is not; whether it was.
    pub(super) fn say(&self, conn: Conn, bytes: &[u8], memory: Option<BorrowedFd<'_>>) -> bool {
        let Some(peer) = self.peers.get(&conn.0) else { return false };
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut passed = SendAncillaryBuffer::new(&mut room);
        let memory = memory.as_slice();
        if !memory.is_empty() {
            passed.push(SendAncillaryMessage::ScmRights(memory));
        }
        // The peer is gone, and its end will be seen; or it does not listen, and is asked again.
        sendmsg(&peer.fd, &[IoSlice::new(bytes)], &mut passed, SendFlags::NOSIGNAL).is_ok()
    }

    /// Wakes a peer.
    pub(super) fn kick(&self, conn: Conn) {
        self.say(conn, KICK, None);
    }

    /// The socket to a peer is not needed any more.
    pub(super) fn close(&mut self, conn: Conn) {
        self.peers.remove(&conn.0);
        self.silent.retain(|silent| *silent != conn.0);
    }

    /// Whether a socket is there: one that has spoken nonsense is closed.
    pub(super) fn knows(&self, conn: Conn) -> bool {
        self.peers.contains_key(&conn.0)
    }

    /// What has come since.
    pub(super) fn hear(&mut self, heard: &mut VecDeque<Heard>) {
        self.take_places();
        let mut events = [MaybeUninit::uninit(); 64];
        let ready = match epoll::wait(&self.epoll, &mut events, Some(&Timespec::default())) {
            Ok((ready, _)) => ready.iter().map(|event| event.data.u64()).collect::<Vec<_>>(),
            Err(_) => return,
        };
        for id in ready {
            if id & LISTENER != 0 {
                self.admit_all(id);
            } else {
                self.hear_from(Conn(id), heard);
            }
        }
    }

    fn admit_all(&mut self, id: u64) {
        let Some(place) = self.places.values().find(|place| place.id == id) else { return };
        let Some(fd) = &place.fd else { return };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let come: Vec<OwnedFd> = (0..AT_ONCE).map_while(|_| accept_with(fd, flags).ok()).collect();
        for fd in come {
            // Whoever may not speak to us finds the socket closed.
            if let Ok(conn) = self.check(&fd).and_then(|pid| self.admit(fd, pid)) {
                self.silent.push_back(conn.0);
            }
        }
        while self.silent.len() > MOST_SILENT {
            self.silent.pop_front().map(|id| self.peers.remove(&id));
        }
    }

    /// What has come from one peer.
    pub(super) fn hear_from(&mut self, Conn(id): Conn, heard: &mut VecDeque<Heard>) {
        for _ in 0..AT_ONCE {
            let Some(peer) = self.peers.get(&id) else { return };
            let mut bytes = [0; LONGEST_MESSAGE + 1];
            let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut passed = RecvAncillaryBuffer::new(&mut room);
            let flags = RecvFlags::CMSG_CLOEXEC;
            let got = recvmsg(&peer.fd, &mut [IoSliceMut::new(&mut bytes)], &mut passed, flags);
            let memory = passed.drain().find_map(|message| match message {
                RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
                _ => None,
            });
            match got {
                Ok(got) if got.bytes > 0 => {
                    self.silent.retain(|silent| *silent != id);
                    let bytes = bytes[..got.bytes].to_vec();
                    if bytes != KICK {
                        heard.push_back(Heard::Message { conn: Conn(id), pid: peer.pid, bytes, memory });
                    }
                }
                Err(Errno::AGAIN | Errno::INTR) => return,
                // It has left something unread. What it said before is behind this.
                Err(Errno::CONNRESET) => {}
                Ok(_) | Err(_) => {
                    // The socket stays until whoever hears this closes it.
                    let _ = epoll::delete(&self.epoll, &peer.fd);
                    return heard.push_back(Heard::Gone(Conn(id)));
                }
            }
        }
    }

    /// Makes the agent's descriptor readable when a socket of the caller's own is.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn watch_other(&self, fd: BorrowedFd<'_>) -> Result<(), Errno> {
        self.watch(fd, OTHER)
    }

    /// Becomes readable when there is something to hear.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

fn socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}
