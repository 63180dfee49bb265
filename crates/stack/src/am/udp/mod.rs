//! The peers of an endpoint over UDP: one socket serves all of them. [`Connection`] selects the datagrams to
//! send and to believe, and the time of each; this module drives it.

mod bulk;
mod dialled;
pub(super) mod outbox;
mod peer;
mod transfers;
mod transport;

use super::bulk::Memories;
use super::config::Config;
use super::dial::Interface;
use super::error::{ConnectError, Loss, OpenError, PeerLost};
use super::handlers::Offer;
use super::peer_id::PeerId;
use super::transport::{Lent, Transport};
use crate::clock::Clock;
use crate::statistics::Strays;
use netdyno_clock::ticks;
use netdyno_host::datagram::{DatagramSocket, DatagramWire, Datagrams, FaultyWire, ROOM, SocketError};
use netdyno_host::{interface, random};
use netdyno_protocol::frame::datagram::{self, Kind, LONGEST_PAYLOAD, STAMP_LEN};
use netdyno_protocol::frame::udp_port::UdpPortAddress;
use netdyno_protocol::reliability::{self, Connection};
use peer::UdpPeer;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a dropped endpoint continues to send what is not acknowledged yet.
pub const LINGER: Duration = Duration::from_secs(1);
/// Maximum number of datagrams in one poll that deliver no message.
const DATAGRAMS_AT_ONCE: usize = 16;
/// Polls in a row that do not empty the socket, after which timers run anyway. A timer usually waits
/// until the socket is empty, because the awaited datagram may be in it; a flood must not stop the
/// timers.
const POLLS_IN_A_FLOOD: u32 = 64;
/// Maximum window over UDP. Counts of requests have 16 bits, and datagrams with older counts may come
/// late.
const WINDOW_AT_MOST: u32 = 1 << 14;
/// Number of goodbyes that are sent, because no goodbye is acknowledged.
const GOODBYES: usize = 3;

pub(super) struct UdpPeers {
    config: Config,
    socket: FaultyWire<DatagramSocket>,
    clock: Clock,
    peers: Vec<UdpPeer>,
    places: HashMap<u64, usize>,
    /// The peer of the last datagram; the next datagram usually comes from the same peer.
    last: usize,
    /// No timer is due before this time.
    deadline_ns: u64,
    polls_in_flood: u32,
    strays: Strays,
    /// Buffer for one receive from the socket: a datagram, or a batch of them.
    room: Box<[u8]>,
    /// Present if dials are set.
    interface: Option<Arc<Interface>>,
    /// When the socket was last found empty, in ticks; only if dials are set.
    empty_at: Option<u64>,
}

impl UdpPeers {
    pub(super) fn open(config: &Config, interface: Option<Arc<Interface>>) -> Result<Self, OpenError> {
        Ok(Self {
            config: *config,
            socket: FaultyWire::new(DatagramSocket::bind(config.bind)?, config.faults, config.seed),
            clock: Clock::new(config.peer_timeout),
            peers: Vec::new(),
            places: HashMap::new(),
            last: 0,
            deadline_ns: u64::MAX,
            polls_in_flood: 0,
            strays: Strays::default(),
            room: vec![0; ROOM].into(),
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
            socket: self.socket.local(),
        })
    }

    fn add_peer(
        &mut self,
        id: PeerId,
        ours: UdpPortAddress,
        theirs: UdpPortAddress,
    ) -> Result<(), ConnectError> {
        if ours.socket != self.socket.local() {
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
            peer_timeout_ns: u64::try_from(self.config.peer_timeout.as_nanos()).unwrap_or(u64::MAX / 2),
            ..reliability::Config::default()
        };
        let connection = Connection::new(config, ours.connection, theirs.connection, self.clock.now_ns());
        let medium_bytes =
            [theirs, ours].map(|address| (address.medium_bytes as usize).min(self.longest_payload()));
        let timeout = self.config.peer_timeout;
        let mut peer = UdpPeer::new(id, theirs.socket, connection, medium_bytes, timeout);
        if let Some(interface) = &self.interface {
            peer.dial(interface);
        }
        self.peers.push(peer);
        self.places.insert(ours.connection, id.place());
        self.socket.set_only_peer((id.place() == 0).then_some(theirs.socket));
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
        while let Some(datagram) = peer.outbox.connection.transmit(now_ns) {
            self.socket.send(peer.address, datagram, now_ns);
        }
        self.sent(place);
    }

