//! A UDP socket, and the datagrams that its receive buffer holds.

use crate::peer_wait::PeerWait;
use crate::socket::{is_passing, parse_address, write_address};
use netdyno_host::wait::Wait;
use netdyno_measure::layer::LayerError;
use rustix::net::sockopt;
use std::io;
use std::net::{SocketAddr, UdpSocket};

/// Most datagrams in flight.
pub(crate) const WINDOW: usize = 64;
/// The receive buffer that a socket asks for, in bytes. The system may give less.
const BUFFER: usize = 1 << 20;
/// Bytes that the kernel allocates together with the data of a datagram.
const WITH_DATA: usize = 352;
/// Bytes that the kernel allocates apart from the data of a datagram.
const APART: usize = 256;

/// Returns the most bytes that a datagram of `size_bytes` takes of a receive buffer: the kernel allocates
/// powers of two.
pub(super) fn charge(size_bytes: usize) -> usize {
    (size_bytes + WITH_DATA).next_power_of_two() + APART
}

/// Returns the charges that surely fit into a receive buffer of `buffer` bytes, as the system states its
/// size. They are half of it, because the kernel gives back a quarter of the buffer late.
pub(super) fn surely_held(buffer: usize) -> usize {
    buffer / 2
}

/// Returns the number of datagrams of `size_bytes` that surely fit into a receive buffer of `buffer` bytes.
pub(crate) fn messages_in_buffer(buffer: usize, size_bytes: usize) -> usize {
    surely_held(buffer) / charge(size_bytes)
}

/// Returns the most datagrams of `size_bytes` in flight to a receive buffer of `buffer` bytes.
pub(crate) fn window(buffer: usize, size_bytes: usize) -> usize {
    messages_in_buffer(buffer, size_bytes).clamp(1, WINDOW)
}

/// A bound socket that does not block.
pub(crate) struct UdpPort {
    pub(crate) socket: UdpSocket,
    /// The address that the socket is bound to.
    pub(crate) address: SocketAddr,
    /// The size of the receive buffer as the system states it, in bytes.
    pub(crate) buffer: usize,
    /// The size of the receive buffer of a socket that asks for none, in bytes.
    pub(crate) usual_buffer: usize,
}

impl UdpPort {
    /// Opens a socket at `bind`.
    pub(crate) fn open(bind: SocketAddr) -> Result<Self, LayerError> {
        let error = |what| {
            move |error: io::Error| LayerError(format!("cannot {what} a UDP socket at {bind}: {error}"))
        };
        let socket = UdpSocket::bind(bind).map_err(error("open"))?;
        let address = socket.local_addr().map_err(error("name"))?;
        socket.set_nonblocking(true).map_err(error("set up"))?;
        let buffer = || sockopt::socket_recv_buffer_size(&socket).map_err(LayerError::new);
        let usual_buffer = buffer()?;
        sockopt::set_socket_recv_buffer_size(&socket, BUFFER).map_err(LayerError::new)?;
        let buffer = buffer()?;
        Ok(Self { socket, address, buffer, usual_buffer })
    }

    /// Returns the bytes to hand to peers.
    pub(crate) fn address(&self) -> Vec<u8> {
        write_address(self.address)
    }

    /// Connects the socket to a peer. The kernel then drops the datagrams of all other sockets.
    pub(crate) fn connect(&self, peer: &[u8]) -> Result<(), LayerError> {
        let peer = parse_address(peer)?;
        self.socket.connect(peer).map_err(LayerError::new)
    }
}

/// Sends a datagram by `send`, again and again while the send buffer is full: the kernel empties it without
/// help of this process. `failed` makes the error of a socket that failed.
#[inline(always)]
pub(crate) fn send_by(
    mut send: impl FnMut() -> io::Result<usize>,
    failed: fn(&io::Error) -> LayerError,
) -> Result<(), LayerError> {
    let mut wait = PeerWait::new(Wait::Spin);
    loop {
        match send() {
            Ok(_) => return Ok(()),
            Err(error) if is_passing(&error) => wait.after_empty_poll(|_| Ok(()))?,
            Err(error) => return Err(failed(&error)),
        }
    }
}

/// Returns the error of a socket that failed.
#[cold]
pub(crate) fn failed(error: &io::Error) -> LayerError {
    LayerError(format!("the socket failed: {error}"))
}

/// Returns the error of a connected socket that failed.
#[cold]
pub(crate) fn lost(error: &io::Error) -> LayerError {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => LayerError::new("the other process has closed its socket"),
        _ => failed(error),
    }
}

/// Returns the error for a datagram of `len` bytes where `expected` bytes were expected.
#[cold]
pub(super) fn wrong_size(len: usize, expected: usize) -> LayerError {
    LayerError(format!("a datagram of {len} bytes came, {expected} were expected"))
}
