//! Virtual Interfaces over shared memory, between processes of one user on one host.
//!
//! Each side of a connection has an inbox: memory that its peer maps. It holds a message ring, which the
//! peer writes, and a control block, which the owner writes to report its progress ([`link`]). A side
//! passes its inbox with the connection request, or with the acceptance ([`super::agent`]).
//!
//! Each process places the bytes of a message in its own memory, after its own rules have allowed it: a
//! peer reaches the inbox and nothing else. A short message is one slot of the ring. A longer message
//! passes through a buffer in pieces: one side copies a piece in while the other side copies the
//! previous piece out.

mod lent;
mod link;

use super::agent::{Agent, Conn, Heard};
use super::error::OpenError;
use super::wire::{Look, Wire};
use lent::{Lender, Lent};
use link::{INBOX_LEN, Link};
use netdyno_host::loan::{Borrowed, Loan};
use netdyno_host::segment::{Segment, map_segment};
use netdyno_protocol::frame::vi_lending::Lending;
use netdyno_protocol::frame::vi_signal::Signal;
use netdyno_protocol::vi::{self, ConnectError, DescriptorAt, Nic, Parting, ViHandle};
use rustix::io::Errno;
use std::collections::{HashMap, VecDeque};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The address of the host, which all of its processes share.
const HOST: &[u8] = &[127, 0, 0, 1, 0, 0];
/// The prefix of the agent's socket names.
const SPACE: &str = "netdyno-vi";
/// Longest sleep. After it the agent tries again to bind names that another process owned.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);

/// Maximum number of connections that one socket may request; an honest peer requests one.
const MOST_ASKED: usize = 2;
/// Maximum number of memories of a peer that are mapped at once.
const MOST_LENT: usize = 64;
/// Attempts to receive the memory that a peer has passed. They receive more messages than its socket can
/// hold.
const LOOKS_FOR_MEMORY: usize = 8;

/// This side's half of a connection, requested or established.
struct Ours {
    inbox: Arc<Segment>,
    /// The sockets over which the connection was requested, and over which it was accepted.
    asked: Option<Conn>,
    accepted: Option<Conn>,
    /// The process that received the inbox is gone. The inbox must not be passed to another process.
    is_stale: bool,
}

/// The peer's half of a connection, requested or established.
struct Theirs {
    conn: Conn,
    pid: u32,
    inbox: Option<OwnedFd>,
    /// Memory that the peer lets this process read, by identifier.
    lent: Vec<(u64, Arc<Borrowed>)>,
}

pub(super) struct ShmWire {
    agent: Agent,
    began: Instant,
    /// Events of the agent that are not handled yet.
    heard: VecDeque<Heard>,
    /// By this side's number of the connection.
    ours: HashMap<u64, Ours>,
    /// By the peer's number of the connection.
    theirs: HashMap<u64, Theirs>,
    /// By the index in the VI's handle.
    links: Vec<Option<Link>>,
    lent: Lent,
}

impl ShmWire {
    pub(super) fn open() -> Result<Self, OpenError> {
        let error = |error: Errno| OpenError::System { what: "watch sockets", error: error.into() };
        Ok(Self {
            agent: Agent::open(SPACE).map_err(error)?,
            began: Instant::now(),
            heard: VecDeque::new(),
            ours: HashMap::new(),
            theirs: HashMap::new(),
            links: Vec::new(),
            lent: Lent::default(),
        })
    }

    fn link_of(&mut self, vi: ViHandle) -> Option<&mut Link> {
        link_of(&mut self.links, vi)
    }

    /// Returns the inbox of one of this side's connections.
    fn inbox(&mut self, number: u64) -> Option<Arc<Segment>> {
        if let Some(ours) = self.ours.get(&number) {
            return Some(Arc::clone(&ours.inbox));
        }
        let inbox = Arc::new(Segment::create(INBOX_LEN).ok()?);
        let ours = Ours { inbox: Arc::clone(&inbox), asked: None, accepted: None, is_stale: false };
        self.ours.insert(number, ours);
        Some(inbox)
    }

