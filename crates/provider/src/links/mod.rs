//! The connections of a process, by Virtual Interfaces: over shared memory within a host, over UDP between hosts.
//!
//! A process asks for a connection when it first sends something. Two processes may ask each other at the same time.
//! In general one of the requests is refused. If both are accepted, there are two VIs, and each process sends over the
//! first that it learns of. It receives from both.

mod acks;
mod block;
mod connecting;
mod copying;
mod identity;
mod nic;
mod settings;
mod sleep;

use connecting::ASK_PERIOD;
pub use identity::{NAME_LEN, Name, Process};
pub use settings::{Acks, Progress, Switches, Wakeup};

use crate::engine::{Copied, LinkEvent, Links, Payload, PeerNo, SELF};
use crate::memory::{Memory, Segment, Window};
use netdyno_host::{interface, random};
use netdyno_stack::vi::{OpenError, UdpOptions, ViHandle, WireKind};
use nic::{Buffer, Nic, NicEvent};
use rustc_hash::FxHashMap;
use rustix::io;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use settings::{Copying, SettingError, Wire, faults, host, mark, own_address, udp_timeout};
use sleep::Sleep;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};
use thiserror::Error;

/// Calls between two looks for requests and lost peers. A look takes several system calls.
const CALLS: u32 = 8192;
/// The same, while a peer is asked for a connection.
const CALLS_ASKING: u32 = 32;
/// Time between two looks of a process that finds no messages.
const LOOK_PERIOD: Duration = Duration::from_millis(1);
/// Time in which a process is asked again that refuses and that the system does not know, which may be in another
/// namespace; and in which room may be found for a connection.
const UNKNOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// Number of descriptors that a process wants. Not without limit: some programs close every one that they might have.
const DESCRIPTORS: u64 = 1 << 16;

/// Why the connections of a process cannot be opened.
#[derive(Debug, Error)]
pub enum LinksError {
    /// A provider of Virtual Interfaces could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A variable of the environment is wrong.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The port cannot be served.
    #[error("the port is served already, or the socket is used")]
    Served,
}

impl Process {
    /// Returns the wire between this process and another.
    fn wire_to(&self, other: &Self) -> Wire {
        if self.host == other.host { Wire::Shm } else { Wire::Udp }
    }

    /// Returns whether the system knows a process of this number.
    fn may_exist(&self) -> bool {
        let pid = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw);
        pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
    }
}

/// A received message, and its wire.
#[derive(Debug)]
pub struct Received {
    wire: Wire,
    buffer: Buffer,
}

impl Deref for Received {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buffer
    }
}

/// A request for a connection.
#[derive(Clone, Copy, Debug)]
struct Asking {
    vi: ViHandle,
    /// When it was first refused.
    refused: Option<Instant>,
    /// When it is repeated after a refusal; `None` while there is no answer.
    again_at: Option<Instant>,
}

/// The connection to a peer.
#[derive(Debug)]
struct Link {
    process: Process,
    wire: Wire,
    /// The VI that sends.
    vi: Option<ViHandle>,
    asking: Option<Asking>,
    /// The peer knows this process by the port that it serves; `None` before there is a connection.
    is_by_service: Option<bool>,
    /// When the VI that sent has ended, while another one may still have messages of the peer.
    ending: Option<Instant>,
    /// The caller has ended it.
    is_ended: bool,
    /// Whether the system copies between the two processes; `None` if that was not tried.
    copies: Option<bool>,
}

impl Link {
    fn new(process: Process, wire: Wire) -> Self {
        Self {
            process,
            wire,
            vi: None,
            asking: None,
            is_by_service: None,
            ending: None,
            is_ended: false,
            copies: None,
        }
    }

    /// Reports that the peer is asked by its name, or that there is a connection to it by name.
    fn is_connecting(&self) -> bool {
        let is_asked = self.asking.is_some_and(|asking| asking.again_at.is_none());
        self.is_by_service == Some(false) && !self.is_ended && (is_asked || self.vi.is_some())
    }
}

