//! Virtual Interfaces over UDP: a NIC in software, driven by the calls to the provider.
//!
//! ```text
//!   Provider --- send, receive ---> UdpWire: one Driver, with its socket
//!                                      |  by the connection number that a datagram carries
//!                          +-----------+-----------+
//!                          v                       v
//!                      Reliable                 Pieces
//!             a Connection: once, in order    lost datagrams stay lost
//! ```
//!
//! Three kinds of datagrams arrive at the socket. Signals connect VIs
//! ([`netdyno_protocol::frame::vi_signal`]). Fragments carry messages of unreliable VIs
//! ([`netdyno_protocol::frame::vi_fragment`]). All others belong to the connections of reliable VIs
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

pub mod host;
mod lines;
mod links;
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
use crate::statistics::{PeerStatistics, Strays};
use crate::udp::{Driver, LINGER, LINGER_NS, Socket, timeout_ns};
use lines::Line;
use links::{Links, Served};
use netdyno_host::datagram::{Carrier, DatagramSocket, DatagramWire, SocketError, XdpWire};
use netdyno_protocol::frame::vi_signal::Signal;
use netdyno_protocol::vi::{ConnectError, Link, Nic, Parting, Segment, ViHandle};
use pieces::Pieces;
use reliable::Reliable;
use rustix::io::Errno;
use sharing::Sharing;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

pub(super) struct UdpWire {
    // Declared before `links`, so that the socket is closed first: a guest that sees the holder's end
    // finds the address free.
    driver: Driver,
    links: Links,
    host: Vec<u8>,
    began: Instant,
    timeout_ns: u64,
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
    socket: &'a mut Socket,
    scratch: &'a mut Scratch,
    now_ns: u64,
}

impl UdpWire {
    pub(super) fn open(options: &UdpOptions) -> Result<Self, OpenError> {
        let timeout = options.peer_timeout.max(Duration::from_millis(1));
        let (carrier, sharing) = match options {
            UdpOptions { is_xdp: true, .. } => (over_xdp(options)?, None),
            UdpOptions { is_shared: true, .. } => bind_shared(options)?,
            _ => (bind(options)?.into(), None),
        };
        let address = sharing.as_ref().map_or(carrier.local(), Sharing::address);
        Ok(Self {
            host: host::encode(host::reachable(address)),
            driver: Driver::new(carrier, options.faults, options.seed, timeout),
            links: Links::new(sharing),
            began: Instant::now(),
            timeout_ns: timeout_ns(timeout),
        })
    }

    /// Polls the socket: takes one datagram or one batch, and runs the timers that are due. Returns
    /// whether there was anything.
    fn look(&mut self, nic: &mut Nic) -> bool {
        let Ok(polled) = self.driver.poll(&mut Served { links: &mut self.links, nic });
        polled.was_any()
    }

    /// Sends all that a connection has ready.
    #[inline]
    fn pump(&mut self, place: usize, nic: &mut Nic, now_ns: u64) {
        self.driver.pump(place, &mut Served { links: &mut self.links, nic }, now_ns);
    }
}

fn everywhere(port: u16) -> Result<DatagramSocket, SocketError> {
    DatagramSocket::bind_wide((Ipv4Addr::UNSPECIFIED, port).into())
}

fn over_xdp(options: &UdpOptions) -> Result<Carrier, OpenError> {
    let address = options.bind.unwrap_or((Ipv4Addr::UNSPECIFIED, 0).into());
    Ok(XdpWire::bind(address)?.into())
}

fn bind(options: &UdpOptions) -> Result<DatagramSocket, OpenError> {
    Ok(match options.bind {
        Some(address) => DatagramSocket::bind_wide(address)?,
        None => everywhere(UDP_PORT).or_else(|_| everywhere(0))?,
    })
}

/// Opens the provider's own socket: at an address that it shares from now on, or at another port if
/// another provider holds the address.
fn bind_shared(options: &UdpOptions) -> Result<(Carrier, Option<Sharing>), OpenError> {
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
    Ok((socket.into(), Some(sharing)))
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
        self.links.listen(discriminator, &mut self.driver.socket);
        Ok(())
    }

    fn ignore(&mut self, discriminator: &[u8]) {
        self.links.ignore(discriminator);
    }

    fn say(&mut self, _: &mut Nic, host: &[u8], signal: &Signal) {
        let now_ns = self.driver.clock.now_ns();
        self.links.say(host, signal, &mut self.driver.socket, now_ns);
    }

    /// Signals arrive at the socket with everything else, except signals to a shared address.
    fn hear(&mut self, nic: &mut Nic) {
        self.links.hear(nic, &mut self.driver.socket);
    }

    fn link(&mut self, nic: &mut Nic, vi: ViHandle, link: &Link) {
        let Some(to) = self.links.reach(Some(link.remote), &link.host, &self.driver.socket) else {
            // The peer was reachable a moment ago.
            return nic.lost(vi);
        };
        let now_ns = self.driver.clock.now_ns();
        let line = if link.offer.level.is_reliable() {
            Line::Reliable(Reliable::new(vi, link, to, self.timeout_ns, now_ns).into())
        } else {
            Line::Pieces(Pieces::new(vi, link, to, self.timeout_ns, now_ns))
        };
        self.links.widen(&mut self.driver.socket);
        let place = self.links.lines.insert(link.local, vi, line);
        self.pump(place, nic, now_ns);
    }

    fn unlink(&mut self, nic: &mut Nic, vi: ViHandle, _: &Link, parting: Parting) {
        let Some(place) = self.links.lines.part(vi) else { return };
        let Self { driver, links, .. } = self;
        let now_ns = driver.clock.now_ns();
        let at_ns = Served { links, nic }.part(place, parting, &mut driver.socket, now_ns);
        driver.expect(at_ns);
    }

    #[inline]
    fn send(&mut self, nic: &mut Nic, vi: ViHandle) {
        if let Some(place) = self.links.lines.of_vi(vi) {
            let now_ns = self.driver.clock.now_ns();
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
        let left = self.driver.until_due();
        self.links.sharing.as_ref().map_or(left, |sharing| left.min(sharing.until_due()))
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.links.sharing.as_ref().map_or(self.driver.socket.as_fd(), Sharing::descriptor)
    }

    fn shared_address(&self) -> Option<SocketAddr> {
        self.links.sharing.as_ref().map(Sharing::address)
    }

    fn statistics(&self, vi: ViHandle) -> Option<PeerStatistics> {
        self.links.lines.get(vi)?.statistics()
    }

    fn is_delivered(&self, vi: ViHandle) -> bool {
        self.links.lines.get(vi).is_none_or(Line::is_delivered)
    }

    fn strays(&self) -> Strays {
        self.driver.strays()
    }

    fn linger(&mut self, nic: &mut Nic) {
        let served = &mut Served { links: &mut self.links, nic };
        self.driver.linger(served, LINGER);
        // The remaining connections have had their time.
        let now_ns = self.driver.clock.now_ns().saturating_add(LINGER_NS);
        let Ok(()) = self.driver.on_time(served, now_ns);
    }
}
