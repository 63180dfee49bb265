//! Virtual Interfaces over UDP: a NIC in software, which whoever calls the provider drives.
//!
//! ```text
//!   Provider --- send, receive ---> UdpWire: one socket, one clock, one room for what comes
//!                                      |  by the connection number that a datagram carries
//!                          +-----------+-----------+
//!                          v                       v
//!                      Reliable                 Pieces
//!             a Connection: once, in order    what is lost is lost
//! ```
//!
//! Three kinds of datagrams come to the one socket: signals, which bring VIs together
//! ([`vi_signal`]); pieces of messages of VIs that promise nothing ([`vi_fragment`]); and those of
//! the connections of all others ([`netdyno_protocol::frame::datagram`]). [`netdyno_protocol::vi`]
//! says what of a VI's is what on a connection; [`reliable`] and [`pieces`] do so.
//!
//! * **Sending** a message that fits into a datagram is one call of the system, made by
//!   [`Provider::post`](super::Provider::post) itself. What is longer goes out in trains, as fast as
//!   the network takes it: on a connection as its acknowledgements come, without one by the clock.
//! * **Receiving** looks at the socket, for all VIs at once. Bytes go from the datagram to the memory
//!   that the receive names, and nowhere between.
//! * **Time**: acknowledgements that have found no message to travel with, sending again, trains,
//!   questions whether a silent peer is there. They are looked at when the socket is empty.
//! * **Ends**: a peer is lost if nothing comes of it for the time of [`UdpOptions::peer_timeout`],
//!   whether anything was sent to it or not: it is asked after a quarter of that, and has the rest to
//!   answer ([`presence`]). Who disconnects says goodbye when what it sent has arrived, or after a
//!   second; one that promises nothing does so at once.
//!
//! **Addresses.** A provider has an address of its own, or shares one with others of its user on this host
//! ([`UdpOptions::is_shared`]): then requests are told apart by the discriminator ([`sharing`]).
//!
//! **What is believed.** A datagram for a connection is believed if it has the connection's number, 64
//! random bits that were told to the peer alone, the checksum, and a meaning. From which address it
//! comes says nothing, for a host has several, and answers from the one that leads to whoever asked:
//! a provider that is bound to all of its host's addresses is reached by each of them. What goes back
//! goes to the address that was asked, or that asked. While one peer is all that a provider has, and
//! nobody here asks or waits, the kernel hands over nothing of others: who asks then is not told that
//! nobody waits, and asks again. Who sends to a number that is not known is told
//! so, now and then, and so learns that this provider has ended and begun again. Whoever can read the
//! network can read the numbers: there is no encryption.

mod host;
mod lines;
mod memory;
mod pieces;
mod presence;
mod reliable;
mod sharing;
mod ways;
mod works;

use super::provider::OpenError;
use super::wire::Wire;
use crate::clock::Clock;
use crate::statistics::{PeerStatistics, Strays};
use lines::{Line, Lines};
use netdyno_host::datagram::{DatagramSocket, Datagrams, ROOM, SocketError};
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

/// The port of a provider that is not told another one: so that programs need to name nothing but a
/// host. Nobody has registered it, it is none of those that systems give away by themselves, and it is
/// the next to that of `netdyno serve`.
pub const UDP_PORT: u16 = 5648;

/// How long a provider that is closed sees to it that what it sent arrives.
const LINGER: Duration = Duration::from_nanos(reliable::LINGER_NS);
/// Datagrams of nobody, taken in one look.
const DATAGRAMS_AT_ONCE: usize = 16;
/// Looks in a row that may find more than they take before it is time for what is due all the same:
/// what that waits for may be among it, but a flood must not stop it.
const LOOKS_IN_A_FLOOD: u32 = 64;
/// Time between two answers to those who send to what is not known: they ask again, and who does not
/// know the way back is not flooded.
const BETWEEN_STRANGERS_NS: u64 = 10_000_000;

/// How a way over UDP is to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UdpOptions {
    /// The socket: an address of this host, or the one that stands for all of them, and a port, 0 for
    /// any that is free. `None` is all addresses of IPv4 at [`UDP_PORT`], or at any port where that is
    /// taken.
    pub bind: Option<SocketAddr>,
    /// Whether the address is shared with other providers of this user on this host that share theirs: they
    /// are told apart by discriminators. Otherwise an address is one provider's.
    pub is_shared: bool,
    /// What goes wrong with the datagrams that are sent, on purpose.
    pub faults: Faults,
    /// The seed of that. Another one at each end, or both draw the same.
    pub seed: u64,
    /// Patience with a peer of which nothing comes. Time in which this program does not call the
    /// provider counts for a quarter of it at most.
    pub peer_timeout: Duration,
}