/// The connections of a process.
pub struct ViLinks {
    shm: Nic,
    udp: Nic,
    /// A copy of the nonce that peers read. It never moves.
    proof: Box<[u8; 16]>,
    process: Process,
    /// The links by peer number. The first is this process itself.
    links: Vec<Link>,
    peers: FxHashMap<[u8; 16], PeerNo>,
    by_vi: FxHashMap<(Wire, ViHandle), PeerNo>,
    /// Where a thread sleeps; made when it is first wanted.
    sleep: Option<Sleep>,
    switches: Switches,
    /// Time without an answer after which a process is lost over UDP.
    timeout: Duration,
    /// The port that this process serves.
    served: Option<u16>,
    /// The wire that is looked at first.
    first: Wire,
    /// Calls since the last look for requests and lost peers, and the time of that look.
    calls: u32,
    looked: Duration,
    /// The peers that are asked for a connection.
    asking: Vec<PeerNo>,
    /// Peers that know this process by the port that it serves.
    strangers: Vec<PeerNo>,
    /// A connection was made.
    has_news: bool,
    lost: Vec<PeerNo>,
}

impl ViLinks {
    /// Opens the connections of this process.
    ///
    /// # Errors
    /// Returns an error if the system refuses memory, a socket or another resource, or if a variable is wrong.
    pub fn open() -> Result<Self, LinksError> {
        let switches = Switches::read()?;
        let nonce: [u8; 16] = random::bytes().unwrap_or_default();
        let proof = Box::new(nonce);
        let mut process = Process {
            pid: std::process::id(),
            proof: proof.as_ptr().expose_provenance() as u64,
            // A process that shares its host with nobody sends over UDP to all.
            host: if switches.wire == Wire::Shm { host() } else { nonce[..8].try_into().unwrap_or_default() },
            nonce,
            udp: [0; 18],
        };
        let timeout = udp_timeout()?;
        allow_descriptors();
        let shm = Nic::open(WireKind::Shm, &process.discriminator(), None, switches)?;
        let udp = open_udp(SocketAddr::new(own_address()?, 0), &process, (timeout, switches))?;
        process.udp = Process::udp_of(&udp.host());
        mark();
        let own = Link::new(process, Wire::Shm);
        Ok(Self {
            shm,
            udp,
            proof,
            process,
            links: vec![own],
            peers: [(nonce, 0)].into_iter().collect(),
            by_vi: FxHashMap::default(),
            sleep: None,
            switches,
            timeout,
            served: None,
            first: Wire::Shm,
            calls: 0,
            looked: Duration::ZERO,
            asking: Vec::new(),
            strangers: Vec::new(),
            has_news: false,
            lost: Vec::new(),
        })
    }

    /// Returns what peers must know of this process.
    pub fn process(&self) -> &Process {
        debug_assert_eq!(*self.proof, self.process.nonce);
        &self.process
    }

    /// Returns the switches.
    pub fn switches(&self) -> Switches {
        self.switches
    }

    /// Returns the time without an answer after which a process is lost over UDP.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Serves a port: peers reach this process by its host and this port.
    ///
    /// # Errors
    /// Returns an error if another process serves the port, or if this process serves another or uses its socket
    /// already.
    pub fn serve(&mut self, address: SocketAddr) -> Result<(), LinksError> {
        let port = address.port();
        if self.served == Some(port) {
            return Ok(());
        }
        let is_used = self.by_vi.keys().any(|(wire, _)| *wire == Wire::Udp)
            || self.asking.iter().any(|peer| self.links[*peer].wire == Wire::Udp);
        if self.served.is_some() || self.sleep.is_some() || is_used {
            return Err(LinksError::Served);
        }
        // Within the host the name of a service says nothing of an address.
        let is_any = address.ip().is_unspecified() || self.switches.wire == Wire::Shm;
        let reached = if is_any { SocketAddr::new(own_address()?, port) } else { address };
        let any: IpAddr = match reached {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let bound = if is_any { SocketAddr::new(any, port) } else { address };
        let mut udp = open_udp(bound, &self.process, (self.timeout, self.switches))?;
        let discriminator = identity::discriminator_of(port);
        udp.wait_at(&discriminator).map_err(|_| LinksError::Served)?;
        self.shm.wait_at(&discriminator).map_err(|_| LinksError::Served)?;
        self.process.udp = Process::serving(reached, [0; 8]).udp;
        (self.udp, self.served) = (udp, Some(port));
        Ok(())
    }

    /// Returns the descriptor that becomes readable during a sleep.
    ///
    /// # Errors
    /// Returns an error if the system has no room for it.
    pub fn descriptor(&mut self) -> io::Result<BorrowedFd<'_>> {
        if self.sleep.is_none() {
            self.sleep = Some(Sleep::new([self.shm.as_fd(), self.udp.as_fd()])?);
        }
        self.sleep.as_ref().map(Sleep::as_fd).ok_or(io::Errno::BADF)
    }

