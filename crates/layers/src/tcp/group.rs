//! A group of processes: each has a connection to each other process, and reads the connections in turn. It
//! reads only those of the peers in the current step.

use super::WINDOW;
use super::connection::{Listener, connect};
use super::stream::FixedSizeStream;
use crate::group::links::{Links, RealMember};
use crate::group::{Attendant, Gathering, Place, no_peer_of_itself};
use crate::options::LayerOptions;
use crate::payload::FILL;
use crate::peer_wait::PEER_TIMEOUT;
use crate::socket::block_on_any;
use netdyno_measure::layer::LayerError;
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// One process of a group, not yet connected.
pub(crate) struct TcpGathering {
    listener: Listener,
    place: Place,
    options: LayerOptions,
}

impl TcpGathering {
    /// Opens a listening socket.
    pub(crate) fn open(place: Place, options: LayerOptions) -> Result<Self, LayerError> {
        Ok(Self { listener: Listener::open(options.bind, place.procs)?, place, options })
    }
}

impl Gathering for TcpGathering {
    fn addresses(&self) -> Vec<Vec<u8>> {
        self.listener.addresses()
    }

    /// Connects to the processes of lower rank, whose listeners accept at any time, and then waits for those
    /// of higher rank.
    fn meet(self: Box<Self>, addresses: &[Vec<u8>]) -> Result<Box<dyn Attendant>, LayerError> {
        let Place { rank, procs } = self.place;
        let size = self.options.size_bytes;
        let mut streams: Vec<Option<FixedSizeStream>> = (0..procs).map(|_| None).collect();
        for (peer, address) in addresses.iter().enumerate().take(rank) {
            streams[peer] = Some(FixedSizeStream::new(connect(address)?, Some(peer), size)?);
        }
        let until = Instant::now() + PEER_TIMEOUT;
        let late = || LayerError(format!("not all processes have connected within {PEER_TIMEOUT:?}"));
        while streams.iter().flatten().count() < procs - 1 {
            let (peer, stream) = self.listener.accept(until)?.ok_or_else(late)?;
            if peer > rank {
                streams[peer] = Some(FixedSizeStream::new(stream, Some(peer), size)?);
            }
        }
        let links = TcpLinks { streams, attended: Vec::new(), next: 0, data: vec![FILL; size] };
        Ok(Box::new(RealMember::new(links, self.options.wait, procs, WINDOW)))
    }
}

struct TcpLinks {
    /// By rank; `None` for the own rank.
    streams: Vec<Option<FixedSizeStream>>,
    /// The peers that are read.
    attended: Vec<usize>,
    /// The index in `attended` of the peer that is read next.
    next: usize,
    data: Vec<u8>,
}

impl Links for TcpLinks {
    fn attend(&mut self, peers: &[usize]) {
        (self.attended, self.next) = (peers.to_vec(), 0);
    }

    #[inline(always)]
    fn request(&mut self, peer: usize) -> Result<(), LayerError> {
        let Self { streams, data, .. } = self;
        let Some(stream) = &mut streams[peer] else { return Err(no_peer_of_itself()) };
        stream.send(data)
    }

    #[inline(always)]
    fn take(&mut self) -> Result<Option<usize>, LayerError> {
        for _ in 0..self.attended.len() {
            let peer = self.attended[self.next];
            self.next = (self.next + 1) % self.attended.len();
            let Some(stream) = &mut self.streams[peer] else { return Err(no_peer_of_itself()) };
            if stream.take()? {
                return Ok(Some(peer));
            }
        }
        Ok(None)
    }

    fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        let attended = self.attended.iter().filter_map(|&peer| self.streams[peer].as_ref());
        let streams: Vec<&TcpStream> = attended.map(FixedSizeStream::socket).collect();
        block_on_any(&streams, timeout)
    }
}