impl Default for UdpOptions {
    fn default() -> Self {
        Self {
            bind: None,
            is_shared: false,
            faults: Faults::NONE,
            seed: 0,
            // A program may compute for long without a call, and then nobody drives its NIC.
            peer_timeout: Duration::from_secs(30),
        }
    }
}

pub(super) struct UdpWire {
    // Before what is shared: a guest that learns of the holder's end finds the address free.
    socket: DatagramSocket,
    sharing: Option<Sharing>,
    host: Vec<u8>,
    began: Instant,
    /// Time in which this side paid attention, which counts for peers.
    clock: Clock,
    patience_ns: u64,
    lines: Lines,
    ways: Ways,
    /// Those who may be asked for.
    listeners: usize,
    /// The kernel sends to the one peer alone, and takes from nobody else.
    is_narrow: bool,
    scratch: Scratch,
    /// For all that comes at once.
    room: Box<[u8]>,
    /// Nothing is to be done before this time.
    deadline_ns: u64,
    looks_in_flood: u32,
    /// When a stranger is answered again.
    stranger_ns: u64,
    strays: Strays,
}

/// Room for what a message is made of.
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

/// What a connection needs to move something.
pub struct Means<'a> {
    nic: &'a mut Nic,
    socket: &'a mut DatagramSocket,
    scratch: &'a mut Scratch,
    now_ns: u64,
}