    /// Returns whether an acknowledgement has come since the last call.
    pub fn take_acknowledged(&mut self) -> bool {
        self.shm.take_acknowledged() | self.udp.take_acknowledged()
    }

    /// Returns whether a peer has acknowledged all that was sent to it, where the message layer acknowledges.
    pub fn is_acknowledged(&self, peer: PeerNo) -> bool {
        let Some(Link { vi: Some(vi), wire, .. }) = self.links.get(peer) else { return true };
        let nic = if *wire == Wire::Shm { &self.shm } else { &self.udp };
        nic.is_acknowledged(*vi)
    }

    /// Returns whether a connection was made since the last call. A thread that sleeps must prepare for it again.
    pub fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }

    /// Makes the next look include every peer, as a caller wants who looks seldom.
    pub fn look_at_all(&mut self) {
        self.shm.look_at_all();
        self.udp.look_at_all();
    }

    /// Prepares for a sleep: the descriptor becomes readable when a message comes or a timer is due. Returns false if
    /// the caller must not sleep. The caller has found no message before, and looks once more before it sleeps.
    ///
    /// A thread that `is_alone` forgets an old signal. Otherwise it may be meant for another one.
    pub fn prepare_sleep(&mut self, is_alone: bool) -> bool {
        self.maintain();
        self.look_at_all();
        // A request for a connection is repeated.
        let again = if self.asking.is_empty() { Duration::MAX } else { ASK_PERIOD };
        let most = self.shm.prepare_sleep().min(self.udp.prepare_sleep()).min(again);
        let Some(sleep) = &self.sleep else { return false };
        !most.is_zero() && sleep.begin(most, is_alone).is_ok()
    }

    /// Ends the sleep of another thread.
    pub fn wake(&self) {
        self.sleep.iter().for_each(Sleep::wake);
    }

    /// Returns the number of a process.
    pub fn peer(&mut self, process: &Process) -> PeerNo {
        let is_here =
            |address: SocketAddr| process.host == self.process.host || interface::is_own(address.ip());
        if process
            .service_address()
            .is_some_and(|address| self.served == Some(address.port()) && is_here(address))
        {
            return SELF;
        }
        let next = self.links.len();
        let peer = *self.peers.entry(process.nonce).or_insert(next);
        if peer == next {
            self.add(*process);
        }
        peer
    }

    /// Adds a link to a process. Returns its number.
    fn add(&mut self, process: Process) -> PeerNo {
        let wire = self.process.wire_to(&process);
        self.links.push(Link::new(process, wire));
        self.links.len() - 1
    }

    fn nic(&mut self, wire: Wire) -> &mut Nic {
        match wire {
            Wire::Shm => &mut self.shm,
            Wire::Udp => &mut self.udp,
        }
    }

    /// Returns whether it is time to look for requests, when no message has come.
    fn is_time_to_look(&mut self) -> bool {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicCoarse);
        let now = Duration::try_from(now).unwrap_or_default();
        let is_time = now.saturating_sub(self.looked) >= LOOK_PERIOD;
        if is_time {
            self.looked = now;
        }
        is_time
    }

    /// Returns the next event of a wire.
    fn next_of(&mut self, wire: Wire) -> Option<LinkEvent<Received>> {
        loop {
            match self.nic(wire).next()? {
                NicEvent::Message(buffer) => match self.by_vi.get(&(wire, buffer.vi())) {
                    Some(peer) => return Some(LinkEvent::Message(*peer, Received { wire, buffer })),
                    None => self.nic(wire).give_back(buffer),
                },
                NicEvent::Broken(vi) => {
                    let peer = self.by_vi.remove(&(wire, vi));
                    self.nic(wire).destroy(vi);
                    let Some(peer) = peer else { continue };
                    if self.links[peer].asking.is_some() {
                        // The peer may have accepted another VI and have sent over that.
                        self.maintain();
                    }
                    // The peer may have sent messages over another VI, which are still to be taken.
                    if self.by_vi.values().all(|other| *other != peer) {
                        return Some(LinkEvent::Lost(peer));
                    }
                    // Messages that were under way here are missing, so none may follow over the other one.
                    if self.links[peer].vi == Some(vi) {
                        self.links[peer].ending = Some(Instant::now());
                    }
                }
            }
        }
    }
}

