//! A UDP socket that never waits: the wire of an endpoint. The network under it may fail
//! in every way that UDP allows; where the faults are asked for, it does.

use netdyno_protocol::faults::{Faults, Spoiler};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;
use thiserror::Error;

/// Receive buffer asked for; the system may give less.
const BUFFER: usize = 4 << 20;
/// Attempts at a port that is free for one moment and may be gone the next.
const ATTEMPTS: usize = 16;
/// Errors of earlier datagrams taken from the socket before a look at it counts as in vain.
const OLD_ERRORS: usize = 4;
/// A datagram that is held back comes later by up to this: some round trips of a fast network.
const HOLD_AT_MOST_NS: u64 = 100_000;

/// Why a socket could not be opened.
#[derive(Debug, Error)]
pub enum SocketError {
    /// The address is not free, or not of this host.
    #[error("cannot open a UDP socket at {address}: {error}; {}", advice(.error))]
    Bind {
        /// What was asked for.
        address: SocketAddr,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// Peers cannot be told an address that stands for many.
    #[error("cannot open a UDP socket at {0}: name the one address at which peers reach this host")]
    Unspecified(SocketAddr),
    /// The system refused something else.
    #[error("the system refused to {what}: {error}")]
    System {
        /// What was asked of it.
        what: &'static str,
        /// What it said.
        #[source]
        error: io::Error,
    },
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "choose another port, or 0 for any that is free",
        io::ErrorKind::AddrNotAvailable => "choose an address of this host",
        io::ErrorKind::PermissionDenied => "choose a port from 1024 on, or 0 for any that is free",
        _ => "choose another address",
    }
}

/// A bound UDP socket, with or without faults.
#[derive(Debug)]
pub struct DatagramSocket {
    socket: UdpSocket,
    local: SocketAddr,
    /// The one address that the kernel sends to and takes from, where there is only one.
    only_peer: Option<SocketAddr>,
    /// What came before the kernel knew of the only peer may still be from others.
    may_hold_others: bool,
    faulty: Option<Box<Faulty>>,
    refused: u64,
}

impl DatagramSocket {
    /// Binds a socket to `address`; with port 0 to any port that is free. `faults` happen to
    /// all that is sent, drawn from the seed beside them.
    ///
    /// # Errors
    /// The address cannot be had.
    pub fn bind(address: SocketAddr, faults: Option<(Faults, u64)>) -> Result<Self, SocketError> {
        if address.ip().is_unspecified() || address.ip().is_multicast() {
            return Err(SocketError::Unspecified(address));
        }
        let system = |what| move |error| SocketError::System { what, error };
        let socket = bind(address).map_err(|error| SocketError::Bind { address, error })?;
        socket.set_nonblocking(true).map_err(system("set up a socket"))?;
        // A smaller buffer loses sooner, which is no reason not to start.
        let _ = sockopt::set_socket_recv_buffer_size(&socket, BUFFER);
        let local = socket.local_addr().map_err(system("name a socket"))?;
        let faulty = faults.map(|(faults, seed)| Box::new(Faulty::new(faults, seed)));
        Ok(Self { socket, local, only_peer: None, may_hold_others: true, faulty, refused: 0 })
    }

    /// Where it is bound.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Datagrams that the system would not send.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Says with whom it speaks: with one peer only, which spares the kernel looking for the
    /// way at every datagram (a tenth of a round trip on loopback), or with anybody.
    pub fn set_only_peer(&mut self, peer: Option<SocketAddr>) {
        if peer == self.only_peer {
            return;
        }
        let result = match peer {
            Some(peer) => self.socket.connect(peer),
            None => rustix::net::connect_unspec(&self.socket).map_err(io::Error::from),
        };
        // Where the kernel will not, datagrams are addressed one by one, as before.
        self.only_peer = if result.is_ok() { peer } else { None };
        self.may_hold_others = true;
    }

    /// Sends a datagram, or loses it, as a network may.
    #[inline]
    pub fn send(&mut self, to: SocketAddr, datagram: &[u8], now_ns: u64) {
        match &mut self.faulty {
            None => self.transmit(to, datagram),
            Some(_) => self.spoil(to, datagram, now_ns),
        }
    }

