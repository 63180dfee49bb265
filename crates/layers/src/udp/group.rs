//! A group of processes: each has one socket for all peers. The windows of all peers together fit into the
//! receive buffer.

use super::port::{UdpPort, WINDOW, failed, messages_in_buffer, send_by, surely_held, wrong_size};
use crate::group::links::{Links, RealMember};
use crate::group::{Attendant, Gathering, Place};
use crate::options::LayerOptions;
use crate::payload::FILL;
use crate::socket::{block_on, is_passing, parse_address};
use netdyno_measure::layer::LayerError;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// One process of a group, not yet connected.
pub(crate) struct UdpGathering {
    port: UdpPort,
    place: Place,
    window: usize,
    options: LayerOptions,
}

impl UdpGathering {
    /// Opens a socket.
    ///
    /// # Errors
    /// The datagrams of all peers do not fit into the receive buffer.
    pub(crate) fn open(place: Place, options: LayerOptions) -> Result<Self, LayerError> {
        let port = UdpPort::open(options.bind)?;
        let fit = messages_in_buffer(port.buffer, options.size_bytes) / (place.procs - 1);
        if fit == 0 {
            return Err(LayerError(format!(
                "the {} datagrams of {} bytes that {} processes may send to one do not fit into its socket buffer of {} bytes: use a smaller --size or fewer --procs",
                place.procs - 1,
                options.size_bytes,
                place.procs - 1,
                surely_held(port.buffer)
            )));
        }
        Ok(Self { port, place, window: fit.min(WINDOW), options })
    }
}

impl Gathering for UdpGathering {
    fn addresses(&self) -> Vec<Vec<u8>> {
        self.place.same_address(&self.port.address())
    }

    fn meet(self: Box<Self>, addresses: &[Vec<u8>]) -> Result<Box<dyn Attendant>, LayerError> {
        let mut peers = vec![self.port.address; self.place.procs];
        for peer in self.place.peers() {
            peers[peer] = parse_address(&addresses[peer])?;
        }
        let links = UdpLinks {
            socket: self.port.socket,
            rank: self.place.rank,
            peers,
            data: vec![FILL; self.options.size_bytes],
            room: vec![0; self.options.size_bytes + 1],
        };
        Ok(Box::new(RealMember::new(links, self.options.wait, self.place.procs, self.window)))
    }
}

struct UdpLinks {
    socket: UdpSocket,
    rank: usize,
    /// The peers' addresses, by rank.
    peers: Vec<SocketAddr>,
    data: Vec<u8>,
    /// The receive buffer. It is one byte longer than a datagram, so that a longer one is noticed.
    room: Vec<u8>,
}

impl Links for UdpLinks {
    /// Does nothing, because all peers send to one socket.
    fn attend(&mut self, _: &[usize]) {}

    #[inline(always)]
    fn request(&mut self, peer: usize) -> Result<(), LayerError> {
        send_by(|| self.socket.send_to(&self.data, self.peers[peer]), failed)
    }

    #[inline(always)]
    fn take(&mut self) -> Result<Option<usize>, LayerError> {
        match self.socket.recv_from(&mut self.room) {
            // Datagrams of unknown peers are discarded.
            Ok((len, from)) => match self.peers.iter().position(|peer| *peer == from) {
                Some(peer) if peer == self.rank => Ok(None),
                Some(peer) if len == self.data.len() => Ok(Some(peer)),
                Some(_) => Err(wrong_size(len, self.data.len())),
                None => Ok(None),
            },
            Err(error) if is_passing(&error) => Ok(None),
            Err(error) => Err(failed(&error)),
        }
    }

    fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        block_on(&self.socket, timeout)
    }
}