    /// Sends all datagrams that a connection has ready, and as much of its transfers as there is room
    /// for.
    #[inline]
    fn transmit_all(&mut self, place: usize, now_ns: u64, memories: &Memories, lent: Lent<'_>) {
        let peer = &mut self.peers[place];
        loop {
            while let Some(datagram) = peer.outbox.connection.transmit(now_ns) {
                self.socket.send(peer.address, datagram, now_ns);
            }
            if !peer.feed(memories, lent, now_ns) {
                break;
            }
        }
        self.sent(place);
    }

    #[inline]
    fn sent(&mut self, place: usize) {
        self.socket.flush();
        let peer = &self.peers[place];
        if let Some(at_ns) = peer.outbox.connection.deadline() {
            self.deadline_ns = self.deadline_ns.min(at_ns);
        }
        self.expect_release();
    }

    /// Datagrams that the fault injector delays have a deadline as well.
    #[inline]
    fn expect_release(&mut self) {
        if let Some(at_ns) = self.socket.deadline() {
            self.deadline_ns = self.deadline_ns.min(at_ns);
        }
    }

    /// Takes the datagrams of the socket until one delivers messages, handles these, and runs the timers
    /// that are due.
    fn poll<S>(&mut self, offer: &Offer<S>, state: &mut S) -> Result<usize, PeerLost> {
        let now_ns = self.clock.now_ns();
        let (mut handled, mut is_drained) = (0, false);
        for _ in 0..DATAGRAMS_AT_ONCE {
            let Some(datagrams) = self.socket.receive(&mut self.room) else {
                is_drained = true;
                break;
            };
            handled = self.take_all(datagrams, now_ns, offer, state)?;
            if handled > 0 {
                break;
            }
        }
        if is_drained {
            self.polls_in_flood = 0;
        } else {
            self.polls_in_flood = self.polls_in_flood.saturating_add(1);
        }
        if now_ns >= self.deadline_ns && (is_drained || self.polls_in_flood >= POLLS_IN_A_FLOOD) {
            self.on_time(now_ns, &offer.memories)?;
        }
        if self.interface.is_some() {
            // The messages taken above are held; this releases the one that is due.
            self.empty_at = is_drained.then(ticks::now).or(self.empty_at);
            return self.release(offer, state);
        }
        Ok(handled)
    }

    /// Takes the datagrams in `room`, and sends what becomes due.
    #[inline]
    fn take_all<S>(
        &mut self,
        Datagrams { len, each, from }: Datagrams,
        now_ns: u64,
        offer: &Offer<S>,
        state: &mut S,
    ) -> Result<usize, PeerLost> {
        if len > each {
            return self.take_batch(Datagrams { len, each, from }, now_ns, offer, state);
        }
        let Some(place) = self.find(0..len, from) else { return Ok(0) };
        let result = self.take(place, 0..len, now_ns, offer, state);
        self.answer(place, result.is_ok(), now_ns, &offer.memories);
        result
    }

    /// Takes a batch of datagrams, maybe of several connections, and answers each connection once.
    #[inline(never)]
    fn take_batch<S>(
        &mut self,
        Datagrams { len, each, from }: Datagrams,
        now_ns: u64,
        offer: &Offer<S>,
        state: &mut S,
    ) -> Result<usize, PeerLost> {
        let (mut handled, mut touched) = (0, None);
        for at in (0..len).step_by(each) {
            let part = at..len.min(at + each);
            let Some(place) = self.find(part.clone(), from) else { continue };
            if let Some(other) = touched.filter(|&other| other != place) {
                self.answer(other, true, now_ns, &offer.memories);
            }
            touched = Some(place);
            match self.take(place, part, now_ns, offer, state) {
                Ok(here) => handled += here,
                // The peers of the remaining datagrams send them again.
                Err(lost) => {
                    self.answer(place, false, now_ns, &offer.memories);
                    return Err(lost);
                }
            }
        }
        if let Some(place) = touched {
            self.answer(place, true, now_ns, &offer.memories);
        }
        Ok(handled)
    }

    /// Sends what became due when datagrams of a peer were taken, or a goodbye if that ended the
    /// connection.
    #[inline]
    fn answer(&mut self, place: usize, is_sound: bool, now_ns: u64, memories: &Memories) {
        if is_sound {
            self.transmit_all(place, now_ns, memories, None);
        } else {
            self.say_goodbye(place, now_ns);
        }
    }

    /// Returns the place of the peer whose datagram lies in that part of `room`.
    #[inline]
    fn find(&mut self, part: Range<usize>, from: SocketAddr) -> Option<usize> {
        let place = find(&self.peers, &self.places, self.last, &self.room[part], from);
        if place.is_none() {
            self.strays.foreign += 1;
        }
        place
    }

