//! The wire of an endpoint, which is chosen when the endpoint is opened.

use super::{DatagramSocket, DatagramWire, Datagrams, XdpWire};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

/// A wire of either kind. The choice costs a comparison for each call.
#[derive(Debug)]
pub enum Carrier {
    /// A UDP socket.
    Socket(DatagramSocket),
    /// The AF_XDP sockets of an interface.
    Xdp(Box<XdpWire>),
}

impl From<DatagramSocket> for Carrier {
    fn from(socket: DatagramSocket) -> Self {
        Self::Socket(socket)
    }
}

impl From<XdpWire> for Carrier {
    fn from(wire: XdpWire) -> Self {
        Self::Xdp(wire.into())
    }
}

/// Calls a function of the wire of either kind.
macro_rules! either {
    ($carrier:expr, $wire:ident => $call:expr) => {
        match $carrier {
            Carrier::Socket($wire) => $call,
            Carrier::Xdp($wire) => $call,
        }
    };
}

impl DatagramWire for Carrier {
    fn local(&self) -> SocketAddr {
        either!(self, wire => wire.local())
    }

    fn refused(&self) -> u64 {
        either!(self, wire => wire.refused())
    }

    fn by_kernel(&self) -> u64 {
        either!(self, wire => wire.by_kernel())
    }

    fn description(&self) -> Option<String> {
        either!(self, wire => wire.description())
    }

    fn set_only_peer(&mut self, peer: Option<SocketAddr>) {
        either!(self, wire => wire.set_only_peer(peer));
    }

    #[inline]
    fn send(&mut self, to: SocketAddr, datagram: &[u8], now_ns: u64) {
        either!(self, wire => wire.send(to, datagram, now_ns));
    }

    #[inline]
    fn join(&mut self, to: SocketAddr, datagram: &[u8], now_ns: u64) {
        either!(self, wire => wire.join(to, datagram, now_ns));
    }

    #[inline]
    fn flush(&mut self) {
        either!(self, wire => wire.flush());
    }

    #[inline]
    fn receive(&mut self, room: &mut [u8]) -> Option<Datagrams> {
        either!(self, wire => wire.receive(room))
    }
}

impl AsFd for Carrier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        either!(self, wire => wire.as_fd())
    }
}
