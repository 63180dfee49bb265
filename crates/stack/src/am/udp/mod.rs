//! The peers of an endpoint over UDP: one socket serves all of them. [`Connection`] selects the datagrams to
//! send and to believe, and the time of each. A [`Driver`] drives it.

mod bulk;
mod corking;
mod dialled;
pub(super) mod outbox;
mod peer;
mod polling;
mod transfers;
mod transport;

pub use crate::udp::LINGER;

use super::bulk::Memories;
use super::config::Config;
use super::dial::Interface;
use super::error::{ConnectError, OpenError, PeerLost};
use super::handlers::Offer;
use super::peer_id::{PeerId, Wire};
use super::transport::Lent;
use crate::udp::{Driver, Lookup, timeout_ns};
use corking::Corking;
use netdyno_clock::ticks;
use netdyno_host::datagram::{Carrier, DatagramSocket, DatagramWire, SocketError, XdpWire};
use netdyno_host::{interface, random};
use netdyno_protocol::frame::datagram::{Datagram, LONGEST_PAYLOAD, STAMP_LEN};
use netdyno_protocol::frame::udp_port::UdpPortAddress;
use netdyno_protocol::reliability::{self, Connection, Grants};
use peer::UdpPeer;
use polling::Polling;
use std::net::IpAddr;
use std::sync::Arc;

/// Maximum window over UDP. Counts of requests have 16 bits, and datagrams with older counts may come
/// late.
const WINDOW_AT_MOST: u32 = 1 << 14;

pub(super) struct UdpPeers {
    config: Config,
    wire: Wire,
    driver: Driver,
    peers: Vec<UdpPeer>,
    /// The peers by connection number.
    places: Lookup<u64>,
    corking: Corking,
    grants: Grants,
    /// Losses that the next polls report.
    unreported: Vec<PeerLost>,
    /// Present if dials are set.
    interface: Option<Arc<Interface>>,
    /// When the socket was last found empty, in ticks; only if dials are set.
    empty_at: Option<u64>,
}

impl UdpPeers {
    /// Opens the socket, or the AF_XDP sockets if `wire` says so.
    pub(super) fn open(
        wire: Wire,
        config: &Config,
        interface: Option<Arc<Interface>>,
    ) -> Result<Self, OpenError> {
        let carrier: Carrier = match wire {
            Wire::Xdp => XdpWire::bind(config.bind)?.into(),
            _ => DatagramSocket::bind(config.bind)?.into(),
        };
        Ok(Self {
            config: *config,
            wire,
            driver: Driver::new(carrier, config.faults, config.seed, config.peer_timeout),
            peers: Vec::new(),
            places: Lookup::default(),
            corking: Corking::default(),
            grants: Grants::default(),
            unreported: Vec::new(),
            interface,
            empty_at: None,
        })
    }

    /// Returns the longest payload of a message with all four words, in bytes.
    fn longest_payload(&self) -> usize {
        LONGEST_PAYLOAD - if self.interface.is_some() { STAMP_LEN } else { 0 }
    }

    fn new_port(&self) -> Result<UdpPortAddress, OpenError> {
        let connection = random::bytes()
            .map_err(|error| SocketError::System { what: "give random bytes", error: error.into() })?;
        Ok(UdpPortAddress {
            window: self.config.window.min(WINDOW_AT_MOST),
            medium_bytes: self.config.medium_bytes.min(self.longest_payload() as u32),
            connection: u64::from_le_bytes(connection),
            socket: self.driver.socket.local(),
        })
    }

    fn add_peer(
        &mut self,
        id: PeerId,
        ours: UdpPortAddress,
        theirs: UdpPortAddress,
    ) -> Result<(), ConnectError> {
        if ours.socket != self.driver.socket.local() {
            return Err(ConnectError::ForeignPort);
        }
        if ours.socket.is_ipv4() != theirs.socket.is_ipv4() {
            return Err(ConnectError::Family(theirs.socket, ours.socket));
        }
        if self.interface.is_some() && !is_here(theirs.socket.ip()).map_err(ConnectError::Addresses)? {
            return Err(ConnectError::DialledFar(theirs.socket));
        }
        let config = reliability::Config {
            window: ours.window.min(theirs.window),
            peer_timeout_ns: timeout_ns(self.config.peer_timeout),
            ..reliability::Config::default()
        };
        let connection =
            Connection::new(config, ours.connection, theirs.connection, self.driver.clock.now_ns());
        let medium_bytes =
            [theirs, ours].map(|address| (address.medium_bytes as usize).min(self.longest_payload()));
        let timeout = self.config.peer_timeout;
        let mut peer = UdpPeer::new(id, theirs.socket, connection, medium_bytes, timeout);
        if let Some(interface) = &self.interface {
            peer.dial(interface);
        }
        self.peers.push(peer);
        self.places.insert(ours.connection, id.place());
        self.driver.socket.set_only_peer((id.place() == 0).then_some(theirs.socket));
        Ok(())
    }

