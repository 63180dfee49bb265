//! Bare TCP sockets with TCP_NODELAY: messages of a fixed size on a stream.

use crate::half::{Half, LayerOptions, PEER_TIMEOUT, Replier, Role};
use crate::messages::support::Support;
use crate::messages::tcp::TcpMessages;
use crate::messages::{Exchange, RealMessenger};
use crate::real::{Patience, RealReplier, RealRequester, Wire};
use crate::sized::tcp::SizedTcp;
use crate::socket::{block_on, is_passing, parse_address};
use netdyno_host::random;
use netdyno_host::wait::Wait;
use netdyno_measure::layer::{Face, LayerError, Messenger};
use netdyno_measure::task::{AnySize, Messages, Subject};
use rustix::net::sockopt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// The largest message: a full window of them fits into the socket buffers.
pub const MAX_SIZE: usize = 4 << 10;
/// Messages without a reply at most.
pub(crate) const WINDOW: usize = 64;
/// Buffers asked for; the system may give less, but not less than a full window needs.
const BUFFER: usize = 1 << 20;
/// Says to the replier that the connection is the one it expects.
pub(crate) const TOKEN_LEN: usize = 16;

/// This process's half.
pub struct TcpHalf {
    side: Side,
    options: LayerOptions,
}

enum Side {
    Requester,
    Replier { listener: TcpListener, address: SocketAddr, token: [u8; TOKEN_LEN] },
}

impl TcpHalf {
    /// Opens a listening socket for the replier, nothing yet for the requester.
    pub fn open(role: Role, options: LayerOptions) -> Result<Self, LayerError> {
        let side = match role {
            Role::Requester => Side::Requester,
            Role::Replier => {
                let listen = || -> io::Result<_> {
                    let listener = TcpListener::bind(options.bind)?;
                    listener.set_nonblocking(true)?;
                    let address = listener.local_addr()?;
                    Ok(Side::Replier { listener, address, token: random::bytes()? })
                };
                listen().map_err(|error| LayerError(format!("cannot listen at {}: {error}", options.bind)))?
            }
        };
        Ok(Self { side, options })
    }

    fn messages(&self, stream: TcpStream) -> Exchange<TcpMessages> {
        let largest = self.options.size_bytes;
        Exchange::new(TcpMessages::new(stream, largest), self.options.wait, largest)
    }

    fn sized(&self, stream: TcpStream, is_requester: bool) -> SizedTcp {
        SizedTcp::new(stream, self.options.wait, self.options.size_bytes, is_requester)
    }

    fn wire(&self, stream: TcpStream) -> io::Result<TcpWire> {
        make_room(&stream)?;
        let size = self.options.size_bytes;
        Ok(TcpWire { stream, data: vec![0x5a; size], room: vec![0; size], have: 0 })
    }
}

/// Asks for buffers that hold a full window.
pub(crate) fn make_room(stream: &TcpStream) -> io::Result<()> {
    sockopt::set_socket_send_buffer_size(stream, BUFFER)?;
    Ok(sockopt::set_socket_recv_buffer_size(stream, BUFFER)?)
}

/// What every connection is told: send at once, never block.
pub(crate) fn prepare(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// Waits for the connection that shows `token`; any other is closed.
fn accept(listener: &TcpListener, token: &[u8; TOKEN_LEN]) -> Result<TcpStream, LayerError> {
    let until = Instant::now() + PEER_TIMEOUT;
    while Instant::now() < until {
        block_on(listener, Duration::from_millis(50))?;
        let Ok((mut stream, _)) = listener.accept() else { continue };
        let mut shown = [0; TOKEN_LEN];
        let read = stream
            .set_nonblocking(false)
            .and_then(|()| stream.set_read_timeout(Some(PEER_TIMEOUT)))
            .and_then(|()| stream.read_exact(&mut shown));
        if read.is_ok() && shown == *token {
            return Ok(stream);
        }
    }
    Err(LayerError(format!("the requester has not connected within {PEER_TIMEOUT:?}")))
}

/// Connects to the replier that has this address.
fn connect(peer: &[u8]) -> Result<TcpStream, LayerError> {
    let (token, address) = peer
        .split_at_checked(TOKEN_LEN)
        .ok_or_else(|| LayerError::new("the replier's address is too short"))?;
    let address = parse_address(address)?;
    let connect = || {
        let mut stream = TcpStream::connect_timeout(&address, PEER_TIMEOUT)?;
        stream.write_all(token)?;
        prepare(stream)
    };
    connect().map_err(|error| LayerError(format!("cannot connect to {address}: {error}")))
}

impl Half for TcpHalf {
    fn address(&self) -> Vec<u8> {
        match &self.side {
            Side::Requester => Vec::new(),
            Side::Replier { address, token, .. } => {
                let mut bytes = token.to_vec();
                bytes.extend(address.to_string().into_bytes());
                bytes
            }
        }
    }

    fn requester(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Subject>, LayerError> {
        let stream = connect(peer)?;
        let wait = self.options.wait;
        Ok(match self.options.face {
            Face::Requests => {
                let wire = self.wire(stream).map_err(LayerError::new)?;
                Box::new(RealRequester::new(wire, wait, WINDOW))
            }
            Face::Sized => Box::new(AnySize(RealRequester::new(self.sized(stream, true), wait, WINDOW))),
            Face::Messages => Box::new(Messages(RealMessenger::new(self.messages(stream)))),
        })
    }

    fn replier(self: Box<Self>, _: &[u8]) -> Result<Box<dyn Replier>, LayerError> {
        let Side::Replier { listener, token, .. } = &self.side else {
            return Err(LayerError::new("opened as a requester, used as a replier"));
        };
        let stream = prepare(accept(listener, token)?).map_err(LayerError::new)?;
        let wait = self.options.wait;
        Ok(match self.options.face {
            Face::Requests => Box::new(RealReplier::new(self.wire(stream).map_err(LayerError::new)?, wait)),
            Face::Sized => Box::new(RealReplier::new(self.sized(stream, false), wait)),
            Face::Messages => Box::new(Support::new(self.messages(stream))),
        })
    }

    fn messenger(self: Box<Self>, peer: &[u8]) -> Result<Box<dyn Messenger>, LayerError> {
        Ok(Box::new(RealMessenger::new(self.messages(connect(peer)?))))
    }
}

/// Either end of the wire.
struct TcpWire {
    stream: TcpStream,
    data: Vec<u8>,
    room: Vec<u8>,
    /// Bytes of a message that came in part.
    have: usize,
}

pub(crate) fn lost(error: &io::Error) -> LayerError {
    LayerError(format!("the connection failed: {error}"))
}

impl Wire for TcpWire {
    #[inline(always)]
    fn send(&mut self) -> Result<(), LayerError> {
        let mut rest = &self.data[..];
        let mut patience = Patience::new(Wait::Spin);
        while !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(written) => rest = &rest[written..],
                // A full window fits into the buffers, so this ends without our reading.
                Err(error) if is_passing(&error) => patience.in_vain(|_| Ok(()))?,
                Err(error) => return Err(lost(&error)),
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn take(&mut self) -> Result<bool, LayerError> {
        match self.stream.read(&mut self.room[self.have..]) {
            Ok(0) => Err(LayerError::new("the other process has closed the connection")),
            Ok(read) => {
                self.have = (self.have + read) % self.room.len();
                Ok(self.have == 0)
            }
            Err(error) if is_passing(&error) => Ok(false),
            Err(error) => Err(lost(&error)),
        }
    }

    fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        block_on(&self.stream, timeout)
    }
}
