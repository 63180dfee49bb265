//! The connections of a provider, and the signals that make and end them.

use super::host;
use super::lines::{Line, Lines};
use super::sharing::Sharing;
use super::ways::Ways;
use super::{Means, Scratch};
use crate::udp::{Connections, Socket, Taken};
use netdyno_host::datagram::DatagramWire;
use netdyno_protocol::frame::vi_signal::{self, Signal};
use netdyno_protocol::frame::{datagram, vi_fragment};
use netdyno_protocol::vi::{Nic, Parting};
use std::convert::Infallible;
use std::net::SocketAddr;

/// Minimum time between two answers to unknown peers. They repeat their datagrams, and a host with a
/// forged address must not be flooded.
const BETWEEN_STRANGERS_NS: u64 = 10_000_000;
/// Offset of the byte that tells the kind of a datagram.
const KIND_AT: usize = 4;

/// The connections of a provider, and what it knows of the hosts that connect to it.
#[derive(Default)]
pub struct Links {
    pub lines: Lines,
    pub sharing: Option<Sharing>,
    ways: Ways,
    /// Number of discriminators at which requests are accepted.
    listeners: usize,
    /// Whether the socket is connected, so that it exchanges datagrams with one peer only.
    is_narrow: bool,
    scratch: Scratch,
    /// When an unknown peer is answered again.
    stranger_ns: u64,
}

impl Links {
    pub fn new(sharing: Option<Sharing>) -> Self {
        Self { sharing, ..Self::default() }
    }

    /// Starts to accept requests at a discriminator.
    pub fn listen(&mut self, discriminator: &[u8], socket: &mut Socket) {
        self.listeners += 1;
        self.widen(socket);
        self.sharing.iter_mut().for_each(|sharing| sharing.listen(discriminator));
    }

    /// Ends one [`Links::listen`] at a discriminator.
    pub fn ignore(&mut self, discriminator: &[u8]) {
        self.listeners = self.listeners.saturating_sub(1);
        self.sharing.iter_mut().for_each(|sharing| sharing.ignore(discriminator));
    }

    /// Connects the socket, if the provider has one peer that sends from its known address, and neither
    /// accepts nor makes requests. That saves the kernel a look-up with each datagram: a tenth of a
    /// round trip on loopback.
    #[inline]
    fn narrow(&mut self, from: SocketAddr, nic: &Nic, socket: &mut Socket) {
        let is_alone = !self.is_narrow && self.lines.len() == 1 && self.listeners == 0 && !nic.is_asking();
        let is_alone = is_alone && self.sharing.as_ref().is_none_or(Sharing::is_alone);
        if is_alone && self.lines.at(0).to() == from {
            socket.set_only_peer(Some(from));
            self.is_narrow = true;
        }
    }

    /// Disconnects the socket, because the provider sends to or accepts another peer.
    pub fn widen(&mut self, socket: &mut Socket) {
        if self.is_narrow {
            socket.set_only_peer(None);
            self.is_narrow = false;
        }
    }

    /// Returns the address at which the socket reaches a host, or the peer with this number there, if it
    /// does.
    pub fn reach(&self, number: Option<u64>, host: &[u8], socket: &Socket) -> Option<SocketAddr> {
        let way = number.and_then(|number| self.ways.get(number));
        host::reached_from(socket.local(), way.or_else(|| host::parse(host))?)
    }

    /// Sends a signal. A signal to an unreachable host is not sent, and its sender's request times out.
    pub fn say(&mut self, host: &[u8], signal: &Signal, socket: &mut Socket, now_ns: u64) {
        let number = match signal {
            // The number 0 stands for none.
            Signal::Request(_) | Signal::Disconnect { to: 0, .. } => None,
            Signal::Accept { to, .. } | Signal::Refuse { to, .. } | Signal::Disconnect { to, .. } => {
                Some(*to)
            }
        };
        if let Some(to) = self.reach(number, host, socket) {
            self.widen(socket);
            socket.send(to, &signal.encode(), now_ns);
        }
    }

    /// Takes the signals to a shared address.
    pub fn hear(&mut self, nic: &mut Nic, socket: &mut Socket) {
        let Some(sharing) = &mut self.sharing else { return };
        for (bytes, from) in sharing.hear() {
            self.take_signal(&bytes, from, nic);
        }
        if self.sharing.as_ref().is_some_and(|sharing| !sharing.is_alone()) {
            self.widen(socket);
        }
    }

