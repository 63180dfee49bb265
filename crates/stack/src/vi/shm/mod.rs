//! Virtual Interfaces over shared memory, between processes of one user on one host.
//!
//! Each side of a connection has an inbox, memory that its peer maps: a lane of messages, and a page of
//! words that say how far this side has come with the peer's ([`link`]). An inbox is passed with the
//! request for a connection, or with its acceptance ([`super::agent`]). All bytes are placed by the process
//! whose memory they go to, after its own rules have allowed it: a peer reaches its inbox and nothing
//! else. A short message is one line; a longer one is copied into the lane by one side while the
//! other copies the piece before out of it.

mod lent;
mod link;

use super::agent::{Agent, Conn, Heard};
use super::provider::OpenError;
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

/// All processes of a host have one address.
const HOST: &[u8] = &[127, 0, 0, 1, 0, 0];
/// What the names of sockets begin with.
const SPACE: &str = "netdyno-vi";
/// Who sleeps looks after so long whether a place has become free where it listens.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);

/// Connections that one socket may be about to bring: an honest one brings one.
const MOST_ASKED: usize = 2;
/// Pieces of memory that a peer may be let read at once.
const MOST_LENT: usize = 64;
/// Looks at a peer's socket for memory that it has passed: more than it can have messages in it.
const LOOKS_FOR_MEMORY: usize = 8;

/// A connection of this side's, about to be or there.
struct Ours {
    inbox: Arc<Segment>,
    /// Over which socket it is asked for, and over which it was accepted.
    asked: Option<Conn>,
    accepted: Option<Conn>,
    /// Whoever was passed the inbox is gone: nobody else is to be passed it.
    is_stale: bool,
}

/// A connection of a peer's, about to be or there.
struct Theirs {
    conn: Conn,
    pid: u32,
    inbox: Option<OwnedFd>,
    /// Memory that it lets this process read, by its names.
    lent: Vec<(u64, Arc<Borrowed>)>,
}

pub(super) struct ShmWire {
    agent: Agent,
    began: Instant,
    /// What has come and is not looked at.
    heard: VecDeque<Heard>,
    /// By this side's number.
    ours: HashMap<u64, Ours>,
    /// By the peer's number.
    theirs: HashMap<u64, Theirs>,
    /// By the place of the VI's handle.
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

    /// The inbox of one of this side's connections.
    fn inbox(&mut self, number: u64) -> Option<Arc<Segment>> {
        if let Some(ours) = self.ours.get(&number) {
            return Some(Arc::clone(&ours.inbox));
        }
        let inbox = Arc::new(Segment::create(INBOX_LEN).ok()?);
        let ours = Ours { inbox: Arc::clone(&inbox), asked: None, accepted: None, is_stale: false };
        self.ours.insert(number, ours);
        Some(inbox)
    }

    /// Asks whoever listens there. Why nobody can be asked.
    fn request(&mut self, number: u64, discriminator: &[u8], signal: &Signal) -> Result<(), ConnectError> {
        if self.ours.get(&number).is_some_and(|ours| ours.is_stale) {
            let asked = self.ours.remove(&number).and_then(|ours| ours.asked);
            asked.into_iter().for_each(|conn| self.agent.close(conn));
        }
        // Without memory for it there is no connection now; it is asked for again.
        let Some(inbox) = self.inbox(number) else { return Ok(()) };
        let conn = match self.ours.get(&number).and_then(|ours| ours.asked) {
            Some(conn) => conn,
            None => match self.agent.connect(discriminator) {
                Ok(conn) => conn,
                // Too many ask at once: that passes.
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::ACCESS) => return Err(ConnectError::Foreign),
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

    /// Whether a connection of that number of a peer's is there.
    fn is_linked(&self, number: u64) -> bool {
        self.links.iter().flatten().any(|link| link.remote == number)
    }

    /// A peer has a connection of that number. False where it can not have.
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

    /// A peer lets this process read memory of its own, or needs that no more. False where it can not.
    fn borrow(&mut self, Lending { number, id, len }: Lending, pid: u32, memory: Option<OwnedFd>) -> bool {
        // One that was parted here may not know it yet.
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

    /// Memory of which a peer has told, over its socket, before it wrote the line that names it.
    fn find_borrowed(&mut self, nic: &mut Nic, vi: ViHandle, id: u64) {
        let Some(Link { conn, local, remote, .. }) = self.link_of(vi) else { return };
        let (conn, local, remote) = (*conn, *local, *remote);
        // Where both have asked, the peer may speak over the socket that this side has asked by.
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

    /// Does what was heard says.
    fn attend(&mut self, nic: &mut Nic) {
        let mut has_taken = false;
        while let Some(heard) = self.heard.pop_front() {
            match heard {
                Heard::Message { conn, pid, bytes, memory } if self.agent.knows(conn) => {
                    self.take(nic, conn, pid, &bytes, memory);
                    has_taken = true;
                }
                Heard::Message { .. } => {}
                // What was said before may be about to become a link, which is read to its end.
                Heard::Gone(_) if has_taken => return self.heard.push_front(heard),
                Heard::Gone(conn) => self.lose(nic, conn),
            }
        }
    }

    /// A peer is gone: with all that it asked for, and the connections that it had.
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
        // Who asks will find another way, or that there is none.
        for ours in self.ours.values_mut() {
            ours.is_stale |= ours.asked == Some(conn) || ours.accepted == Some(conn);
            ours.asked = ours.asked.filter(|asked| *asked != conn);
        }
    }

    /// The link of two inboxes. `None` where the peer has passed none that is one.
    fn make_link(&mut self, nic: &Nic, vi: ViHandle, link: &vi::Link) -> Option<Link> {
        let ours = self.inbox(link.local)?;
        let Theirs { conn, pid, inbox, .. } = self.theirs.get_mut(&link.remote)?;
        let theirs = map_segment(*pid, inbox.take()?, INBOX_LEN).ok()?;
        let level = nic.query_vi(vi).ok()?.attributes.level;
        // SAFETY: the inboxes are of these two numbers, which are linked once.
        Some(unsafe { Link::new(vi, level, *conn, [link.local, link.remote], ours, Arc::new(theirs)) })
    }
}

/// The place of a handle in the table that it is of.
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
                    // A peer may come yet.
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
        // What was posted before.
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

    /// What was sent is in the peers' memory already.
    fn linger(&mut self, _: &mut Nic) {}
}