    /// Takes the datagram in that part of `room`, which is of the peer at `place`.
    #[inline]
    fn take<S>(
        &mut self,
        place: usize,
        part: Range<usize>,
        now_ns: u64,
        offer: &Offer<S>,
        state: &mut S,
    ) -> Result<usize, PeerLost> {
        let Ok(datagram) = datagram::parse(&self.room[part]) else {
            self.strays.malformed += 1;
            return Ok(0);
        };
        self.last = place;
        let peer = &mut self.peers[place];
        if peer.check_connected().is_err() {
            // The peer does not know yet that its connection has ended.
            if datagram.header.kind != Kind::Goodbye {
                self.socket.send(peer.address, peer.outbox.connection.goodbye(), now_ns);
            }
            return Ok(0);
        }
        if peer.is_dialled() {
            return peer.take_and_hold(&datagram, self.empty_at, now_ns, &offer.memories);
        }
        peer.take(&datagram, now_ns, offer, state)
    }

    /// Runs all timers that are due.
    #[cold]
    fn on_time(&mut self, now_ns: u64, memories: &Memories) -> Result<(), PeerLost> {
        self.polls_in_flood = 0;
        self.socket.on_time(now_ns);
        self.deadline_ns = u64::MAX;
        for place in 0..self.peers.len() {
            if let Err(lost) = self.peers[place].on_time(now_ns) {
                self.say_goodbye(place, now_ns);
                // The next poll runs the timers of the other peers.
                self.deadline_ns = now_ns;
                return Err(lost);
            }
            self.transmit_all(place, now_ns, memories, None);
        }
        Ok(())
    }

    fn say_goodbye(&mut self, place: usize, now_ns: u64) {
        let peer = &mut self.peers[place];
        for _ in 0..GOODBYES {
            self.socket.send(peer.address, peer.outbox.connection.goodbye(), now_ns);
        }
        self.expect_release();
    }

    /// Sends again what is not acknowledged, for up to [`LINGER`]. Handles no message, because there is
    /// no state for handlers and no registered memory any more.
    fn linger(&mut self) {
        let memories = Memories::new(0);
        let until = Instant::now() + LINGER.min(self.config.peer_timeout);
        while Instant::now() < until && self.peers.iter().any(UdpPeer::is_owed) {
            let now_ns = self.clock.now_ns();
            for _ in 0..DATAGRAMS_AT_ONCE {
                let Some(Datagrams { len, each, from }) = self.socket.receive(&mut self.room) else { break };
                for at in (0..len).step_by(each) {
                    let bytes = &self.room[at..len.min(at + each)];
                    if let Some(place) = find(&self.peers, &self.places, self.last, bytes, from)
                        && let Ok(datagram) = datagram::parse(bytes)
                    {
                        let peer = &mut self.peers[place];
                        peer.outbox.connection.acknowledge(&datagram.header, now_ns);
                        if datagram.header.kind == Kind::Goodbye {
                            peer.lose(Loss::Closed);
                        }
                        self.transmit_all(place, now_ns, &memories, None);
                    }
                }
            }
            if now_ns >= self.deadline_ns && self.on_time(now_ns, &memories).is_err() {
                continue;
            }
            let until_due = Transport::<()>::until_due(self);
            self.socket.block(until_due.min(Duration::from_millis(1)));
        }
    }
}

/// Returns whether an address is of this host, so that the process there reads the same clock.
fn is_here(ip: IpAddr) -> std::io::Result<bool> {
    Ok(ip.is_loopback() || interface::addresses()?.contains(&ip))
}

/// Returns the place of the peer whose datagram this is: by connection number and source address.
#[inline]
fn find(
    peers: &[UdpPeer],
    places: &HashMap<u64, usize>,
    last: usize,
    bytes: &[u8],
    from: SocketAddr,
) -> Option<usize> {
    let connection = datagram::connection_of(bytes)?;
    let place = match peers.get(last) {
        Some(peer) if peer.outbox.connection.local() == connection => last,
        _ => *places.get(&connection)?,
    };
    let address = peers[place].address;
    (address.port() == from.port() && address.ip() == from.ip()).then_some(place)
}

impl Drop for UdpPeers {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.linger();
        }
        let now_ns = self.clock.now_ns();
        for place in 0..self.peers.len() {
            if self.peers[place].check_connected().is_ok() {
                self.say_goodbye(place, now_ns);
            }
        }
    }
}
