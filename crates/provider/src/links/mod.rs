//! The connections of a process, by Virtual Interfaces: over shared memory within a host, over UDP between hosts.
//!
//! A process asks for a connection when it first sends something. Two processes may ask each other at the same time.
//! Then there are two VIs, and each process sends over the first that it learns of. It receives from both.

mod copying;
mod identity;
mod nic;

pub use identity::{NAME_LEN, Name, Process};

use crate::engine::{Copied, LinkEvent, Links, Payload, PeerNo};
use crate::frame::HEADER_LEN;
use crate::memory::{Memory, Segment};
use netdyno_host::random;
use netdyno_stack::vi::{Address, ConnectError, OpenError, UdpOptions, ViHandle, WireKind};
use nic::{Buffer, Nic, NicEvent};
use rustc_hash::FxHashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::Deref;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Calls between two looks for requests and lost peers. A look takes several system calls.
const IDLE_CALLS: u32 = 8192;
/// Time in which a process that refuses a request is asked again. It refuses when several ask at once.
const NO_MATCH_TIMEOUT: Duration = Duration::from_secs(5);

/// Why the connections of a process cannot be opened.
#[derive(Debug, Error)]
pub enum LinksError {
    /// A provider of Virtual Interfaces could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// There is no such wire.
    #[error("FI_NETDYNO_WIRE is '{0}': use shm or udp")]
    NoWire(String),
}

/// The wire of a VI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Wire {
    Shm,
    Udp,
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

/// The connection to a peer.
#[derive(Debug)]
struct Link {
    process: Process,
    wire: Wire,
    /// The VI that sends.
    vi: Option<ViHandle>,
    /// A request without an answer, and the time until which it is repeated.
    asking: Option<(ViHandle, Instant)>,
    /// Whether the system copies between the two processes; `None` if that was not tried.
    copies: Option<bool>,
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
    idle: u32,
    asking: usize,
    lost: Vec<PeerNo>,
}

impl ViLinks {
    /// Opens the connections of this process.
    ///
    /// # Errors
    /// Returns an error if the system refuses memory, a socket or another resource, or if `FI_NETDYNO_WIRE` is wrong.
    pub fn open() -> Result<Self, LinksError> {
        let own_wire = match std::env::var("FI_NETDYNO_WIRE") {
            Err(_) => Wire::Shm,
            Ok(name) if name == "shm" => Wire::Shm,
            Ok(name) if name == "udp" => Wire::Udp,
            Ok(name) => return Err(LinksError::NoWire(name)),
        };
        let nonce: [u8; 16] = random::bytes().unwrap_or_default();
        let proof = Box::new(nonce);
        let bind = SocketAddr::new(own_address(), 0);
        let shm = Nic::open(WireKind::Shm, &discriminator(&nonce))?;
        let udp = Nic::open(WireKind::Udp(UdpOptions::new().bind(bind)), &discriminator(&nonce))?;
        let process = Process {
            pid: std::process::id(),
            proof: proof.as_ptr().expose_provenance() as u64,
            // A process that shares its host with nobody sends over UDP to all.
            host: if own_wire == Wire::Shm { host() } else { nonce[..8].try_into().unwrap_or_default() },
            nonce,
            udp: Process::udp_of(&udp.host()),
        };
        let own = Link { process, wire: Wire::Shm, vi: None, asking: None, copies: Some(true) };
        Ok(Self {
            shm,
            udp,
            proof,
            process,
            links: vec![own],
            peers: [(nonce, 0)].into_iter().collect(),
            by_vi: FxHashMap::default(),
            idle: 0,
            asking: 0,
            lost: Vec::new(),
        })
    }

    /// Returns what peers must know of this process.
    pub fn process(&self) -> &Process {
        debug_assert_eq!(*self.proof, self.process.nonce);
        &self.process
    }

    /// Returns the number of a process.
    pub fn peer(&mut self, process: &Process) -> PeerNo {
        let next = self.links.len();
        let peer = *self.peers.entry(process.nonce).or_insert(next);
        if peer == next {
            let wire = if process.host == self.process.host { Wire::Shm } else { Wire::Udp };
            self.links.push(Link { process: *process, wire, vi: None, asking: None, copies: None });
        }
        peer
    }

    fn nic(&mut self, wire: Wire) -> &mut Nic {
        match wire {
            Wire::Shm => &mut self.shm,
            Wire::Udp => &mut self.udp,
        }
    }

