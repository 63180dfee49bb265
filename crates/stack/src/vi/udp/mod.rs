//! Virtual Interfaces over UDP: a NIC in software, driven by the calls to the provider.
//!
//! ```text
//!   Provider --- send, receive ---> UdpWire: one socket, one clock, one receive buffer
//!                                      |  by the connection number that a datagram carries
//!                          +-----------+-----------+
//!                          v                       v
//!                      Reliable                 Pieces
//!             a Connection: once, in order    lost datagrams stay lost
//! ```
//!
//! Three kinds of datagrams arrive at the socket. Signals connect VIs ([`vi_signal`]). Fragments carry
//! messages of unreliable VIs ([`vi_fragment`]). All others belong to the connections of reliable VIs
//! ([`netdyno_protocol::frame::datagram`]). [`netdyno_protocol::vi`] decides; [`reliable`] and
//! [`pieces`] map its decisions to a connection.
//!
//! * **Sending** a message that fits into a datagram is one system call, made by
//!   [`Provider::post`](super::Provider::post) itself. Longer messages go out in GSO batches: on a
//!   reliable connection as acknowledgements arrive, on an unreliable one by the clock.
//! * **Receiving** reads the socket for all VIs at once. Bytes are copied from the datagram directly to
//!   the memory of the receive.
//! * **Timers** are checked when the socket is empty: delayed acknowledgements, retransmissions, GSO
//!   batches, and probes of silent peers.
//! * **Ends**: a peer is lost if nothing arrives from it for [`UdpOptions::peer_timeout`], even if
//!   nothing was sent to it. It is probed after a quarter of that time and has the rest to answer
//!   ([`presence`]). A reliable VI that disconnects sends a goodbye when its messages have arrived, or
//!   after a second; an unreliable VI sends it at once.
//!
//! **Addresses.** A provider has an address of its own, or shares one with other providers of its user
//! on this host ([`UdpOptions::is_shared`]). At a shared address discriminators tell the requests apart
//! ([`sharing`]).
//!
//! **What is believed.** A datagram of a connection is believed if it has the connection's number, a
//! valid checksum, and a meaning. The number is 64 random bits that only the peer was told. The source
//! address does not matter, because a host has several and answers from the one with a route to the
//! peer. So a provider that is bound to all addresses is reached by each of them. This side sends to the
//! address that it asked, or that asked it.
//!
//! While a provider has only one peer and neither waits for requests nor makes any, the kernel delivers
//! nothing from others. A peer that then requests a connection gets no refusal, and repeats its request.
//! A peer that sends to an unknown number is told so, at a limited rate, and so learns that this provider
//! has restarted. A reader of the network can read the numbers, because there is no encryption.

mod host;
mod lines;
mod memory;
mod pieces;
mod presence;
mod reliable;
mod sharing;
mod ways;
mod works;

use super::config::{UDP_PORT, UdpOptions};
use super::error::OpenError;
use super::wire::Wire;
use crate::clock::Clock;
use crate::statistics::{PeerStatistics, Strays};
use lines::{Line, Lines};
use netdyno_host::datagram::{DatagramSocket, DatagramWire, Datagrams, FaultyWire, ROOM, SocketError};
use netdyno_protocol::faults::Faults;
use netdyno_protocol::frame::datagram;
use netdyno_protocol::frame::vi_fragment;
use netdyno_protocol::frame::vi_signal::{self, Signal};
use netdyno_protocol::vi::{ConnectError, Link, Nic, Parting, Segment, ViHandle};
use pieces::Pieces;
use reliable::Reliable;
use rustix::io::Errno;
use sharing::Sharing;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};
use ways::Ways;

/// How long a closed provider continues to send what is not acknowledged yet.
const LINGER: Duration = Duration::from_nanos(reliable::LINGER_NS);
/// Maximum number of invalid datagrams read in one poll.
const DATAGRAMS_AT_ONCE: usize = 16;
/// Polls in a row that do not empty the socket, after which timers run anyway. A timer usually waits
/// until the socket is empty, because the awaited datagram may be in it; a flood must not stop the
/// timers.
const LOOKS_IN_A_FLOOD: u32 = 64;
/// Minimum time between two answers to unknown peers. They repeat their datagrams, and a host with a
/// forged address must not be flooded.
const BETWEEN_STRANGERS_NS: u64 = 10_000_000;

