//! The agent: processes of one host find each other through it, and exchange control messages.
//!
//! An agent that listens under a name has a Unix socket of that name in the abstract namespace. The
//! kernel removes the name with the process, however the process ends. Over shared memory the names are
//! discriminators. Each connection request has a socket of its own, which carries signals and the memory
//! that the peer may write to. Over UDP the names are addresses that NICs share.
//!
//! Both sides ask the kernel for the other's user ([`credentials`]), and accept only processes of their
//! own user. This works across process namespaces, because nothing depends on a process id.

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

/// Maximum number of sockets that wait to be accepted under a name.
const BACKLOG: i32 = 64;
/// Maximum number of peers, connected or connecting; further ones are refused.
const MOST: usize = 4096;
/// Maximum number of accepted sockets that have sent nothing yet. An honest peer sends its request at
/// once.
const MOST_SILENT: usize = 64;
/// Messages of one peer received in a row.
const AT_ONCE: usize = 64;
/// The message that wakes a peer.
const KICK: &[u8] = &[0];
/// The flag of events on a listening socket.
const LISTENER: u64 = 1 << 63;
/// The event on a socket of the caller's own.
const OTHER: u64 = LISTENER;
/// Longest message, in bytes: a signal and its framing.
const LONGEST_MESSAGE: usize = LONGEST + 64;

/// Identifies the socket to one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Conn(u64);

/// An event that the agent reports.
pub(super) enum Heard {
    /// A peer's message, with the memory that the peer passed.
    Message { conn: Conn, pid: u32, bytes: Vec<u8>, memory: Option<OwnedFd> },
    /// A peer has closed its socket or sent an empty message, or the socket has failed.
    Gone(Conn),
}

struct Peer {
    fd: OwnedFd,
    pid: u32,
}

struct Place {
    count: usize,
    id: u64,
    /// `None` while another process of this user owns the name.
    fd: Option<OwnedFd>,
}

pub(super) struct Agent {
    epoll: OwnedFd,
    /// The prefix of the agent's names.
    space: &'static str,
    user: u32,
    next: u64,
    places: HashMap<Vec<u8>, Place>,
    peers: HashMap<u64, Peer>,
    /// Accepted sockets that have sent nothing yet, the oldest first.
    silent: VecDeque<u64>,
    /// Listening sockets that may have more to accept. The kernel tells of each request once, so that a process
    /// without free descriptors does not spin.
    unaccepted: Vec<u64>,
}

impl Agent {
    /// Opens an agent. The prefix `space` separates its names from those of other agents.
    pub(super) fn open(space: &'static str) -> Result<Self, Errno> {
        Ok(Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            space,
            user: rustix::process::geteuid().as_raw(),
            next: 0,
            places: HashMap::new(),
            peers: HashMap::new(),
            silent: VecDeque::new(),
            unaccepted: Vec::new(),
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

    fn watch(&self, fd: BorrowedFd<'_>, id: u64, flags: epoll::EventFlags) -> Result<(), Errno> {
        epoll::add(&self.epoll, fd, epoll::EventData::new_u64(id), flags)
    }

    /// Starts to accept requests at a discriminator.
    ///
    /// # Errors
    /// Returns `ACCESS` if another user owns the name.
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

    /// Returns whether this process receives the requests for a discriminator.
    pub(super) fn has_place(&self, discriminator: &[u8]) -> bool {
        self.places.get(discriminator).is_some_and(|place| place.fd.is_some())
    }

    /// Removes one listener of a discriminator.
    pub(super) fn ignore(&mut self, discriminator: &[u8]) {
        if let Some(place) = self.places.get_mut(discriminator) {
            place.count -= 1;
            if place.count == 0 {
                self.places.remove(discriminator);
            }
        }
    }

    /// Binds the names that another process owned before, if they have become free.
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
            self.watch(fd.as_fd(), place.id, epoll::EventFlags::IN | epoll::EventFlags::ET)?;
        }
        Ok(fd)
    }

    /// Opens a socket to the process that listens at a discriminator.
    pub(super) fn connect(&mut self, discriminator: &[u8]) -> Result<Conn, Errno> {
        let (fd, pid) = self.reach(discriminator)?;
        self.admit(fd, pid)
    }

    /// Connects to the process that listens at a discriminator. Returns the socket and the process id.
    fn reach(&self, discriminator: &[u8]) -> Result<(OwnedFd, u32), Errno> {
        let fd = socket()?;
        connect(&fd, &self.name(discriminator)?)?;
        let pid = self.check(&fd)?;
        Ok((fd, pid))
    }