    fn ask(&mut self, peer: PeerNo, until: Instant) {
        let Link { process, wire, .. } = self.links[peer];
        let host = match wire {
            Wire::Shm => self.shm.host(),
            Wire::Udp => process.udp_host(),
        };
        let (from, to) =
            (self.process.encode(), Address { host, discriminator: discriminator(&process.nonce) });
        let asked = self.nic(wire).ask(&from, to);
        match asked {
            Some(vi) => {
                self.links[peer].asking = Some((vi, until));
                self.asking += 1;
            }
            None => self.lost.push(peer),
        }
    }

    /// Looks for answers to requests, for requests, and for lost peers.
    fn maintain(&mut self) {
        self.idle = 0;
        for wire in [Wire::Shm, Wire::Udp] {
            self.nic(wire).maintain();
            for (vi, name) in self.nic(wire).accept() {
                // A requester that does not say who it is is left alone.
                let Some(process) = Process::parse(&name) else { continue };
                let peer = self.peer(&process);
                self.by_vi.insert((wire, vi), peer);
                self.links[peer].vi.get_or_insert(vi);
            }
        }
        if self.asking > 0 {
            (0..self.links.len()).for_each(|peer| self.look_for_answer(peer));
        }
    }

    fn look_for_answer(&mut self, peer: PeerNo) {
        let Link { wire, asking: Some((vi, until)), .. } = self.links[peer] else { return };
        let answer = self.nic(wire).is_answered(vi);
        if answer == Ok(false) {
            return;
        }
        self.links[peer].asking = None;
        self.asking -= 1;
        match answer {
            Ok(_) => {
                self.by_vi.insert((wire, vi), peer);
                // A process that has sent over another VI goes on there.
                self.links[peer].vi.get_or_insert(vi);
            }
            Err(ConnectError::NoMatch | ConnectError::TooMany | ConnectError::Rejected)
                if Instant::now() < until =>
            {
                self.ask(peer, until);
            }
            Err(_) => self.lost.push(peer),
        }
    }
}

impl Links for ViLinks {
    type Buffer = Received;

    fn try_send(&mut self, peer: PeerNo, header: &[u8; HEADER_LEN], payload: Payload<'_>) -> bool {
        let Link { vi, wire, asking, .. } = self.links[peer];
        if let Some(vi) = vi {
            return self.nic(wire).try_send(vi, header, payload);
        }
        if asking.is_none() {
            self.ask(peer, Instant::now() + NO_MATCH_TIMEOUT);
        }
        false
    }

    fn next(&mut self) -> Option<LinkEvent<Received>> {
        if let Some(peer) = self.lost.pop() {
            return Some(LinkEvent::Lost(peer));
        }
        self.idle += 1;
        if self.idle >= IDLE_CALLS || self.asking > 0 {
            self.maintain();
        }
        for wire in [Wire::Shm, Wire::Udp] {
            let event = match self.nic(wire).next() {
                None => continue,
                Some(NicEvent::Message(buffer)) => self
                    .by_vi
                    .get(&(wire, buffer.vi()))
                    .map(|peer| LinkEvent::Message(*peer, Received { wire, buffer })),
                Some(NicEvent::Broken(vi)) => self.by_vi.remove(&(wire, vi)).map(LinkEvent::Lost),
            };
            if event.is_some() {
                return event;
            }
        }
        None
    }

    fn give_back(&mut self, _peer: PeerNo, Received { wire, buffer }: Received) {
        self.nic(wire).give_back(buffer);
    }

    fn pull(&mut self, peer: PeerNo, from: &[Segment], to: &Memory) -> Copied {
        match self.copies(peer) {
            None => Copied::NotHere,
            Some(pid) => copying::pull(pid, from, to),
        }
    }

    fn push(&mut self, peer: PeerNo, from: &Memory, to: &[Segment]) -> Copied {
        match self.copies(peer) {
            None => Copied::NotHere,
            Some(pid) => copying::push(pid, from, to),
        }
    }
}

impl ViLinks {
    /// Returns the process id of a peer, if the system copies between its memory and this process's.
    fn copies(&mut self, peer: PeerNo) -> Option<u32> {
        let Link { process, wire, copies, .. } = &mut self.links[peer];
        let is_allowed = || *wire == Wire::Shm && copying::is_allowed(process);
        copies.get_or_insert_with(is_allowed).then_some(process.pid)
    }
}

/// Returns the discriminator at which a process waits for requests.
fn discriminator(nonce: &[u8; 16]) -> Vec<u8> {
    let mut name = b"fi/".to_vec();
    name.extend(nonce.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()));
    name
}