    /// Requests a connection with the process that listens at a discriminator. Returns the reason if no
    /// process can be asked.
    fn request(&mut self, number: u64, discriminator: &[u8], signal: &Signal) -> Result<(), ConnectError> {
        if self.ours.get(&number).is_some_and(|ours| ours.is_stale) {
            let asked = self.ours.remove(&number).and_then(|ours| ours.asked);
            asked.into_iter().for_each(|conn| self.agent.close(conn));
        }
        let inbox = self.inbox(number).ok_or(ConnectError::TooMany)?;
        let conn = match self.ours.get(&number).and_then(|ours| ours.asked) {
            Some(conn) => conn,
            None => match self.agent.connect(discriminator) {
                Ok(conn) => conn,
                // Too many requests at once, which passes.
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::ACCESS) => return Err(ConnectError::Foreign),
                Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS | Errno::NOSPC) => {
                    return Err(ConnectError::TooMany);
                }
                Err(_) => return Err(ConnectError::NoMatch),
            },
        };
        if let Some(ours) = self.ours.get_mut(&number) {
            ours.asked = Some(conn);
        }
        self.agent.say(conn, &signal.encode(), Some(inbox.as_fd()));
        Ok(())
    }

    fn conn_of(&self, theirs: u64, ours: u64) -> Option<Conn> {
        let of_theirs = self.theirs.get(&theirs).map(|theirs| theirs.conn);
        of_theirs.or_else(|| self.ours.get(&ours)?.asked)
    }

    fn forget(&mut self, theirs: u64, ours: u64) {
        let conns = [
            self.theirs.remove(&theirs).map(|theirs| theirs.conn),
            self.ours.remove(&ours).and_then(|ours| ours.asked),
        ];
        for conn in conns.into_iter().flatten() {
            let is_used = self.theirs.values().any(|theirs| theirs.conn == conn)
                || self.ours.values().any(|ours| ours.asked == Some(conn));
            if !is_used {
                self.agent.close(conn);
            }
        }
    }

    fn take(&mut self, nic: &mut Nic, conn: Conn, pid: u32, bytes: &[u8], memory: Option<OwnedFd>) {
        if let Some(lending) = Lending::parse(bytes) {
            if !self.borrow(lending, pid, memory) {
                self.lose(nic, conn);
            }
            return;
        }
        let Ok(signal) = Signal::parse(bytes) else { return self.lose(nic, conn) };
        let (asked, forgotten) = match &signal {
            Signal::Request(request) => (Some(request.number), [0; 2]),
            Signal::Accept { number, .. } => (Some(*number), [0; 2]),
            Signal::Refuse { to, .. } => (None, [0, *to]),
            Signal::Disconnect { number, .. } => (None, [*number, 0]),
        };
        if let Some(number) = asked
            && !self.note(number, conn, pid, memory)
        {
            return self.lose(nic, conn);
        }
        nic.signal(HOST, signal);
        if !self.is_linked(forgotten[0]) {
            self.forget(forgotten[0], forgotten[1]);
        }
    }

    /// Returns whether a connection with this number of a peer is established.
    fn is_linked(&self, number: u64) -> bool {
        self.links.iter().flatten().any(|link| link.remote == number)
    }

    /// Notes a peer's number for a connection. Returns false if the peer cannot have such a connection.
    fn note(&mut self, number: u64, conn: Conn, pid: u32, inbox: Option<OwnedFd>) -> bool {
        let asked = self.theirs.values().filter(|theirs| theirs.conn == conn).count();
        if number == 0 || asked >= MOST_ASKED && !self.theirs.contains_key(&number) {
            return false;
        }
        let theirs = self.theirs.entry(number).or_insert(Theirs { conn, pid, inbox: None, lent: Vec::new() });
        if inbox.is_some() && theirs.pid == pid {
            theirs.inbox = inbox;
        }
        true
    }

    /// Maps memory that a peer lets this process read, or unmaps it if the peer withdraws it. Returns
    /// false if the peer breaks the protocol.
    fn borrow(&mut self, Lending { number, id, len }: Lending, pid: u32, memory: Option<OwnedFd>) -> bool {
        // A peer whose connection this side has ended may not know that yet.
        let Some(theirs) = self.theirs.get_mut(&number) else { return true };
        if theirs.pid != pid {
            return false;
        }
        theirs.lent.retain(|(known, _)| *known != id);
        if let Some(link) = self.links.iter_mut().flatten().find(|link| link.remote == number) {
            link.give_back(id);
        }
        let Some(len) = len else { return true };
        let borrowed = memory.and_then(|memory| Borrowed::open(memory, len));
        let borrowed = borrowed.filter(|_| theirs.lent.len() < MOST_LENT);
        borrowed.map(|borrowed| theirs.lent.push((id, Arc::new(borrowed)))).is_some()
    }

    /// Finds memory that a slot names. The peer has passed it over its socket before it wrote the slot.
    fn find_borrowed(&mut self, nic: &mut Nic, vi: ViHandle, id: u64) {
        let Some(Link { conn, local, remote, .. }) = self.link_of(vi) else { return };
        let (conn, local, remote) = (*conn, *local, *remote);
        // If both sides have requested the connection, the peer may use the socket of this side's
        // request.
        let asked = self.ours.get(&local).and_then(|ours| ours.asked);
        let mut memory = None;
        for _ in 0..LOOKS_FOR_MEMORY {
            for conn in [Some(conn), asked].into_iter().flatten() {
                self.agent.hear_from(conn, &mut self.heard);
            }
            self.attend(nic);
            let lent = self.theirs.get(&remote).map_or(&[][..], |theirs| &theirs.lent);
            memory = lent.iter().find(|(known, _)| *known == id).map(|(_, memory)| Arc::clone(memory));
            if memory.is_some() {
                break;
            }
        }
        if let Some(link) = self.link_of(vi) {
            link.borrow(id, memory);
        }
    }

    /// Handles the events of the agent.
    fn attend(&mut self, nic: &mut Nic) {
        let mut has_taken = false;
        while let Some(heard) = self.heard.pop_front() {
            match heard {
                Heard::Message { conn, pid, bytes, memory } if self.agent.knows(conn) => {
                    self.take(nic, conn, pid, &bytes, memory);
                    has_taken = true;
                }
                Heard::Message { .. } => {}
                // The messages before may be about to become a link, which is read to its end.
                Heard::Gone(_) if has_taken => return self.heard.push_front(heard),
                Heard::Gone(conn) => self.lose(nic, conn),
            }
        }
    }

    /// A peer is gone: closes its socket, and ends its requests and connections.
    fn lose(&mut self, nic: &mut Nic, conn: Conn) {
        self.agent.close(conn);
        for link in self.links.iter_mut().flatten().filter(|link| link.conn == conn) {
            link.is_closed = true;
        }
        let asked = self.theirs.iter().filter(|(_, theirs)| theirs.conn == conn);
        for number in asked.map(|(number, _)| *number).collect::<Vec<_>>() {
            if !self.is_linked(number) {
                nic.unreachable(HOST, number);
                self.theirs.remove(&number);
            }
        }
        // A side that requests a connection will find another way, or an error.
        for ours in self.ours.values_mut() {
            ours.is_stale |= ours.asked == Some(conn) || ours.accepted == Some(conn);
            ours.asked = ours.asked.filter(|asked| *asked != conn);
        }
    }

    /// Makes the link of two inboxes. Returns `None` if the peer has passed no valid inbox.
    fn make_link(&mut self, nic: &Nic, vi: ViHandle, link: &vi::Link) -> Option<Link> {
        let ours = self.inbox(link.local)?;
        let Theirs { conn, pid, inbox, .. } = self.theirs.get_mut(&link.remote)?;
        let theirs = map_segment(*pid, inbox.take()?, INBOX_LEN).ok()?;
        let level = nic.query_vi(vi).ok()?.attributes.level;
        // SAFETY: the inboxes belong to these two numbers, which are linked only once.
        Some(unsafe { Link::new(vi, level, *conn, [link.local, link.remote], ours, Arc::new(theirs)) })
    }
}