pub(super) struct UdpWire {
    // Declared before `sharing`, so that it is closed first: a guest that sees the holder's end finds
    // the address free.
    socket: FaultyWire<DatagramSocket>,
    sharing: Option<Sharing>,
    host: Vec<u8>,
    began: Instant,
    /// The clock of peer timeouts, which counts long pauses only in part.
    clock: Clock,
    timeout_ns: u64,
    lines: Lines,
    ways: Ways,
    /// Number of discriminators at which requests are accepted.
    listeners: usize,
    /// Whether the socket is connected, so that it exchanges datagrams with one peer only.
    is_narrow: bool,
    scratch: Scratch,
    /// Buffer for one receive from the socket: a datagram, or a batch of them.
    room: Box<[u8]>,
    /// No timer is due before this time.
    deadline_ns: u64,
    looks_in_flood: u32,
    /// When an unknown peer is answered again.
    stranger_ns: u64,
    strays: Strays,
}

/// Buffers for the segments and the bytes of one message.
#[derive(Default)]
pub struct Scratch {
    segments: Vec<Segment>,
    bytes: Vec<u8>,
}

impl Scratch {
    #[inline]
    fn cleared(&mut self) -> (&mut Vec<Segment>, &mut Vec<u8>) {
        self.segments.clear();
        self.bytes.clear();
        (&mut self.segments, &mut self.bytes)
    }
}

/// The context that a connection needs to send and receive.
pub struct Means<'a> {
    nic: &'a mut Nic,
    socket: &'a mut FaultyWire<DatagramSocket>,
    scratch: &'a mut Scratch,
    now_ns: u64,
}