impl Links for ViLinks {
    type Buffer = Received;

    fn try_send(&mut self, peer: PeerNo, header: &[u8], payload: Payload<'_>) -> bool {
        let Link { vi, wire, asking, is_ended, ending, .. } = self.links[peer];
        if is_ended || ending.is_some() {
            return false;
        }
        if let Some(vi) = vi {
            return self.nic(wire).try_send(vi, header, payload);
        }
        if asking.is_none() {
            self.ask(peer);
        }
        false
    }

    /// A datagram that was lost dies with its sender.
    fn outlives_sender(&self, peer: PeerNo) -> bool {
        self.links[peer].wire == Wire::Shm
    }

    fn next(&mut self) -> Option<LinkEvent<Received>> {
        if let Some(peer) = self.lost.pop() {
            return Some(LinkEvent::Lost(peer));
        }
        self.calls += 1;
        if self.calls >= if self.asking.is_empty() { CALLS } else { CALLS_ASKING } {
            self.maintain();
        }
        // Each wire has its turn, however busy the other is.
        let order = if self.first == Wire::Shm { [Wire::Shm, Wire::Udp] } else { [Wire::Udp, Wire::Shm] };
        self.first = order[1];
        order.into_iter().find_map(|wire| self.next_of(wire))
    }

    fn look_around(&mut self) -> bool {
        let is_time = self.is_time_to_look();
        if is_time {
            self.maintain();
        }
        is_time
    }

    fn is_hopeless(&self, peer: PeerNo) -> bool {
        let Link { vi, asking, .. } = self.links[peer];
        let refused = asking.and_then(|asking| asking.refused);
        vi.is_none() && refused.is_some_and(|refused| refused.elapsed() > UNKNOWN_TIMEOUT)
    }

    fn is_flushed(&mut self) -> bool {
        self.shm.is_flushed() & self.udp.is_flushed()
    }

    fn next_stranger(&mut self) -> Option<PeerNo> {
        self.strangers.pop()
    }

    fn introduction(&self) -> Vec<u8> {
        self.process.encode().to_vec()
    }

    fn know(&mut self, peer: PeerNo, introduction: &[u8]) -> bool {
        let Some(process) = Process::parse(introduction) else { return false };
        let link = &self.links[peer];
        let fits = process.service().is_none() && self.process.wire_to(&process) == link.wire;
        // The process of a service says once who it is, so that its other name leads to the same peer. If that is a
        // peer already, the two go on side by side.
        if fits && link.process.service().is_some() && !self.peers.contains_key(&process.nonce) {
            self.peers.insert(process.nonce, peer);
            let link = &mut self.links[peer];
            (link.process, link.copies) = (process, None);
        }
        fits
    }

    fn give_back(&mut self, _peer: PeerNo, Received { wire, buffer }: Received) {
        self.nic(wire).give_back(buffer);
    }

