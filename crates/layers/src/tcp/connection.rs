//! Connections, each of which shows a token, so that the listener knows which peer has connected.

use crate::peer_wait::PEER_TIMEOUT;
use crate::socket::{block_on, parse_address, write_address};
use netdyno_host::random;
use netdyno_host::timed::Timed;
use netdyno_measure::layer::LayerError;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Bytes of a token.
const TOKEN_LEN: usize = 16;
/// Time for the token of a connection. A peer sends it at once, and waits while a stranger says nothing.
const TOKEN_TIME: Duration = Duration::from_secs(1);
/// Longest sleep while a listener waits for a connection.
const LONGEST_SLEEP: Duration = Duration::from_millis(50);

/// A listening socket, with one token for each peer.
pub(crate) struct Listener {
    listener: TcpListener,
    address: SocketAddr,
    tokens: Vec<[u8; TOKEN_LEN]>,
}

impl Listener {
    /// Listens at `bind` for `peers` connections.
    pub(crate) fn open(bind: SocketAddr, peers: usize) -> Result<Self, LayerError> {
        let (listener, address) = listen(bind)?;
        let tokens =
            (0..peers).map(|_| random::bytes()).collect::<Result<_, _>>().map_err(LayerError::new)?;
        Ok(Self { listener, address, tokens })
    }

    /// Returns the bytes to hand to each peer: its token and the listener's address.
    pub(crate) fn addresses(&self) -> Vec<Vec<u8>> {
        let address = write_address(self.address);
        self.tokens.iter().map(|token| [&token[..], &address].concat()).collect()
    }

    /// Waits for the next connection that shows a token, and closes all others. Returns the peer and the
    /// connection, or `None` if no peer has connected until `until`.
    pub(crate) fn accept(&self, until: Instant) -> Result<Option<(usize, TcpStream)>, LayerError> {
        while Instant::now() < until {
            block_on(&self.listener, LONGEST_SLEEP)?;
            let Ok((stream, _)) = self.listener.accept() else { continue };
            let mut shown = [0; TOKEN_LEN];
            let read = stream
                .set_nonblocking(false)
                .and_then(|()| Timed::new(&stream, TOKEN_TIME).read_exact(&mut shown));
            if let Some(peer) = self.tokens.iter().position(|token| *token == shown)
                && read.is_ok()
            {
                let error = |error| LayerError(format!("cannot set up a connection: {error}"));
                return Ok(Some((peer, prepare(stream).map_err(error)?)));
            }
        }
        Ok(None)
    }
}

/// Connects to the listener at this address, and shows the token.
pub(crate) fn connect(peer: &[u8]) -> Result<TcpStream, LayerError> {
    let (token, address) = peer
        .split_at_checked(TOKEN_LEN)
        .ok_or_else(|| LayerError::new("the address of the other process is too short"))?;
    connect_and_send(parse_address(address)?, token)
}

/// Listens at `bind`. Returns the socket, which does not block, and its address.
pub(crate) fn listen(bind: SocketAddr) -> Result<(TcpListener, SocketAddr), LayerError> {
    let listen = || {
        let listener = TcpListener::bind(bind)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    };
    listen().map_err(|error: io::Error| LayerError(format!("cannot listen at {bind}: {error}")))
}

/// Connects to the listener at this address, and sends it `first`.
pub(crate) fn connect_and_send(address: SocketAddr, first: &[u8]) -> Result<TcpStream, LayerError> {
    let connect = || {
        let mut stream = TcpStream::connect_timeout(&address, PEER_TIMEOUT)?;
        stream.write_all(first)?;
        prepare(stream)
    };
    connect().map_err(|error| LayerError(format!("cannot connect to {address}: {error}")))
}

/// Sets a connection up to send at once and never to block.
pub(crate) fn prepare(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// Returns the error of a connection that failed.
#[cold]
pub(crate) fn lost(error: &io::Error) -> LayerError {
    LayerError(format!("the connection failed: {error}"))
}

/// Returns the error of a connection that the peer has closed.
#[cold]
pub(crate) fn closed() -> LayerError {
    LayerError::new("the other process has closed the connection")
}