impl UdpWire {
    pub(super) fn open(options: &UdpOptions) -> Result<Self, OpenError> {
        let timeout = options.peer_timeout.max(Duration::from_millis(1));
        let (socket, sharing) =
            if options.is_shared { bind_shared(options)? } else { (bind(options)?, None) };
        let address = sharing.as_ref().map_or(socket.local(), Sharing::address);
        Ok(Self {
            host: host::encode(host::reachable(address)),
            socket: FaultyWire::new(socket, options.faults, options.seed),
            sharing,
            began: Instant::now(),
            clock: Clock::new(timeout),
            timeout_ns: u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX / 2),
            lines: Lines::default(),
            ways: Ways::default(),
            listeners: 0,
            is_narrow: false,
            scratch: Scratch::default(),
            room: vec![0; ROOM].into(),
            deadline_ns: u64::MAX,
            looks_in_flood: 0,
            stranger_ns: 0,
            strays: Strays::default(),
        })
    }

    /// Polls the socket: takes one datagram or one batch, and runs the timers that are due. Returns
    /// whether there was anything.
    fn look(&mut self, nic: &mut Nic) -> bool {
        let now_ns = self.clock.now_ns();
        let (mut is_any, mut is_drained) = (false, false);
        for _ in 0..DATAGRAMS_AT_ONCE {
            let Some(datagrams) = self.socket.receive(&mut self.room) else {
                is_drained = true;
                break;
            };
            is_any = self.take_all(datagrams, nic, now_ns);
            if is_any {
                break;
            }
        }
        self.looks_in_flood = if is_drained { 0 } else { self.looks_in_flood.saturating_add(1) };
        if now_ns >= self.deadline_ns && (is_drained || self.looks_in_flood >= LOOKS_IN_A_FLOOD) {
            self.on_time(nic, now_ns);
            is_any = true;
        }
        is_any
    }

    /// Takes the datagrams in `room`, maybe of several connections, and answers each connection once.
    /// Returns whether any was valid.
    fn take_all(&mut self, Datagrams { len, each, from }: Datagrams, nic: &mut Nic, now_ns: u64) -> bool {
        let (mut is_any, mut touched) = (false, None);
        for at in (0..len).step_by(each) {
            let bytes = &self.room[at..len.min(at + each)];
            if bytes.get(KIND_AT) == Some(&vi_signal::CODE) {
                let Self { lines, ways, sharing, .. } = self;
                let is_sound = take_signal(bytes, from, lines, ways, sharing.as_mut(), nic);
                self.strays.malformed += u64::from(!is_sound);
                is_any |= is_sound;
                continue;
            }
            let Some(number) = datagram::connection_of(bytes) else {
                self.strays.foreign += 1;
                continue;
            };
            let Some(place) = self.lines.of_number(number) else {
                self.strays.foreign += 1;
                if now_ns >= self.stranger_ns && is_strangers(bytes, number, nic) {
                    self.stranger_ns = now_ns + BETWEEN_STRANGERS_NS;
                    nic.stranger(&host::encode(from), 0, number);
                    is_any = true;
                }
                continue;
            };
            let Self { lines, socket, scratch, .. } = self;
            let is_sound = lines.at(place).take(bytes, &mut Means { nic, socket, scratch, now_ns });
            self.strays.malformed += u64::from(!is_sound);
            is_any |= is_sound;
            if let Some(other) = touched.replace(place).filter(|other| *other != place) {
                self.pump(other, nic, now_ns);
            }
        }
        if let Some(place) = touched {
            self.pump(place, nic, now_ns);
            if is_any && !self.is_narrow {
                self.narrow(from, nic);
            }
        }
        is_any
    }

    /// Connects the socket, if the provider has one peer that sends from its known address, and neither
    /// accepts nor makes requests. That saves the kernel a look-up with each datagram: a tenth of a
    /// round trip on loopback.
    fn narrow(&mut self, from: SocketAddr, nic: &Nic) {
        let is_alone = self.lines.len() == 1 && self.listeners == 0 && !nic.is_asking();
        let is_alone = is_alone && self.sharing.as_ref().is_none_or(Sharing::is_alone);
        if is_alone && self.lines.at(0).to() == from {
            self.socket.set_only_peer(Some(from));
            self.is_narrow = true;
        }
    }

    /// Disconnects the socket, because the provider sends to or accepts another peer.
    fn widen(&mut self) {
        if self.is_narrow {
            self.socket.set_only_peer(None);
            self.is_narrow = false;
        }
    }

    /// Sends all that a connection has ready.
    #[inline]
    fn pump(&mut self, place: usize, nic: &mut Nic, now_ns: u64) {
        let Self { lines, socket, scratch, .. } = self;
        let line = lines.at(place);
        line.pump(&mut Means { nic, socket, scratch, now_ns });
        self.deadline_ns = self.deadline_ns.min(line.deadline());
        self.expect_release();
    }

    /// Datagrams that the fault injector delays have a deadline as well.
    #[inline]
    fn expect_release(&mut self) {
        if let Some(at_ns) = self.socket.deadline() {
            self.deadline_ns = self.deadline_ns.min(at_ns);
        }
    }

    /// Runs all timers that are due.
    #[cold]
    fn on_time(&mut self, nic: &mut Nic, now_ns: u64) {
        self.looks_in_flood = 0;
        self.socket.on_time(now_ns);
        self.deadline_ns = u64::MAX;
        // Backwards, because a removed connection is replaced by the last one, which was already
        // checked.
        for place in (0..self.lines.len()).rev() {
            let Self { lines, socket, scratch, .. } = self;
            let mut means = Means { nic, socket, scratch, now_ns };
            lines.at(place).on_time(&mut means);
            self.end(place, nic, now_ns);
        }
        self.expect_release();
    }

    /// Removes a connection on which nothing is to be sent any more.
    fn end(&mut self, place: usize, nic: &mut Nic, now_ns: u64) {
        let Self { lines, socket, scratch, .. } = self;
        let line = lines.at(place);
        if line.end(&mut Means { nic, socket, scratch, now_ns }) {
            lines.remove(place);
            self.widen();
        } else {
            self.deadline_ns = self.deadline_ns.min(line.deadline());
        }
    }
}

/// Offset of the byte that tells the kind of a datagram.
const KIND_AT: usize = 4;

fn everywhere(port: u16) -> Result<DatagramSocket, SocketError> {
    DatagramSocket::bind_wide((Ipv4Addr::UNSPECIFIED, port).into())
}

fn bind(options: &UdpOptions) -> Result<DatagramSocket, OpenError> {
    Ok(match options.bind {
        Some(address) => DatagramSocket::bind_wide(address)?,
        None => everywhere(UDP_PORT).or_else(|_| everywhere(0))?,
    })
}

