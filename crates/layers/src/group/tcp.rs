//! Bare TCP: a socket for each peer, read in turn. Only the sockets of those whom a step makes
//! peers are looked at.

use super::member::{Links, RealMember};
use super::{Attendant, Gathering, Place};
use crate::half::{LayerOptions, PEER_TIMEOUT};
use crate::real::Patience;
use crate::socket::{block_on, block_on_any, is_passing, parse_address};
use crate::tcp::{TOKEN_LEN, WINDOW, make_room, prepare};
use netdyno_host::random;
use netdyno_host::wait::Wait;
use netdyno_measure::layer::LayerError;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

pub(super) struct TcpGathering {
    listener: TcpListener,
    address: SocketAddr,
    /// Says who connects: one for each peer.
    tokens: Vec<[u8; TOKEN_LEN]>,
    place: Place,
    options: LayerOptions,
}

impl TcpGathering {
    pub(super) fn open(place: Place, options: LayerOptions) -> Result<Self, LayerError> {
        let bind = options.bind;
        let open = || -> io::Result<_> {
            let listener = TcpListener::bind(options.bind)?;
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            let tokens = (0..place.procs)
                .map(|_| random::bytes().map_err(io::Error::from))
                .collect::<io::Result<_>>()?;
            Ok(Self { listener, address, tokens, place, options })
        };
        open().map_err(|error| LayerError(format!("cannot listen at {bind}: {error}")))
    }

    fn connect(&self, address: &[u8]) -> Result<TcpStream, LayerError> {
        let (token, address) = address
            .split_at_checked(TOKEN_LEN)
            .ok_or_else(|| LayerError::new("the address of a process is too short"))?;
        let address = parse_address(address)?;
        let connect = || {
            let mut stream = TcpStream::connect_timeout(&address, PEER_TIMEOUT)?;
            stream.write_all(token)?;
            Ok(stream)
        };
        connect().map_err(|error: io::Error| LayerError(format!("cannot connect to {address}: {error}")))
    }

    /// Waits for the next connection that shows a token; any other is closed.
    fn accept(&self, until: Instant) -> Result<(usize, TcpStream), LayerError> {
        while Instant::now() < until {
            block_on(&self.listener, Duration::from_millis(50))?;
            let Ok((mut stream, _)) = self.listener.accept() else { continue };
            let mut shown = [0; TOKEN_LEN];
            let read = stream
                .set_nonblocking(false)
                .and_then(|()| stream.set_read_timeout(Some(PEER_TIMEOUT)))
                .and_then(|()| stream.read_exact(&mut shown));
            if let Some(peer) = self.tokens.iter().position(|token| *token == shown)
                && read.is_ok()
            {
                return Ok((peer, stream));
            }
        }
        Err(LayerError(format!("not all processes have connected within {PEER_TIMEOUT:?}")))
    }
}

/// A connection that never waits and holds a full window.
fn ready(stream: TcpStream) -> Result<TcpStream, LayerError> {
    prepare(stream)
        .and_then(|stream| make_room(&stream).map(|()| stream))
        .map_err(|error| LayerError(format!("cannot set up a connection: {error}")))
}

impl Gathering for TcpGathering {
    fn addresses(&self) -> Vec<Vec<u8>> {
        let address = self.address.to_string().into_bytes();
        self.tokens.iter().map(|token| [&token[..], &address].concat()).collect()
    }

    /// Connects to those of lower rank, whose listeners take it whatever they do, then waits for
    /// those of higher rank.
    fn meet(self: Box<Self>, addresses: &[Vec<u8>]) -> Result<Box<dyn Attendant>, LayerError> {
        let Place { rank, procs } = self.place;
        let mut streams: Vec<Option<TcpStream>> = (0..procs).map(|_| None).collect();
        for (peer, address) in addresses.iter().enumerate().take(rank) {
            streams[peer] = Some(ready(self.connect(address)?)?);
        }
        let until = Instant::now() + PEER_TIMEOUT;
        while streams.iter().flatten().count() < procs - 1 {
            let (peer, stream) = self.accept(until)?;
            if peer > rank {
                streams[peer] = Some(ready(stream)?);
            }
        }
        let size = self.options.size_bytes;
        let ends =
            streams.into_iter().map(|stream| Some(End { stream: stream?, room: vec![0; size], have: 0 }));
        let links = TcpLinks { ends: ends.collect(), attended: Vec::new(), next: 0, data: vec![0x5a; size] };
        Ok(Box::new(RealMember::new(links, self.options.wait, procs, WINDOW)))
    }
}

/// One end of a connection.
struct End {
    stream: TcpStream,
    room: Vec<u8>,
    /// Bytes of a message that came in part.
    have: usize,
}

struct TcpLinks {
    /// By rank; none for the own.
    ends: Vec<Option<End>>,
    /// Those looked at, and the index of the next.
    attended: Vec<usize>,
    next: usize,
    data: Vec<u8>,
}

fn lost(peer: usize, error: &io::Error) -> LayerError {
    LayerError(format!("the connection to process {peer} failed: {error}"))
}

impl TcpLinks {
    #[inline(always)]
    fn end(&mut self, peer: usize) -> Result<&mut End, LayerError> {
        self.ends[peer].as_mut().ok_or_else(|| LayerError::new("a process is no peer of itself"))
    }

    /// Takes a message of this peer, if one is there.
    #[inline(always)]
    fn take_from(&mut self, peer: usize) -> Result<bool, LayerError> {
        let end = self.end(peer)?;
        match end.stream.read(&mut end.room[end.have..]) {
            Ok(0) => Err(LayerError(format!("process {peer} has closed the connection"))),
            Ok(read) => {
                end.have = (end.have + read) % end.room.len();
                Ok(end.have == 0)
            }
            Err(error) if is_passing(&error) => Ok(false),
            Err(error) => Err(lost(peer, &error)),
        }
    }
}

impl Links for TcpLinks {
    fn attend(&mut self, peers: &[usize]) {
        (self.attended, self.next) = (peers.to_vec(), 0);
    }

    #[inline(always)]
    fn request(&mut self, peer: usize) -> Result<(), LayerError> {
        let Self { ends, data, .. } = self;
        let Some(end) = &mut ends[peer] else {
            return Err(LayerError::new("a process is no peer of itself"));
        };
        let mut rest = &data[..];
        let mut patience = Patience::new(Wait::Spin);
        while !rest.is_empty() {
            match end.stream.write(rest) {
                Ok(written) => rest = &rest[written..],
                // A full window fits into the buffers, so this ends without our reading.
                Err(error) if is_passing(&error) => patience.in_vain(|_| Ok(()))?,
                Err(error) => return Err(lost(peer, &error)),
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn take(&mut self) -> Result<Option<usize>, LayerError> {
        for _ in 0..self.attended.len() {
            let peer = self.attended[self.next];
            self.next = (self.next + 1) % self.attended.len();
            if self.take_from(peer)? {
                return Ok(Some(peer));
            }
        }
        Ok(None)
    }

    #[inline(always)]
    fn answer(&mut self) -> Result<bool, LayerError> {
        let Some(peer) = self.take()? else { return Ok(false) };
        self.request(peer)?;
        Ok(true)
    }

    fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        let attended = self.attended.iter().filter_map(|&peer| self.ends[peer].as_ref());
        let streams: Vec<&TcpStream> = attended.map(|end| &end.stream).collect();
        block_on_any(&streams, timeout)
    }
}