impl UdpWire {
    pub(super) fn open(options: &UdpOptions) -> Result<Self, OpenError> {
        let patience = options.peer_timeout.max(Duration::from_millis(1));
        let (socket, sharing) =
            if options.is_shared { bind_shared(options)? } else { (bind(options)?, None) };
        let address = sharing.as_ref().map_or(socket.local(), Sharing::address);
        Ok(Self {
            host: host::encode(host::reachable(address)),
            socket,
            sharing,
            began: Instant::now(),
            clock: Clock::new(patience),
            patience_ns: u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX / 2),
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

    /// Looks at the socket, takes what one datagram or a train of them brings, and does what is due.
    /// Whether there was anything.
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

    /// Takes the datagrams in `room`, which may be of several connections, and answers each of those
    /// once. Whether any was sound.
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

    /// With one peer alone, which is heard from where it is spoken to, and nobody who asks or may be
    /// asked for, the socket is connected. That spares the kernel a look-up with each datagram, a tenth
    /// of a round trip on loopback.
    fn narrow(&mut self, from: SocketAddr, nic: &Nic) {
        let is_alone = self.lines.len() == 1 && self.listeners == 0 && !nic.is_asking();
        let is_alone = is_alone && self.sharing.as_ref().is_none_or(Sharing::is_alone);
        if is_alone && self.lines.at(0).to() == from {
            self.socket.set_only_peer(Some(from));
            self.is_narrow = true;
        }
    }

    /// Somebody else is spoken to, or may speak.
    fn widen(&mut self) {
        if self.is_narrow {
            self.socket.set_only_peer(None);
            self.is_narrow = false;
        }
    }

    /// Sends what a connection has to send.
    #[inline]
    fn pump(&mut self, place: usize, nic: &mut Nic, now_ns: u64) {
        let Self { lines, socket, scratch, .. } = self;
        let line = lines.at(place);
        line.pump(&mut Means { nic, socket, scratch, now_ns });
        self.deadline_ns = self.deadline_ns.min(line.deadline());
        self.expect_release();
    }

    /// What a faulty network holds back is due as well.
    #[inline]
    fn expect_release(&mut self) {
        if let Some(at_ns) = self.socket.next_release_ns() {
            self.deadline_ns = self.deadline_ns.min(at_ns);
        }
    }

    /// What is due.
    #[cold]
    fn on_time(&mut self, nic: &mut Nic, now_ns: u64) {
        self.looks_in_flood = 0;
        self.socket.release(now_ns);
        self.deadline_ns = u64::MAX;
        // From behind: whoever ends is replaced by one that was looked at.
        for place in (0..self.lines.len()).rev() {
            let Self { lines, socket, scratch, .. } = self;
            let mut means = Means { nic, socket, scratch, now_ns };
            lines.at(place).on_time(&mut means);
            self.end(place, nic, now_ns);
        }
        self.expect_release();
    }

    /// Does away with a connection on which nothing is to be said any more.
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

/// Where a datagram says of which kind it is.
const KIND_AT: usize = 4;

fn faults_of(options: &UdpOptions) -> Option<(Faults, u64)> {
    (options.faults != Faults::NONE).then_some((options.faults, options.seed))
}

fn everywhere(port: u16, options: &UdpOptions) -> Result<DatagramSocket, SocketError> {
    DatagramSocket::bind_wide((Ipv4Addr::UNSPECIFIED, port).into(), faults_of(options))
}

fn bind(options: &UdpOptions) -> Result<DatagramSocket, OpenError> {
    Ok(match options.bind {
        Some(address) => DatagramSocket::bind_wide(address, faults_of(options))?,
        None => everywhere(UDP_PORT, options).or_else(|_| everywhere(0, options))?,
    })
}

/// The provider's own socket, at an address that it shares from now on or at another port of one that is
/// shared already.
fn bind_shared(options: &UdpOptions) -> Result<(DatagramSocket, Option<Sharing>), OpenError> {
    let refused = |error: Errno| OpenError::System { what: "watch sockets", error: error.into() };
    let address = options.bind.unwrap_or((Ipv4Addr::UNSPECIFIED, UDP_PORT).into());
    let bound = DatagramSocket::bind_wide(address, faults_of(options));
    let guest = match &bound {
        Err(SocketError::Bind { error, .. }) if error.kind() == ErrorKind::AddrInUse => {
            Sharing::join(address).map_err(refused)?
        }
        _ => None,
    };
    let (socket, sharing) = match (bound, guest) {
        (Ok(socket), _) => (socket, None),
        (Err(_), Some(guest)) => {
            (DatagramSocket::bind_wide((address.ip(), 0).into(), faults_of(options))?, Some(guest))
        }
        (Err(_), None) if options.bind.is_none() => (everywhere(0, options)?, None),
        (Err(error), None) => return Err(error.into()),
    };
    let sharing = sharing.map_or_else(|| Sharing::hold(&socket), Ok).map_err(refused)?;
    sharing.watch(&socket).map_err(refused)?;
    Ok((socket, Some(sharing)))
}

/// Takes a signal. Whether it is one.
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
        // It does not know our number, and says its own, which it told us alone.
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
        // It has ended, and what there is to say of that is on its way.
        None if lines.of_number(to).is_some() => {}
        None => nic.signal(&host::encode(from), signal),
    }
    true
}

/// Returns the address by which the peer that sends from `from` is known: that of its host, with the port that
/// it shares.
fn shared_by(host: &[u8], from: SocketAddr) -> SocketAddr {
    let port = host::parse(host).map_or(from.port(), |named| named.port());
    SocketAddr::new(from.ip(), if port == 0 { from.port() } else { port })
}

/// Whether bytes are for a connection that has ended or never was: not for one that is asked for, of
/// which the other side has heard first, and no goodbye.
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

    /// Whoever is asked for is asked at the socket.
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
        // To a host that is not reached nothing is said: whoever waits for it waits in vain.
        if let Some(to) = address.and_then(|address| host::reached_from(self.socket.local(), address)) {
            let now_ns = self.clock.now_ns();
            self.widen();
            self.socket.send(to, &signal.encode(), now_ns);
            self.expect_release();
        }
    }

    /// Signals come with all else, but for those that come to an address that is shared.
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
            // It was reached a moment ago.
            return nic.lost(vi);
        };
        let now_ns = self.clock.now_ns();
        let line = if link.offer.level.is_reliable() {
            Line::Reliable(Reliable::new(vi, link, to, self.patience_ns, now_ns).into())
        } else {
            Line::Pieces(Pieces::new(vi, link, to, self.patience_ns, now_ns))
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
        // Of a longer sleep a part would not count.
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
            // Who asks now is told that nobody waits.
            while let Some((host, signal)) = nic.next_signal() {
                self.say(nic, &host, &signal);
            }
            if !is_any {
                let left = self.until_due().min(Duration::from_millis(1));
                self.socket.block(left);
            }
        }
        let now_ns = self.clock.now_ns();
        // Those that are left have had their time.
        self.on_time(nic, now_ns.saturating_add(reliable::LINGER_NS));
        self.socket.release(u64::MAX);
    }
}