/// Opens the provider's own socket: at an address that it shares from now on, or at another port if
/// another provider holds the address.
fn bind_shared(options: &UdpOptions) -> Result<(DatagramSocket, Option<Sharing>), OpenError> {
    let refused = |error: Errno| OpenError::System { what: "watch sockets", error: error.into() };
    let address = options.bind.unwrap_or((Ipv4Addr::UNSPECIFIED, UDP_PORT).into());
    let bound = DatagramSocket::bind_wide(address);
    let guest = match &bound {
        Err(SocketError::Bind { error, .. }) if error.kind() == ErrorKind::AddrInUse => {
            Sharing::join(address).map_err(refused)?
        }
        _ => None,
    };
    let (socket, sharing) = match (bound, guest) {
        (Ok(socket), _) => (socket, None),
        (Err(_), Some(guest)) => (DatagramSocket::bind_wide((address.ip(), 0).into())?, Some(guest)),
        (Err(_), None) if options.bind.is_none() => (everywhere(0)?, None),
        (Err(error), None) => return Err(error.into()),
    };
    let sharing = sharing.map_or_else(|| Sharing::hold(&socket), Ok).map_err(refused)?;
    sharing.watch(&socket).map_err(refused)?;
    Ok((socket, Some(sharing)))
}

/// Takes a signal. Returns whether it is valid.
fn take_signal(
    bytes: &[u8],
    from: SocketAddr,
    lines: &mut Lines,
    ways: &mut Ways,
    sharing: Option<&mut Sharing>,
    nic: &mut Nic,
) -> bool {
    let Ok(signal) = Signal::parse(bytes) else { return false };
    if sharing.is_some_and(|sharing| sharing.pass_on(&signal, bytes, from)) {
        return true;
    }
    let to = match &signal {
        Signal::Request(request) => {
            let host = shared_by(&request.from.host, from);
            ways.note(request.number, host, from);
            nic.signal(&host::encode(host), signal);
            return true;
        }
        Signal::Accept { to, .. } | Signal::Refuse { to, .. } | Signal::Disconnect { to, .. } => *to,
    };
    let host = match &signal {
        // The peer does not know this side's number, and sends its own, which only this side was told.
        Signal::Disconnect { to: 0, number } => nic.host_that_told(*number),
        _ => nic.host_told(to),
    };
    match host.map(<[u8]>::to_vec) {
        Some(host) => {
            if let (Signal::Accept { number, .. }, Some(named)) = (&signal, host::parse(&host)) {
                ways.note(*number, named, SocketAddr::new(named.ip(), from.port()));
            }
            nic.signal(&host, signal);
        }
        // The connection has ended; the message that tells the peer so is already on its way.
        None if lines.of_number(to).is_some() => {}
        None => nic.signal(&host::encode(from), signal),
    }
    true
}

/// Returns the address by which the peer at `from` is known: that of its host, with its shared port.
fn shared_by(host: &[u8], from: SocketAddr) -> SocketAddr {
    let port = host::parse(host).map_or(from.port(), |named| named.port());
    SocketAddr::new(from.ip(), if port == 0 { from.port() } else { port })
}

/// Returns whether a valid datagram is for a connection that has ended or never existed. A connection
/// that is being requested does not count, because the other side may know of it first; nor does a
/// goodbye.
fn is_strangers(bytes: &[u8], number: u64, nic: &Nic) -> bool {
    let is_sound = match bytes.get(KIND_AT) {
        Some(&vi_fragment::CODE) => vi_fragment::parse(bytes).is_ok(),
        _ => datagram::parse(bytes).is_ok_and(|datagram| datagram.header.kind != datagram::Kind::Goodbye),
    };
    is_sound && nic.host_told(number).is_none()
}

impl Wire for UdpWire {
    fn host(&self) -> Vec<u8> {
        self.host.clone()
    }