    fn end(&mut self, peer: PeerNo) {
        let Link { wire, vi, asking, is_ended, .. } = &mut self.links[peer];
        (*vi, *is_ended) = (None, true);
        let (wire, asked) = (*wire, asking.take().map(|asking| asking.vi));
        self.asking.retain(|other| *other != peer);
        asked.into_iter().for_each(|vi| self.nic(wire).destroy(vi));
        let those: Vec<_> =
            self.by_vi.iter().filter(|(_, other)| **other == peer).map(|(vi, _)| *vi).collect();
        for (wire, vi) in those {
            self.by_vi.remove(&(wire, vi));
            self.nic(wire).destroy(vi);
        }
    }

    fn pull(&mut self, peer: PeerNo, from: &[Segment], to: &Memory) -> Copied {
        self.copy(peer, |pid| copying::pull(pid, from, to))
    }

    fn push(&mut self, peer: PeerNo, from: &Memory, to: &[Segment]) -> Copied {
        self.copy(peer, |pid| copying::push(pid, from, to))
    }

    fn open_window(&mut self, peer: PeerNo, memory: &Memory) -> Option<Window> {
        let wire = self.links[peer].wire;
        self.nic(wire).open_window(memory)
    }

    fn close_window(&mut self, peer: PeerNo, window: &Window) {
        let wire = self.links[peer].wire;
        self.nic(wire).close_window(window);
    }

    fn try_write(&mut self, peer: PeerNo, memory: &Memory, offset: usize, window: &Window) -> usize {
        let Link { vi, wire, is_ended, ending, .. } = self.links[peer];
        let vi = vi.filter(|_| !is_ended && ending.is_none());
        vi.map_or(0, |vi| self.nic(wire).try_write(vi, memory, offset, window))
    }

    fn finish_writes(&mut self, peer: PeerNo) {
        let Link { vi, wire, .. } = self.links[peer];
        vi.into_iter().for_each(|vi| self.nic(wire).finish_writes(vi));
    }
}

impl ViLinks {
    /// Copies, if the system does that between the two processes.
    fn copy(&mut self, peer: PeerNo, copy: impl FnOnce(u32) -> Copied) -> Copied {
        let copied = self.copies(peer).map_or(Copied::NotHere, copy);
        if copied == Copied::NotHere {
            self.links[peer].copies = Some(false);
        }
        copied
    }

    /// Returns the process id of a peer, if the system copies between its memory and this process's.
    fn copies(&mut self, peer: PeerNo) -> Option<u32> {
        let Link { process, wire, copies, .. } = &mut self.links[peer];
        let is_wanted = *wire == Wire::Shm && self.switches.copying == Copying::Direct;
        let is_allowed = || is_wanted && copying::is_allowed(process);
        copies.get_or_insert_with(is_allowed).then_some(process.pid)
    }
}

/// Lets this process have more descriptors, as far as its hard limit allows. Each peer on this host takes several.
fn allow_descriptors() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.unwrap_or(u64::MAX).min(DESCRIPTORS);
    if current.is_some_and(|current| current < wanted) {
        // With the limit as it is there are fewer peers.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum });
    }
}

fn open_udp(
    address: SocketAddr,
    process: &Process,
    (timeout, switches): (Duration, Switches),
) -> Result<Nic, LinksError> {
    // Two processes draw different faults.
    let seed = process.nonce.iter().fold(0, |seed, byte| seed << 8 | u64::from(*byte));
    let options = UdpOptions::new().bind(address).peer_timeout(timeout).faults(faults()?).seed(seed);
    Ok(Nic::open(WireKind::Udp(options), &process.discriminator(), Some(timeout), switches)?)
}

/// Returns the process that serves a port of a host.
pub fn service(address: SocketAddr) -> Process {
    let ip = address.ip().to_canonical();
    let is_own = ip.is_unspecified() || interface::is_own(ip);
    let is_by_shm = || Switches::read().is_ok_and(|switches| switches.wire == Wire::Shm);
    if !is_own || !is_by_shm() {
        return Process::serving(address, [0; 8]);
    }
    // A host has many addresses, and a service is the same at each of them.
    Process::serving(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), address.port()), host())
}

#[cfg(test)]
#[cfg(not(miri))]
mod tests;