    #[inline(always)]
    fn peer(&self, id: PeerId) -> &UdpPeer {
        &self.peers[id.place()]
    }

    /// Sends all datagrams that a connection has ready.
    #[inline]
    fn transmit(&mut self, place: usize, now_ns: u64) {
        let peer = &mut self.peers[place];
        peer.share(&mut self.grants);
        let at_ns = peer.transmit(&mut self.driver.socket, now_ns);
        self.driver.expect(at_ns);
    }

    /// Sends all datagrams that a connection has ready, and as much of its transfers as there is room
    /// for.
    fn transmit_all(&mut self, place: usize, now_ns: u64, memories: &Memories, lent: Lent<'_>) {
        let peer = &mut self.peers[place];
        peer.share(&mut self.grants);
        let at_ns = peer.transmit_all(&mut self.driver.socket, memories, lent, now_ns);
        self.driver.expect(at_ns);
    }

    /// Takes the datagrams of the socket until one delivers messages, handles these, and runs the timers
    /// that are due.
    #[inline(never)]
    fn poll<S>(&mut self, offer: &Offer<S>, state: &mut S) -> Result<usize, PeerLost> {
        self.send_waiting();
        if let Some(lost) = self.unreported.pop() {
            return Err(lost);
        }
        let Self { driver, peers, places, empty_at, grants, .. } = self;
        let take = |peer: &mut UdpPeer, datagram: &Datagram<'_>, now_ns: u64| {
            if peer.is_dialled() {
                return peer.take_and_hold(datagram, *empty_at, now_ns, &offer.memories);
            }
            peer.take(datagram, now_ns, offer, state)
        };
        let polled = driver.poll(&mut Polling { peers, places, memories: &offer.memories, grants, take })?;
        if self.interface.is_some() {
            // The messages taken above are held; this releases the one that is due.
            self.empty_at = polled.is_drained.then(ticks::now).or(self.empty_at);
            return self.release(offer, state);
        }
        Ok(polled.handled)
    }

    /// Sends again what is due and not acknowledged, while the program does not poll. Messages that have arrived wait for
    /// the next poll.
    #[cold]
    fn tend(&mut self, memories: &Memories) {
        let Self { driver, peers, places, grants, .. } = self;
        if let Some(until_ns) = driver.absent_until() {
            peers.iter_mut().for_each(|peer| peer.outbox.connection.be_patient(until_ns));
        }
        let take = |_: &mut UdpPeer, _: &Datagram<'_>, _: u64| Ok(0);
        let mut polling = Polling { peers, places, memories, grants, take };
        self.unreported.extend(driver.tend(&mut polling, Polling::acknowledge).err());
    }

    fn say_goodbye(&mut self, place: usize, now_ns: u64) {
        let peer = &mut self.peers[place];
        peer.say_goodbye(&mut self.driver.socket, now_ns);
        peer.share(&mut self.grants);
    }

    /// Sends again what is not acknowledged. Handles no message, because there is no state for handlers
    /// and no registered memory any more.
    fn linger(&mut self) {
        let Self { driver, peers, places, grants, .. } = self;
        let take = |peer: &mut UdpPeer, datagram: &Datagram<'_>, now_ns: u64| {
            peer.take_acknowledgement(&datagram.header, now_ns);
            Ok(0)
        };
        let memories = &Memories::new(0);
        driver.linger(
            &mut Polling { peers, places, memories, grants, take },
            LINGER.min(self.config.peer_timeout),
        );
    }
}

/// Returns whether an address is of this host, so that the process there reads the same clock.
fn is_here(ip: IpAddr) -> std::io::Result<bool> {
    Ok(ip.is_loopback() || interface::addresses()?.contains(&ip))
}

impl Drop for UdpPeers {
    fn drop(&mut self) {
        self.send_waiting();
        // The memories are closed to the peers now. A refusal would tell them that they had never been there.
        self.peers.iter_mut().for_each(UdpPeer::forget_answers);
        self.linger();
        let now_ns = self.driver.clock.now_ns();
        for place in 0..self.peers.len() {
            if self.peers[place].check_connected().is_ok() {
                self.say_goodbye(place, now_ns);
            }
        }
    }
}