    fn now_ns(&mut self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    /// Requests arrive at the socket in any case.
    fn listen(&mut self, discriminator: &[u8]) -> Result<(), ConnectError> {
        self.listeners += 1;
        self.widen();
        self.sharing.iter_mut().for_each(|sharing| sharing.listen(discriminator));
        Ok(())
    }

    fn ignore(&mut self, discriminator: &[u8]) {
        self.listeners = self.listeners.saturating_sub(1);
        self.sharing.iter_mut().for_each(|sharing| sharing.ignore(discriminator));
    }

    fn say(&mut self, _: &mut Nic, host: &[u8], signal: &Signal) {
        let way = match signal {
            Signal::Request(_) => None,
            Signal::Accept { to, .. } | Signal::Refuse { to, .. } | Signal::Disconnect { to, .. } => {
                self.ways.get(*to)
            }
        };
        let address = way.or_else(|| host::parse(host));
        // A signal to an unreachable host is not sent, and its sender's request times out.
        if let Some(to) = address.and_then(|address| host::reached_from(self.socket.local(), address)) {
            let now_ns = self.clock.now_ns();
            self.widen();
            self.socket.send(to, &signal.encode(), now_ns);
            self.expect_release();
        }
    }

    /// Signals arrive at the socket with everything else, except signals to a shared address.
    fn hear(&mut self, nic: &mut Nic) {
        let Some(sharing) = &mut self.sharing else { return };
        for (bytes, from) in sharing.hear() {
            take_signal(&bytes, from, &mut self.lines, &mut self.ways, self.sharing.as_mut(), nic);
        }
        if self.sharing.as_ref().is_some_and(|sharing| !sharing.is_alone()) {
            self.widen();
        }
    }

    fn link(&mut self, nic: &mut Nic, vi: ViHandle, link: &Link) {
        let address = self.ways.get(link.remote).or_else(|| host::parse(&link.host));
        let Some(to) = address.and_then(|address| host::reached_from(self.socket.local(), address)) else {
            // The peer was reachable a moment ago.
            return nic.lost(vi);
        };
        let now_ns = self.clock.now_ns();
        let line = if link.offer.level.is_reliable() {
            Line::Reliable(Reliable::new(vi, link, to, self.timeout_ns, now_ns).into())
        } else {
            Line::Pieces(Pieces::new(vi, link, to, self.timeout_ns, now_ns))
        };
        self.widen();
        let place = self.lines.insert(link.local, vi, line);
        self.pump(place, nic, now_ns);
    }

    fn unlink(&mut self, nic: &mut Nic, vi: ViHandle, _: &Link, parting: Parting) {
        let Some(place) = self.lines.part(vi) else { return };
        let now_ns = self.clock.now_ns();
        let Self { lines, socket, scratch, .. } = self;
        lines.at(place).part(parting, &mut Means { nic, socket, scratch, now_ns });
        self.end(place, nic, now_ns);
        self.expect_release();
    }

    #[inline]
    fn send(&mut self, nic: &mut Nic, vi: ViHandle) {
        if let Some(place) = self.lines.of_vi(vi) {
            let now_ns = self.clock.now_ns();
            self.pump(place, nic, now_ns);
        }
    }

    #[inline]
    fn receive(&mut self, nic: &mut Nic, _: ViHandle) {
        self.look(nic);
    }

    #[inline]
    fn receive_all(&mut self, nic: &mut Nic) -> bool {
        self.look(nic)
    }

    fn prepare_sleep(&mut self) -> Duration {
        self.until_due()
    }

    fn until_due(&mut self) -> Duration {
        let left = Duration::from_nanos(self.deadline_ns.saturating_sub(self.clock.now_ns()));
        let left = self.sharing.as_ref().map_or(left, |sharing| left.min(sharing.until_due()));
        // The clock would count a longer sleep only in part.
        left.min(self.clock.longest_pause())
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.sharing.as_ref().map_or(self.socket.as_fd(), Sharing::descriptor)
    }

    fn shared_address(&self) -> Option<SocketAddr> {
        self.sharing.as_ref().map(Sharing::address)
    }

    fn statistics(&self, vi: ViHandle) -> Option<PeerStatistics> {
        self.lines.get(vi)?.statistics()
    }

    fn strays(&self) -> Strays {
        Strays { refused: self.socket.refused(), ..self.strays }
    }

    fn linger(&mut self, nic: &mut Nic) {
        let until = Instant::now() + LINGER;
        while self.lines.len() > 0 && Instant::now() < until && !std::thread::panicking() {
            let is_any = self.look(nic);
            // A peer that requests a connection now is refused.
            while let Some((host, signal)) = nic.next_signal() {
                self.say(nic, &host, &signal);
            }
            if !is_any {
                let left = self.until_due().min(Duration::from_millis(1));
                self.socket.block(left);
            }
        }
        let now_ns = self.clock.now_ns();
        // The remaining connections have had their time.
        self.on_time(nic, now_ns.saturating_add(reliable::LINGER_NS));
    }
}
