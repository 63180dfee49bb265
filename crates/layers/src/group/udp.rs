//! Bare UDP: one socket for all peers. A datagram that the kernel drops ends the run with an
//! error; windows are kept so small that those of all peers together fit into the receive
//! buffer, so that it has no reason to.

use super::member::{Links, RealMember};
use super::{Attendant, Gathering, Place};
use crate::half::LayerOptions;
use crate::real::Patience;
use crate::socket::{block_on, is_passing, parse_address};
use crate::udp::{BUFFER, WINDOW, messages_in_buffer};
use netdyno_host::wait::Wait;
use netdyno_measure::layer::LayerError;
use rustix::net::sockopt;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

pub(super) struct UdpGathering {
    socket: UdpSocket,
    address: SocketAddr,
    place: Place,
    window: usize,
    options: LayerOptions,
}

impl UdpGathering {
    pub(super) fn open(place: Place, options: LayerOptions) -> Result<Self, LayerError> {
        let error = |error: std::io::Error| {
            LayerError(format!("cannot open a UDP socket at {}: {error}", options.bind))
        };
        let socket = UdpSocket::bind(options.bind).map_err(error)?;
        let address = socket.local_addr().map_err(error)?;
        socket.set_nonblocking(true).map_err(error)?;
        sockopt::set_socket_recv_buffer_size(&socket, BUFFER).map_err(LayerError::new)?;
        let buffer = sockopt::socket_recv_buffer_size(&socket).map_err(LayerError::new)?;
        let fit = messages_in_buffer(buffer, options.size_bytes) / (place.procs - 1);
        if fit == 0 {
            return Err(LayerError(format!(
                "the {} datagrams of {} bytes that {} processes may send to one do not fit into its socket buffer of {} bytes: use a smaller --size or fewer --procs",
                place.procs - 1,
                options.size_bytes,
                place.procs - 1,
                buffer / 2
            )));
        }
        Ok(Self { socket, address, place, window: fit.min(WINDOW), options })
    }
}

impl Gathering for UdpGathering {
    fn addresses(&self) -> Vec<Vec<u8>> {
        let own = self.address.to_string().into_bytes();
        (0..self.place.procs)
            .map(|peer| if peer == self.place.rank { Vec::new() } else { own.clone() })
            .collect()
    }

    fn meet(self: Box<Self>, addresses: &[Vec<u8>]) -> Result<Box<dyn Attendant>, LayerError> {
        let mut peers = vec![self.address; self.place.procs];
        for peer in self.place.peers() {
            peers[peer] = parse_address(&addresses[peer])?;
        }
        let links = UdpLinks {
            socket: self.socket,
            rank: self.place.rank,
            peers,
            data: vec![0x5a; self.options.size_bytes],
            room: vec![0; self.options.size_bytes + 1],
        };
        Ok(Box::new(RealMember::new(links, self.options.wait, self.place.procs, self.window)))
    }
}

struct UdpLinks {
    socket: UdpSocket,
    rank: usize,
    /// Where the others are, by rank.
    peers: Vec<SocketAddr>,
    data: Vec<u8>,
    /// One byte longer than a datagram, to see one that is too long.
    room: Vec<u8>,
}

impl Links for UdpLinks {
    /// All of them send to one socket.
    fn attend(&mut self, _: &[usize]) {}

    #[inline(always)]
    fn request(&mut self, peer: usize) -> Result<(), LayerError> {
        let mut patience = Patience::new(Wait::Spin);
        loop {
            match self.socket.send_to(&self.data, self.peers[peer]) {
                Ok(_) => return Ok(()),
                // The send buffer is emptied by the kernel without our help.
                Err(error) if is_passing(&error) => patience.in_vain(|_| Ok(()))?,
                Err(error) => return Err(LayerError(format!("the socket failed: {error}"))),
            }
        }
    }

    #[inline(always)]
    fn take(&mut self) -> Result<Option<usize>, LayerError> {
        match self.socket.recv_from(&mut self.room) {
            // What strangers send is none of ours.
            Ok((len, from)) => match self.peers.iter().position(|peer| *peer == from) {
                Some(peer) if peer == self.rank => Ok(None),
                Some(peer) if len == self.data.len() => Ok(Some(peer)),
                Some(_) => Err(LayerError(format!(
                    "a datagram of {len} bytes came, {} were expected",
                    self.data.len()
                ))),
                None => Ok(None),
            },
            Err(error) if is_passing(&error) => Ok(None),
            Err(error) => Err(LayerError(format!("the socket failed: {error}"))),
        }
    }

    #[inline(always)]
    fn answer(&mut self) -> Result<bool, LayerError> {
        let Some(peer) = self.take()? else { return Ok(false) };
        self.request(peer)?;
        Ok(true)
    }

    fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        block_on(&self.socket, timeout)
    }
}
