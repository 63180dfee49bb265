//! A group of processes: each is a server, and a client of every other process.

use super::client::{Channel, Client};
use super::tcp::{TcpChannel, TcpServer};
use super::udp::{UdpChannel, UdpServer};
use crate::group::links::{Links, RealMember};
use crate::group::{Attendant, Gathering, Place, no_peer_of_itself};
use crate::options::LayerOptions;
use crate::requests::{Responder, Wire};
use crate::socket::{block_on_any, parse_address, write_address};
use crate::tcp::connection::{connect_and_send, listen};
use crate::tcp::stream::widen;
use crate::udp::port::UdpPort;
use netdyno_measure::layer::LayerError;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

/// One process of a group over UDP, not yet connected.
pub(crate) struct RpcUdpGathering {
    /// The server's socket.
    port: UdpPort,
    place: Place,
    options: LayerOptions,
}

impl RpcUdpGathering {
    /// Opens the server's socket.
    pub(crate) fn open(place: Place, options: LayerOptions) -> Result<Self, LayerError> {
        Ok(Self { port: UdpPort::open(options.bind)?, place, options })
    }
}

impl Gathering for RpcUdpGathering {
    fn addresses(&self) -> Vec<Vec<u8>> {
        self.place.same_address(&self.port.address())
    }

    fn meet(self: Box<Self>, addresses: &[Vec<u8>]) -> Result<Box<dyn Attendant>, LayerError> {
        let Self { port, place, options } = *self;
        let own = SocketAddr::new(options.bind.ip(), 0);
        let (clients, largest) = (place.procs - 1, options.size_bytes);
        let server = UdpServer::new(port, None, largest);
        let connect = |server: &[u8]| UdpChannel::connect(UdpPort::open(own)?, server, clients, largest);
        member(connect, addresses, server, place, &options)
    }
}

/// One process of a group over TCP, not yet connected.
pub(crate) struct RpcTcpGathering {
    listener: TcpListener,
    address: SocketAddr,
    place: Place,
    options: LayerOptions,
}

impl RpcTcpGathering {
    /// Opens the server's listening socket.
    pub(crate) fn open(place: Place, options: LayerOptions) -> Result<Self, LayerError> {
        let (listener, address) = listen(options.bind)?;
        Ok(Self { listener, address, place, options })
    }
}

impl Gathering for RpcTcpGathering {
    fn addresses(&self) -> Vec<Vec<u8>> {
        self.place.same_address(&write_address(self.address))
    }

    fn meet(self: Box<Self>, addresses: &[Vec<u8>]) -> Result<Box<dyn Attendant>, LayerError> {
        let Self { listener, place, options, .. } = *self;
        let largest = options.size_bytes;
        let server = TcpServer::new(listener, place.procs - 1, largest, widen);
        let connect = |server: &[u8]| {
            let stream = connect_and_send(parse_address(server)?, &[])?;
            widen(&stream)?;
            Ok(TcpChannel::new(stream, largest))
        };
        member(connect, addresses, server, place, &options)
    }
}

/// Connects to the servers of all peers.
fn member<C: Channel + 'static, S: Responder + 'static>(
    connect: impl Fn(&[u8]) -> Result<C, LayerError>,
    addresses: &[Vec<u8>],
    server: S,
    place: Place,
    options: &LayerOptions,
) -> Result<Box<dyn Attendant>, LayerError> {
    let LayerOptions { size_bytes, wait, .. } = *options;
    let mut clients: Vec<Option<Client<C>>> = (0..place.procs).map(|_| None).collect();
    for peer in place.peers() {
        clients[peer] = Some(Client::new(connect(&addresses[peer])?, wait, size_bytes)?);
    }
    let window = clients.iter().flatten().map(Client::window).min().unwrap_or(1);
    let links = RpcLinks { clients, server, attended: Vec::new(), next: 0 };
    Ok(Box::new(RealMember::new(links, wait, place.procs, window)))
}

struct RpcLinks<C, S> {
    /// By rank; `None` for the own rank.
    clients: Vec<Option<Client<C>>>,
    server: S,
    /// The peers whose replies are taken.
    attended: Vec<usize>,
    /// The index in `attended` of the peer whose replies are taken next.
    next: usize,
}

impl<C: Channel, S: Responder> Links for RpcLinks<C, S> {
    fn attend(&mut self, peers: &[usize]) {
        (self.attended, self.next) = (peers.to_vec(), 0);
    }

    #[inline(always)]
    fn request(&mut self, peer: usize) -> Result<(), LayerError> {
        let Some(client) = &mut self.clients[peer] else { return Err(no_peer_of_itself()) };
        client.send()
    }

    #[inline(always)]
    fn take(&mut self) -> Result<Option<usize>, LayerError> {
        for _ in 0..self.attended.len() {
            let peer = self.attended[self.next];
            self.next = (self.next + 1) % self.attended.len();
            let Some(client) = &mut self.clients[peer] else { return Err(no_peer_of_itself()) };
            if client.take()? {
                return Ok(Some(peer));
            }
        }
        Ok(None)
    }

    #[inline(always)]
    fn answer(&mut self) -> Result<bool, LayerError> {
        self.server.answer()
    }

    fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        let attended = self.attended.iter().filter_map(|&peer| self.clients[peer].as_ref());
        let sockets: Vec<_> = attended.map(Client::socket).collect();
        block_on_any(&sockets, timeout)
    }

    fn block_on_requests(&mut self, timeout: Duration) -> Result<(), LayerError> {
        self.server.block(timeout)
    }
}