    #[cold]
    fn spoil(&mut self, to: SocketAddr, datagram: &[u8], now_ns: u64) {
        if let Some(mut faulty) = self.faulty.take() {
            faulty.pass(to, datagram, now_ns, |to, datagram| self.transmit(to, datagram));
            self.faulty = Some(faulty);
        }
    }

    /// Sends what was held back until now.
    pub fn release(&mut self, now_ns: u64) {
        if let Some(mut faulty) = self.faulty.take() {
            faulty.release(now_ns, |to, datagram| self.transmit(to, datagram));
            self.faulty = Some(faulty);
        }
    }

    /// When something that is held back has to be sent.
    pub fn next_release_ns(&self) -> Option<u64> {
        self.faulty.as_ref()?.held.peek().map(|Reverse(held)| held.at_ns)
    }

    #[inline]
    fn transmit(&mut self, to: SocketAddr, datagram: &[u8]) {
        // Once more where the socket had to tell of an earlier datagram first.
        for _ in 0..2 {
            let result = match self.only_peer {
                Some(_) => self.socket.send(datagram),
                None => self.socket.send_to(datagram, to),
            };
            match result {
                Ok(_) => return,
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(_) => break,
            }
        }
        // Whatever the reason, it may pass: to the peer it is one more loss.
        self.refused += 1;
    }

    /// Takes a datagram into `room`, if one is there: its length and its sender. One that is
    /// longer than `room` is cut.
    #[inline]
    pub fn receive(&mut self, room: &mut [u8]) -> Option<(usize, SocketAddr)> {
        for _ in 0..OLD_ERRORS {
            let result = match self.only_peer {
                Some(peer) if !self.may_hold_others => self.socket.recv(room).map(|len| (len, peer)),
                _ => self.socket.recv_from(room),
            };
            match result {
                Ok(datagram) => return Some(datagram),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.may_hold_others = false;
                    return None;
                }
                // Tells of an earlier datagram that nobody took: silence is what counts.
                Err(_) => {}
            }
        }
        None
    }

    /// Sleeps until a datagram may be there, at most for `timeout`.
    pub fn block(&self, timeout: Duration) {
        let timeout = Timespec::try_from(timeout).ok();
        match poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            // Not to sleep is wasteful, not wrong.
            Err(_) => rustix::thread::sched_yield(),
        }
    }
}

/// Binds a socket so that it keeps its port when it is no longer connected to one peer: the
/// kernel forgets a port that it chose itself.
fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    if address.port() != 0 {
        return UdpSocket::bind(address);
    }
    let mut result = UdpSocket::bind(address);
    for _ in 0..ATTEMPTS {
        let chosen = result?.local_addr()?;
        result = UdpSocket::bind(chosen);
        match &result {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => result = UdpSocket::bind(address),
            _ => break,
        }
    }
    result
}

/// A network that fails.
#[derive(Debug)]
struct Faulty {
    spoiler: Spoiler,
    held: BinaryHeap<Reverse<Held>>,
    count: u64,
}

/// In the order of their time, and of their coming where that is the same.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Held {
    at_ns: u64,
    nth: u64,
    to: SocketAddr,
    bytes: Vec<u8>,
}

impl Faulty {
    fn new(faults: Faults, seed: u64) -> Self {
        Self { spoiler: Spoiler::new(faults, HOLD_AT_MOST_NS, seed), held: BinaryHeap::new(), count: 0 }
    }

    fn pass(
        &mut self,
        to: SocketAddr,
        datagram: &[u8],
        now_ns: u64,
        mut transmit: impl FnMut(SocketAddr, &[u8]),
    ) {
        self.spoiler.spoil(datagram, now_ns, |bytes, held_ns| {
            if held_ns == 0 {
                return transmit(to, bytes);
            }
            self.count += 1;
            let held = Held { at_ns: now_ns + held_ns, nth: self.count, to, bytes: bytes.to_vec() };
            self.held.push(Reverse(held));
        });
    }