/// Returns a value that processes of one user on one host share, and no others.
fn host() -> [u8; 8] {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let space =
        std::fs::read_link("/proc/self/ns/net").map(|path| path.into_os_string().into_encoded_bytes());
    let user = rustix::process::geteuid().as_raw().to_le_bytes();
    let parts = [boot.trim().as_bytes(), &space.unwrap_or_default(), &user].concat();
    // FNV-1a (Fowler, Noll and Vo): equal for equal parts, whatever the build.
    let hash = parts.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash.to_le_bytes()
}

/// Returns an address of this host that peers on other hosts reach.
fn own_address() -> IpAddr {
    let all = netdyno_host::interface::addresses().unwrap_or_default();
    all.into_iter().find(|ip| ip.is_ipv4() && !ip.is_loopback()).unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
}

#[cfg(test)]
#[cfg(not(miri))]
mod tests {
    use super::*;
    use crate::frame::{Header, Kind};

    const WITHIN: Duration = Duration::from_secs(60);

    /// Returns the connections of two processes, on one host or on two. Both are in this process.
    fn pair(are_far: bool) -> [ViLinks; 2] {
        let mut links = [(); 2].map(|()| ViLinks::open().unwrap());
        if are_far {
            links[1].process.host = [9; 8];
        }
        links
    }

    /// Lets both work until one has an event that the caller wants.
    fn wait<R>(
        links: &mut [ViLinks; 2],
        mut wanted: impl FnMut(usize, LinkEvent<Received>, &mut ViLinks) -> Option<R>,
    ) -> R {
        let until = Instant::now() + WITHIN;
        loop {
            for (end, links) in links.iter_mut().enumerate() {
                if let Some(event) = links.next()
                    && let Some(found) = wanted(end, event, links)
                {
                    return found;
                }
            }
            assert!(Instant::now() < until, "nothing comes");
        }
    }

    fn send(links: &mut [ViLinks; 2], from: usize, peer: PeerNo, tag: u64) {
        let header = Header { tag, ..Header::new(Kind::Message) }.encode();
        let until = Instant::now() + WITHIN;
        while !links[from].try_send(peer, &header, Payload::Bytes(&[tag as u8; 1000])) {
            for links in &mut *links {
                let event = links.next();
                assert!(event.is_none(), "{event:?} {:?}", std::thread::current().name());
            }
            assert!(Instant::now() < until, "there is no connection");
        }
    }

    /// Waits for a message with this tag. Returns the receiver and the number of the sender there.
    fn receive(links: &mut [ViLinks; 2], tag: u64) -> (usize, PeerNo) {
        wait(links, |end, event, links| {
            let LinkEvent::Message(peer, buffer) = event else { return None };
            let (header, payload) = Header::parse(&buffer).unwrap();
            assert_eq!((header.tag, payload), (tag, &[tag as u8; 1000][..]));
            links.give_back(peer, buffer);
            Some((end, peer))
        })
    }

    #[test]
    fn messages_go_both_ways_and_the_end_is_noticed() {
        for are_far in [false, true] {
            let mut links = pair(are_far);
            let process = *links[1].process();
            let there = links[0].peer(&process);
            assert_eq!(links[0].links[there].wire == Wire::Udp, are_far);
            send(&mut links, 0, there, 1);
            let (end, back) = receive(&mut links, 1);
            assert_eq!(end, 1);
            for tag in 2..100 {
                send(&mut links, 1, back, tag);
                assert_eq!(receive(&mut links, tag), (0, there));
                send(&mut links, 0, there, tag);
                assert_eq!(receive(&mut links, tag), (1, back));
            }
            let [mut left, right] = links;
            drop(right);
            let until = Instant::now() + WITHIN;
            while !matches!(left.next(), Some(LinkEvent::Lost(peer)) if peer == there) {
                assert!(Instant::now() < until, "the end of the peer is not noticed");
            }
        }
    }

    /// Each asks the other before it hears of its request.
    #[test]
    fn two_that_ask_each_other_both_get_through() {
        for are_far in [false, true] {
            let mut links = pair(are_far);
            let [left, right] = [0, 1].map(|end| *links[end].process());
            let (there, back) = (links[0].peer(&right), links[1].peer(&left));
            let header = Header { tag: 5, ..Header::new(Kind::Message) }.encode();
            for (end, peer) in [(0, there), (1, back)] {
                assert!(!links[end].try_send(peer, &header, Payload::Bytes(&[])));
            }
            send(&mut links, 0, there, 7);
            assert_eq!(receive(&mut links, 7), (1, back));
            send(&mut links, 1, back, 8);
            assert_eq!(receive(&mut links, 8), (0, there));
        }
    }
}
