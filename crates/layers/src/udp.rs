//! Bare UDP sockets: what the kernel's path costs, with nothing on top. A
//! datagram that the kernel drops ends the run with an error; the window is kept below
//! what the receive buffer holds, so that it has no reason to.

use crate::half::{Half, LayerOptions, Replier};
use crate::messages::support::Support;
use crate::messages::udp::UdpMessages;
use crate::messages::{Exchange, RealMessenger};
use crate::real::{Patience, RealReplier, RealRequester, Wire};
use crate::sized::udp::SizedUdp;
use crate::socket::{block_on, is_passing, parse_address};
use netdyno_host::wait::Wait;
use netdyno_measure::layer::{Face, LayerError, Messenger};
use netdyno_measure::task::{AnySize, Messages, Subject};
use rustix::net::sockopt;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// The largest datagram offered: what one loopback packet carries with room to spare.
pub const MAX_SIZE: usize = 32 << 10;
/// Datagrams without a reply at most.
pub(crate) const WINDOW: usize = 64;
/// Receive buffer asked for; the system may give less.
pub(crate) const BUFFER: usize = 1 << 20;
/// What the kernel allocates with the data of a datagram, and apart from it.
const WITH_DATA: usize = 352;
const APART: usize = 256;

/// What a datagram of `size_bytes` takes of a receive buffer at most: allocations are powers of
/// two.
pub(crate) fn charge(size_bytes: usize) -> usize {
    (size_bytes + WITH_DATA).next_power_of_two() + APART
}

/// How much of datagrams surely fits into a receive buffer of which the system says that it has
/// `buffer` bytes: of what was read, the kernel gives back a quarter of the buffer late.
pub(crate) fn surely_held(buffer: usize) -> usize {
    buffer / 2
}

/// Datagrams of `size_bytes` that surely fit into that receive buffer.
pub(crate) fn messages_in_buffer(buffer: usize, size_bytes: usize) -> usize {
    surely_held(buffer) / charge(size_bytes)
}

/// This process's half.
pub struct UdpHalf {
    socket: UdpSocket,
    address: SocketAddr,
    /// Bytes that the receive buffer holds.
    buffer: usize,
    options: LayerOptions,
}

impl UdpHalf {
    /// Opens a socket.
    pub fn open(options: LayerOptions) -> Result<Self, LayerError> {
        let error = |what| {
            move |error: io::Error| {
                LayerError(format!("cannot {what} a UDP socket at {}: {error}", options.bind))
            }
        };
        let socket = UdpSocket::bind(options.bind).map_err(error("open"))?;
        let address = socket.local_addr().map_err(error("name"))?;
        socket.set_nonblocking(true).map_err(error("set up"))?;
        sockopt::set_socket_recv_buffer_size(&socket, BUFFER).map_err(LayerError::new)?;
        let buffer = sockopt::socket_recv_buffer_size(&socket).map_err(LayerError::new)?;
        Ok(Self { socket, address, buffer, options })
    }

    fn connect(&self, peer: &[u8]) -> Result<(), LayerError> {
        let peer = parse_address(peer)?;
        // From here on the kernel drops what anybody else sends.
        self.socket.connect(peer).map_err(LayerError::new)
    }

    fn messages(self) -> Exchange<UdpMessages> {
        let LayerOptions { size_bytes, wait, .. } = self.options;
        Exchange::new(UdpMessages::new(self.socket, self.buffer, size_bytes), wait, size_bytes)
    }

    fn sized(self, is_requester: bool) -> SizedUdp {
        SizedUdp::new(self.socket, self.buffer, self.options.size_bytes, is_requester)
    }

    fn wire(self) -> UdpWire {
        UdpWire {
            socket: self.socket,
            data: vec![0x5a; self.options.size_bytes],
            room: vec![0; self.options.size_bytes + 1],
        }
    }
}

/// How many datagrams of `size_bytes` may be on the way where a receive buffer holds `buffer`
/// bytes.
pub(crate) fn window(buffer: usize, size_bytes: usize) -> usize {
    messages_in_buffer(buffer, size_bytes).clamp(1, WINDOW)
}

impl Half for UdpHalf {
    fn address(&self) -> Vec<u8> {
        self.address.to_string().into_bytes()
    }

    fn requester(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Subject>, LayerError> {
        self.connect(peer)?;
        let LayerOptions { size_bytes, wait, face, .. } = self.options;
        let window = window(self.buffer, size_bytes);
        Ok(match face {
            Face::Requests => Box::new(RealRequester::new(self.wire(), wait, window)),
            Face::Sized => Box::new(AnySize(RealRequester::new(self.sized(true), wait, window))),
            Face::Messages => Box::new(Messages(RealMessenger::new(self.messages()))),
        })
    }

    fn replier(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Replier>, LayerError> {
        self.connect(peer)?;
        let LayerOptions { wait, face, .. } = self.options;
        Ok(match face {
            Face::Requests => Box::new(RealReplier::new(self.wire(), wait)),
            Face::Sized => Box::new(RealReplier::new(self.sized(false), wait)),
            Face::Messages => Box::new(Support::new(self.messages())),
        })
    }

    fn messenger(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Messenger>, LayerError> {
        self.connect(peer)?;
        Ok(Box::new(RealMessenger::new(self.messages())))
    }
}

/// Either end of the wire.
struct UdpWire {
    socket: UdpSocket,
    data: Vec<u8>,
    /// One byte longer than a datagram, to see one that is too long.
    room: Vec<u8>,
}

pub(crate) fn lost(error: &io::Error) -> LayerError {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => LayerError::new("the other process has closed its socket"),
        _ => LayerError(format!("the socket failed: {error}")),
    }
}

impl Wire for UdpWire {
    #[inline(always)]
    fn send(&mut self) -> Result<(), LayerError> {
        let mut patience = Patience::new(Wait::Spin);
        loop {
            match self.socket.send(&self.data) {
                Ok(_) => return Ok(()),
                // The send buffer is emptied by the kernel without our help.
                Err(error) if is_passing(&error) => patience.in_vain(|_| Ok(()))?,
                Err(error) => return Err(lost(&error)),
            }
        }
    }

    #[inline(always)]
    fn take(&mut self) -> Result<bool, LayerError> {
        match self.socket.recv(&mut self.room) {
            Ok(len) if len == self.data.len() => Ok(true),
            Ok(len) => {
                Err(LayerError(format!("a datagram of {len} bytes came, {} were expected", self.data.len())))
            }
            Err(error) if is_passing(&error) => Ok(false),
            Err(error) => Err(lost(&error)),
        }
    }

    fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        block_on(&self.socket, timeout)
    }
}