    /// Takes a signal. Returns whether it is valid.
    fn take_signal(&mut self, bytes: &[u8], from: SocketAddr, nic: &mut Nic) -> bool {
        let Ok(signal) = Signal::parse(bytes) else { return false };
        if self.sharing.as_mut().is_some_and(|sharing| sharing.pass_on(&signal, bytes, from)) {
            return true;
        }
        let to = match &signal {
            Signal::Request(request) if request.number == 0 => return false,
            Signal::Request(request) => {
                let host = shared_by(&request.from.host, from);
                self.ways.note(request.number, host, from);
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
                    self.ways.note(*number, named, SocketAddr::new(named.ip(), from.port()));
                }
                nic.signal(&host, signal);
            }
            // The connection has ended; the message that tells the peer so is already on its way.
            None if self.lines.of_number(to).is_some() => {}
            None => nic.signal(&host::encode(from), signal),
        }
        true
    }
}

/// The connections of a provider, with the rules that decide about them.
pub struct Served<'a> {
    pub links: &'a mut Links,
    pub nic: &'a mut Nic,
}

impl Served<'_> {
    #[inline]
    fn at<'a>(&'a mut self, place: usize, socket: &'a mut Socket, now_ns: u64) -> (&'a mut Line, Means<'a>) {
        let Links { lines, scratch, .. } = &mut *self.links;
        (lines.at(place), Means { nic: self.nic, socket, scratch, now_ns })
    }

    /// Ends a connection, because its VI is no longer connected. Returns the time of its next timer.
    pub fn part(&mut self, place: usize, parting: Parting, socket: &mut Socket, now_ns: u64) -> u64 {
        let (line, mut means) = self.at(place, socket, now_ns);
        line.part(parting, &mut means);
        self.end(place, socket, now_ns)
    }

    /// Removes a connection on which nothing is to be sent any more. Returns the time of its next timer.
    fn end(&mut self, place: usize, socket: &mut Socket, now_ns: u64) -> u64 {
        let (line, mut means) = self.at(place, socket, now_ns);
        if !line.end(&mut means) {
            return line.deadline();
        }
        self.links.lines.remove(place);
        self.links.widen(socket);
        u64::MAX
    }
}

impl Connections for Served<'_> {
    type Lost = Infallible;

    #[inline]
    fn on_datagram(
        &mut self,
        bytes: &[u8],
        from: SocketAddr,
        socket: &mut Socket,
        now_ns: u64,
    ) -> Result<Taken, Infallible> {
        let Self { links, nic } = self;
        if bytes.get(KIND_AT) == Some(&vi_signal::CODE) {
            let is_sound = links.take_signal(bytes, from, nic);
            return Ok(if is_sound { Taken::Signal } else { Taken::Malformed });
        }
        let Some(number) = datagram::connection_of(bytes) else { return Ok(Taken::Foreign) };
        let Some(place) = links.lines.of_number(number) else {
            if now_ns >= links.stranger_ns && is_strangers(bytes, number, nic) {
                links.stranger_ns = now_ns + BETWEEN_STRANGERS_NS;
                nic.stranger(&host::encode(from), 0, number);
            }
            return Ok(Taken::Foreign);
        };
        let (line, mut means) = self.at(place, socket, now_ns);
        if !line.take(bytes, &mut means) {
            return Ok(Taken::Malformed);
        }
        self.links.narrow(from, self.nic, socket);
        Ok(Taken::By(place, 1))
    }

    #[inline]
    fn pump(&mut self, place: usize, socket: &mut Socket, now_ns: u64) -> u64 {
        let (line, mut means) = self.at(place, socket, now_ns);
        line.pump(&mut means);
        line.deadline()
    }

    fn on_time(&mut self, socket: &mut Socket, now_ns: u64) -> Result<u64, Infallible> {
        let mut next_ns = u64::MAX;
        // Backwards, because a removed connection is replaced by the last one, which was already
        // checked.
        for place in (0..self.links.lines.len()).rev() {
            let (line, mut means) = self.at(place, socket, now_ns);
            line.on_time(&mut means);
            next_ns = next_ns.min(self.end(place, socket, now_ns));
        }
        Ok(next_ns)
    }

    fn is_owed(&self) -> bool {
        self.links.lines.len() > 0
    }

    /// Refuses a peer that requests a connection now.
    fn send_signals(&mut self, socket: &mut Socket, now_ns: u64) {
        while let Some((host, signal)) = self.nic.next_signal() {
            self.links.say(&host, &signal, socket, now_ns);
        }
    }
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