/// Returns the table index in a handle.
#[inline]
const fn place(vi: ViHandle) -> usize {
    (vi.0 & 0xffff) as usize
}

#[inline]
fn link_of(links: &mut [Option<Link>], vi: ViHandle) -> Option<&mut Link> {
    links.get_mut(place(vi))?.as_mut().filter(|link| link.vi() == vi)
}

impl Wire for ShmWire {
    fn host(&self) -> Vec<u8> {
        HOST.to_vec()
    }

    fn now_ns(&mut self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    fn listen(&mut self, discriminator: &[u8]) -> Result<(), ConnectError> {
        self.agent.listen(discriminator).map_err(|_| ConnectError::Foreign)
    }

    fn ignore(&mut self, discriminator: &[u8]) {
        self.agent.ignore(discriminator);
    }

    fn say(&mut self, nic: &mut Nic, _: &[u8], signal: &Signal) {
        match signal {
            Signal::Request(request) => {
                let asked = if request.to.host == HOST {
                    self.request(request.number, &request.to.discriminator, signal)
                } else {
                    Err(ConnectError::NoMatch)
                };
                match asked {
                    // A peer may still arrive.
                    Err(ConnectError::NoMatch) if request.is_of_peer => {}
                    Err(error) => {
                        self.forget(0, request.number);
                        nic.can_not_ask(request.number, error);
                    }
                    Ok(()) => {}
                }
            }
            Signal::Accept { to, number, .. } => {
                if let Some(conn) = self.conn_of(*to, 0)
                    && let Some(ours) = self.ours.get_mut(number)
                {
                    ours.accepted = Some(conn);
                    self.agent.say(conn, &signal.encode(), Some(ours.inbox.as_fd()));
                }
            }
            Signal::Refuse { to, .. } => {
                if let Some(conn) = self.conn_of(*to, 0) {
                    self.agent.say(conn, &signal.encode(), None);
                }
                self.forget(*to, 0);
            }
            Signal::Disconnect { to, number } => {
                if let Some(conn) = self.conn_of(*to, *number) {
                    self.agent.say(conn, &signal.encode(), None);
                }
                self.forget(*to, *number);
            }
        }
    }

    fn hear(&mut self, nic: &mut Nic) {
        self.agent.hear(&mut self.heard);
        self.attend(nic);
    }

    fn link(&mut self, nic: &mut Nic, vi: ViHandle, link: &vi::Link) {
        let Some(made) = self.make_link(nic, vi, link) else { return nic.lost(vi) };
        if self.links.len() <= place(vi) {
            self.links.resize_with(place(vi) + 1, || None);
        }
        self.links[place(vi)] = Some(made);
        // Send what was posted before.
        self.send(nic, vi);
    }

    fn unlink(&mut self, _: &mut Nic, vi: ViHandle, link: &vi::Link, parting: Parting) {
        if let Some(mut gone) = self.links.get_mut(place(vi)).and_then(Option::take)
            && gone.leave(parting)
        {
            self.agent.kick(gone.conn);
        }
        self.forget(link.remote, link.local);
    }

    #[inline]
    fn send_at_once(&mut self, nic: &mut Nic, vi: ViHandle, at: DescriptorAt) -> bool {
        let Some(link) = link_of(&mut self.links, vi) else { return false };
        let sent = link.send_at_once(nic, at);
        if sent.is_some_and(|wakes| wakes) {
            self.agent.kick(link.conn);
        }
        sent.is_some()
    }

    #[inline]
    fn receive_at_once(&mut self, nic: &mut Nic, vi: ViHandle) -> Look {
        let Some(link) = link_of(&mut self.links, vi) else { return Look::Further };
        let (look, wakes) = link.receive_at_once(nic);
        if wakes {
            self.agent.kick(link.conn);
        }
        look
    }

    #[inline]
    fn send(&mut self, nic: &mut Nic, vi: ViHandle) {
        let lender = Lender { lent: &self.lent, agent: &self.agent };
        let Some(link) = link_of(&mut self.links, vi) else { return };
        if link.send(nic, lender) {
            self.agent.kick(link.conn);
        }
    }

    #[inline]
    fn receive(&mut self, nic: &mut Nic, vi: ViHandle) {
        let lender = Lender { lent: &self.lent, agent: &self.agent };
        let Some(link) = link_of(&mut self.links, vi) else { return };
        let (_, wakes) = link.receive(nic, lender);
        if wakes {
            self.agent.kick(link.conn);
        }
        if let Some(id) = link.wants.take() {
            self.find_borrowed(nic, vi, id);
        }
    }

    fn receive_all(&mut self, nic: &mut Nic) -> bool {
        let (mut is_any, mut wanted) = (false, Vec::new());
        let lender = Lender { lent: &self.lent, agent: &self.agent };
        for link in self.links.iter_mut().flatten() {
            let (any, wakes) = link.receive(nic, lender);
            is_any |= any;
            if wakes {
                self.agent.kick(link.conn);
            }
            wanted.extend(link.wants.take().map(|id| (link.vi(), id)));
        }
        is_any |= !wanted.is_empty();
        wanted.into_iter().for_each(|(vi, id)| self.find_borrowed(nic, vi, id));
        is_any
    }

    fn withdraw(&mut self, nic: &mut Nic) {
        self.links.iter_mut().flatten().for_each(|link| link.withdraw(nic));
    }

    fn offer(&mut self, memory: &Arc<Loan>) {
        self.lent.offer(memory);
    }

    fn prepare_sleep(&mut self) -> Duration {
        self.links.iter().flatten().for_each(Link::fall_asleep);
        if self.heard.is_empty() { LONGEST_SLEEP } else { Duration::ZERO }
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.agent.descriptor()
    }

    /// Returns at once, because the messages are already in the peers' memory.
    fn linger(&mut self, _: &mut Nic) {}
}