    fn release(&mut self, now_ns: u64, mut transmit: impl FnMut(SocketAddr, &[u8])) {
        while self.held.peek().is_some_and(|Reverse(held)| held.at_ns <= now_ns) {
            if let Some(Reverse(held)) = self.held.pop() {
                transmit(held.to, &held.bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

    fn wait_for(socket: &mut DatagramSocket) -> Option<Vec<u8>> {
        let mut room = [0; 100];
        socket.block(Duration::from_secs(10));
        socket.receive(&mut room).map(|(len, _)| room[..len].to_vec())
    }

    #[test]
    fn a_socket_keeps_its_port_whoever_its_peers_are() {
        let [mut a, mut b, mut c] = [(); 3].map(|()| DatagramSocket::bind(ANY, None).unwrap());
        a.set_only_peer(Some(b.local()));
        c.send(a.local(), b"from a stranger", 0);
        b.send(a.local(), b"from the peer", 0);
        assert_eq!(wait_for(&mut a).unwrap(), b"from the peer");
        a.set_only_peer(None);
        c.send(a.local(), b"from another peer", 0);
        assert_eq!(wait_for(&mut a).unwrap(), b"from another peer");
        a.send(c.local(), b"back", 0);
        assert_eq!(wait_for(&mut c).unwrap(), b"back");
        assert_eq!(a.refused(), 0);
    }

    #[test]
    fn what_came_before_the_only_peer_keeps_its_sender() {
        let [mut a, b, mut c] = [(); 3].map(|()| DatagramSocket::bind(ANY, None).unwrap());
        c.send(a.local(), b"early", 0);
        a.set_only_peer(Some(b.local()));
        a.block(Duration::from_secs(10));
        assert_eq!(a.receive(&mut [0; 10]), Some((5, c.local())));
        assert_eq!(a.receive(&mut [0; 10]), None);
        c.send(a.local(), b"late", 0);
        assert_eq!(a.receive(&mut [0; 10]), None);
    }

    #[test]
    fn what_nobody_takes_is_a_loss_and_no_error() {
        let mut a = DatagramSocket::bind(ANY, None).unwrap();
        let nobody = DatagramSocket::bind(ANY, None).unwrap().local();
        a.set_only_peer(Some(nobody));
        let mut room = [0; 10];
        for _ in 0..10 {
            a.send(nobody, b"hello", 0);
            assert_eq!(a.receive(&mut room), None);
        }
    }

    #[test]
    fn an_address_that_cannot_be_had() {
        let taken = DatagramSocket::bind(ANY, None).unwrap();
        let error = DatagramSocket::bind(taken.local(), None).unwrap_err().to_string();
        assert!(error.contains("choose another port"), "{error}");
        let foreign = "192.0.2.1:0".parse().unwrap();
        let error = DatagramSocket::bind(foreign, None).unwrap_err().to_string();
        assert!(error.contains("an address of this host"), "{error}");
        let error = DatagramSocket::bind("0.0.0.0:0".parse().unwrap(), None).unwrap_err().to_string();
        assert!(error.contains("name the one address"), "{error}");
    }

    #[test]
    fn what_is_held_back_is_overtaken_and_comes() {
        let faults = Faults { reorder: 0.5, ..Faults::NONE };
        let mut a = DatagramSocket::bind(ANY, Some((faults, 1))).unwrap();
        let mut b = DatagramSocket::bind(ANY, None).unwrap();
        for n in 0..20 {
            a.send(b.local(), &[n], 0);
        }
        assert!(a.next_release_ns().is_some_and(|at_ns| at_ns > 0));
        a.release(HOLD_AT_MOST_NS);
        assert_eq!(a.next_release_ns(), None);
        let came: Vec<u8> = (0..20).map(|_| wait_for(&mut b).unwrap()[0]).collect();
        assert!(!came.is_sorted(), "{came:?}");
        let mut all = came;
        all.sort_unstable();
        assert_eq!(all, (0..20).collect::<Vec<_>>());
    }
}
