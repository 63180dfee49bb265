//! A nonblocking UDP socket.
//!
//! Runs of equally long datagrams are sent and received as GSO and GRO batches where the system supports that.
//! All other datagrams use single sends and receives, which have the lowest latency.

use super::DatagramWire;
use super::gro::{Datagrams, Gathering};
use super::gso::GsoBatch;
use rustix::net::sockopt;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use thiserror::Error;

/// Requested size of the receive and send buffers in bytes. The system may give less.
const BUFFER: usize = 4 << 20;
/// Attempts to bind a port that was free a moment ago and may be taken by now.
const ATTEMPTS: usize = 16;
/// Pending socket errors that `receive` consumes before it reports that no datagram has arrived.
const OLD_ERRORS: usize = 4;

/// Reports why a socket could not be opened.
#[derive(Debug, Error)]
pub enum SocketError {
    /// The address is in use, or does not belong to this host.
    #[error("cannot open a UDP socket at {address}: {error}; {}", advice(.error))]
    Bind {
        /// The requested address.
        address: SocketAddr,
        /// The system's error.
        #[source]
        error: io::Error,
    },
    /// The address is a wildcard or a multicast address, which cannot be announced to peers.
    #[error("cannot open a UDP socket at {0}: name the one address at which peers reach this host")]
    Unspecified(SocketAddr),
    /// The system refused another operation.
    #[error("the system refused to {what}: {error}")]
    System {
        /// The operation.
        what: &'static str,
        /// The system's error.
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

/// A bound UDP socket.
#[derive(Debug)]
pub struct DatagramSocket {
    socket: UdpSocket,
    local: SocketAddr,
    /// The peer to which the kernel has connected the socket, if any.
    only_peer: Option<SocketAddr>,
    /// Datagrams of other senders may be queued, because they arrived before the socket was connected.
    may_hold_others: bool,
    /// Datagrams that wait to be sent as one GSO batch.
    batch: GsoBatch,
    gathering: Gathering,
    refused: u64,
}

impl DatagramSocket {
    /// Binds a socket to the address at which peers reach it. Port 0 chooses a free port.
    ///
    /// # Errors
    /// Returns `SocketError` if the address is a wildcard, a multicast address or unavailable.
    pub fn bind(address: SocketAddr) -> Result<Self, SocketError> {
        if address.ip().is_unspecified() {
            return Err(SocketError::Unspecified(address));
        }
        Self::bind_wide(address)
    }

    /// Binds a socket like [`DatagramSocket::bind`], and also accepts a wildcard address.
    ///
    /// # Errors
    /// Returns `SocketError` if the address is a multicast address or unavailable.
    pub fn bind_wide(address: SocketAddr) -> Result<Self, SocketError> {
        if address.ip().is_multicast() {
            return Err(SocketError::Unspecified(address));
        }
        let system = |what| move |error| SocketError::System { what, error };
        let socket = bind(address).map_err(|error| SocketError::Bind { address, error })?;
        socket.set_nonblocking(true).map_err(system("set up a socket"))?;
        // A smaller buffer only loses datagrams sooner, so a refusal is no error.
        let _ = sockopt::set_socket_recv_buffer_size(&socket, BUFFER);
        let _ = sockopt::set_socket_send_buffer_size(&socket, BUFFER);
        let local = socket.local_addr().map_err(system("name a socket"))?;
        Ok(Self {
            socket,
            local,
            only_peer: None,
            may_hold_others: true,
            batch: GsoBatch::default(),
            gathering: Gathering::default(),
            refused: 0,
        })
    }

    /// Sends the batch in one call if it has several datagrams.
    #[inline]
    fn depart(&mut self) {
        let mut batch = std::mem::take(&mut self.batch);
        let to = batch.to();
        if let Some(datagram) = batch.alone() {
            self.transmit(to, datagram);
        } else if !batch.send(&self.socket, self.only_peer.is_some()) {
            batch.datagrams().for_each(|datagram| self.transmit(to, datagram));
        }
        batch.clear();
        self.batch = batch;
    }

    #[inline]
    fn transmit(&mut self, to: SocketAddr, datagram: &[u8]) {
        // Tries again if the socket first reports an error of an earlier datagram.
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
        // Any refusal may be temporary, and the peer sees it as one more loss.
        self.refused += 1;
    }
}

impl DatagramWire for DatagramSocket {
    fn local(&self) -> SocketAddr {
        self.local
    }

    fn refused(&self) -> u64 {
        self.refused
    }

    /// Connects the socket to the peer. On a connected socket the kernel looks up no route for each datagram,
    /// which saves a tenth of a round trip on loopback.
    fn set_only_peer(&mut self, peer: Option<SocketAddr>) {
        if peer == self.only_peer {
            return;
        }
        let result = match peer {
            Some(peer) => self.socket.connect(peer),
            None => rustix::net::connect_unspec(&self.socket).map_err(io::Error::from),
        };
        // If the kernel refuses, each datagram still carries its address.
        self.only_peer = if result.is_ok() { peer } else { None };
        self.may_hold_others = true;
    }

    #[inline]
    fn send(&mut self, to: SocketAddr, datagram: &[u8], _now_ns: u64) {
        self.flush();
        self.transmit(to, datagram);
    }

    #[inline]
    fn join(&mut self, to: SocketAddr, datagram: &[u8], _now_ns: u64) {
        if !self.batch.takes(to, datagram) {
            self.depart();
        }
        self.batch.push(to, datagram);
    }

    #[inline]
    fn flush(&mut self) {
        if !self.batch.is_empty() {
            self.depart();
        }
    }

    #[inline]
    fn receive(&mut self, room: &mut [u8]) -> Option<Datagrams> {
        for _ in 0..OLD_ERRORS {
            let result = match self.only_peer {
                peer if self.gathering.is_active() => self.gathering.receive(&self.socket, room, peer),
                Some(peer) if !self.may_hold_others => self.socket.recv(room).map(|len| (len, peer).into()),
                _ => self.socket.recv_from(room).map(Datagrams::from),
            };
            match result {
                Ok(datagrams) => {
                    self.gathering.note(&self.socket, &datagrams, room.len());
                    return Some(datagrams);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.may_hold_others = false;
                    self.gathering.note_empty(&self.socket);
                    return None;
                }
                // The error belongs to an earlier datagram that no socket received. Peer timeouts handle that
                // case.
                Err(_) => {}
            }
        }
        None
    }
}

impl AsFd for DatagramSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Binds a socket so that it keeps its port when it is disconnected from a peer. The kernel releases a port
/// that it chose itself on disconnection.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagram::tests::{ANY, all_that_comes, wait_for};
    use netdyno_protocol::frame::datagram::LONGEST;
    use std::time::Duration;

    #[test]
    fn a_socket_keeps_its_port_whoever_its_peers_are() {
        let [mut a, mut b, mut c] = [(); 3].map(|()| DatagramSocket::bind(ANY).unwrap());
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
        let [mut a, b, mut c] = [(); 3].map(|()| DatagramSocket::bind(ANY).unwrap());
        c.send(a.local(), b"early", 0);
        a.set_only_peer(Some(b.local()));
        a.block(Duration::from_secs(10));
        assert_eq!(a.receive(&mut [0; 10]), Some(Datagrams::from((5, c.local()))));
        assert_eq!(a.receive(&mut [0; 10]), None);
        c.send(a.local(), b"late", 0);
        assert_eq!(a.receive(&mut [0; 10]), None);
    }

    #[test]
    fn what_nobody_takes_is_a_loss_and_no_error() {
        let mut a = DatagramSocket::bind(ANY).unwrap();
        let nobody = DatagramSocket::bind(ANY).unwrap().local();
        a.set_only_peer(Some(nobody));
        let mut room = [0; 10];
        for _ in 0..10 {
            a.send(nobody, b"hello", 0);
            assert_eq!(a.receive(&mut room), None);
        }
    }

    #[test]
    fn an_address_that_cannot_be_had() {
        let taken = DatagramSocket::bind(ANY).unwrap();
        let error = DatagramSocket::bind(taken.local()).unwrap_err().to_string();
        assert!(error.contains("choose another port"), "{error}");
        let foreign = "192.0.2.1:0".parse().unwrap();
        let error = DatagramSocket::bind(foreign).unwrap_err().to_string();
        assert!(error.contains("an address of this host"), "{error}");
        let error = DatagramSocket::bind("0.0.0.0:0".parse().unwrap()).unwrap_err().to_string();
        assert!(error.contains("name the one address"), "{error}");
        assert!(DatagramSocket::bind_wide("0.0.0.0:0".parse().unwrap()).is_ok());
    }

    #[test]
    fn what_goes_out_in_trains_comes_as_it_was() {
        for are_connected in [false, true] {
            let [mut a, mut b, mut c] = [(); 3].map(|()| DatagramSocket::bind(ANY).unwrap());
            if are_connected {
                a.set_only_peer(Some(b.local()));
                b.set_only_peer(Some(a.local()));
            }
            for lens in [
                vec![LONGEST; 100],
                vec![10; 3],
                vec![72; 200],
                vec![48, 72, 72, 40],
                [vec![LONGEST; 45], vec![1, LONGEST, 7, 7]].concat(),
            ] {
                let sent: Vec<Vec<u8>> = lens.iter().zip(1_u8..).map(|(&len, n)| vec![n; len]).collect();
                for datagram in &sent {
                    a.join(b.local(), datagram, 0);
                }
                if !are_connected {
                    a.join(c.local(), b"another", 0);
                }
                a.flush();
                assert_eq!(all_that_comes(&mut b), sent);
                if !are_connected {
                    assert_eq!(all_that_comes(&mut c), [b"another"]);
                }
            }
            assert!(b.gathering.is_active() && !a.gathering.is_active());
            assert_eq!((a.refused(), a.batch.is_refused()), (0, false));
        }
    }

    /// Sends each datagram by itself if the system refuses GSO.
    #[test]
    fn without_offload_nothing_is_lost() {
        let mut a = DatagramSocket::bind(ANY).unwrap();
        let mut b = DatagramSocket::bind(ANY).unwrap();
        a.batch = GsoBatch::refused();
        let sent = vec![vec![3; LONGEST]; 50];
        sent.iter().for_each(|datagram| a.join(b.local(), datagram, 0));
        a.flush();
        assert_eq!(all_that_comes(&mut b), sent);
        assert_eq!(a.refused(), 0);
    }

    #[test]
    fn a_datagram_that_is_sent_does_not_overtake_those_that_wait() {
        let [mut a, mut b] = [(); 2].map(|()| DatagramSocket::bind(ANY).unwrap());
        (0..10).for_each(|n| a.join(b.local(), &[n; 72], 0));
        assert_eq!(b.receive(&mut [0; 100]), None);
        a.send(b.local(), &[10; 72], 0);
        assert_eq!(all_that_comes(&mut b), (0..=10).map(|n| vec![n; 72]).collect::<Vec<_>>());
    }

    /// A batch that arrives while the socket stops to gather is not taken for one datagram.
    #[test]
    fn a_socket_gathers_while_batches_come() {
        let [mut a, mut b] = [(); 2].map(|()| DatagramSocket::bind(ANY).unwrap());
        for _ in 0..3 {
            let batch = vec![vec![1; 72]; 30];
            for _ in 0..2 {
                batch.iter().for_each(|datagram| a.join(b.local(), datagram, 0));
                a.flush();
                assert_eq!(all_that_comes(&mut b), batch);
            }
            assert!(b.gathering.is_active());
            for n in 0..200 {
                a.send(b.local(), &[n; 40], 0);
                assert_eq!(all_that_comes(&mut b), [vec![n; 40]]);
            }
            assert!(!b.gathering.is_active());
        }
    }
}