    /// Checks that the other end of a socket is a process of this user. Returns its process id.
    fn check(&self, fd: &OwnedFd) -> Result<u32, Errno> {
        let peer = credentials::of_peer(fd).map_err(|_| Errno::ACCESS)?;
        if peer.uid == self.user { Ok(peer.pid) } else { Err(Errno::ACCESS) }
    }

    fn admit(&mut self, fd: OwnedFd, pid: u32) -> Result<Conn, Errno> {
        if self.peers.len() >= MOST {
            return Err(Errno::MFILE);
        }
        let id = self.number();
        self.watch(fd.as_fd(), id, epoll::EventFlags::IN)?;
        self.peers.insert(id, Peer { fd, pid });
        Ok(Conn(id))
    }

    /// Sends a message to a peer, and passes it memory. Never waits. Returns whether the message was
    /// sent.
    pub(super) fn say(&self, conn: Conn, bytes: &[u8], memory: Option<BorrowedFd<'_>>) -> bool {
        let Some(peer) = self.peers.get(&conn.0) else { return false };
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut passed = SendAncillaryBuffer::new(&mut room);
        let memory = memory.as_slice();
        if !memory.is_empty() {
            passed.push(SendAncillaryMessage::ScmRights(memory));
        }
        // On an error the peer is gone, which a later event reports; or its queue is full, and the
        // caller repeats the message.
        sendmsg(&peer.fd, &[IoSlice::new(bytes)], &mut passed, SendFlags::NOSIGNAL).is_ok()
    }

    /// Wakes a peer.
    pub(super) fn kick(&self, conn: Conn) {
        self.say(conn, KICK, None);
    }

    /// Closes the socket to a peer.
    pub(super) fn close(&mut self, conn: Conn) {
        if let Some(peer) = self.peers.remove(&conn.0) {
            // A child of this process may hold the socket open, which would then be watched for ever.
            let _ = epoll::delete(&self.epoll, &peer.fd);
        }
        self.silent.retain(|silent| *silent != conn.0);
    }

    /// Returns whether a socket is still open. The caller closes the sockets of peers that send invalid
    /// messages.
    pub(super) fn knows(&self, conn: Conn) -> bool {
        self.peers.contains_key(&conn.0)
    }

    /// Receives all events since the last call.
    pub(super) fn hear(&mut self, heard: &mut VecDeque<Heard>) {
        self.take_places();
        for id in std::mem::take(&mut self.unaccepted) {
            self.admit_all(id);
        }
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
        let mut come = Vec::new();
        let mut is_emptied = false;
        // More than wait under a name, so that a process that asks without end does not keep this one here.
        while !is_emptied && come.len() < 2 * BACKLOG as usize {
            match accept_with(fd, flags) {
                Ok(fd) => come.push(fd),
                Err(Errno::AGAIN) => is_emptied = true,
                Err(_) => break,
            }
        }
        if !is_emptied && !self.unaccepted.contains(&id) {
            self.unaccepted.push(id);
        }
        for fd in come {
            // A peer that may not connect finds its socket closed.
            if let Ok(conn) = self.check(&fd).and_then(|pid| self.admit(fd, pid)) {
                self.silent.push_back(conn.0);
            }
        }
        while self.silent.len() > MOST_SILENT {
            self.silent.pop_front().map(|id| self.peers.remove(&id));
        }
    }

    /// Returns whether requests may wait that the descriptor does not tell of, mostly because this process has no free
    /// descriptors. The next [`Agent::hear`] tries again.
    pub(super) fn has_unaccepted(&self) -> bool {
        !self.unaccepted.is_empty()
    }

    /// Receives the messages of one peer.
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
                // The peer closed its socket with data unread. Its earlier messages are still queued
                // behind this error.
                Err(Errno::CONNRESET) => {}
                Ok(_) | Err(_) => {
                    // The caller closes the socket when it handles the event.
                    let _ = epoll::delete(&self.epoll, &peer.fd);
                    return heard.push_back(Heard::Gone(Conn(id)));
                }
            }
        }
    }

    /// Makes the agent's descriptor readable when a socket of the caller's own is readable.
    ///
    /// # Errors
    /// Returns an error if the system refuses.
    pub(super) fn watch_other(&self, fd: BorrowedFd<'_>) -> Result<(), Errno> {
        self.watch(fd, OTHER, epoll::EventFlags::IN)
    }

    /// Returns the descriptor that becomes readable when there is an event.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

fn socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}
