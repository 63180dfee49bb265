//! A group of processes: each is a server, and a client of every other process.

use super::calls::{Calls, Connection};
use super::client::WINDOW;
use super::service::GrpcServer;
use crate::group::links::{Links, RealMember};
use crate::group::{Attendant, Gathering, Place, no_peer_of_itself};
use crate::options::LayerOptions;
use crate::requests::Responder;
use crate::socket::write_address;
use netdyno_measure::layer::LayerError;
use std::time::Duration;

/// One process of a group, not yet connected.
pub(crate) struct GrpcGathering {
    server: GrpcServer,
    place: Place,
    options: LayerOptions,
}

impl GrpcGathering {
    /// Opens the server.
    pub(crate) fn open(place: Place, options: LayerOptions) -> Result<Self, LayerError> {
        Ok(Self { server: GrpcServer::open(options.bind, options.size_bytes)?, place, options })
    }
}

impl Gathering for GrpcGathering {
    fn addresses(&self) -> Vec<Vec<u8>> {
        self.place.same_address(&write_address(self.server.address()))
    }

    fn meet(self: Box<Self>, addresses: &[Vec<u8>]) -> Result<Box<dyn Attendant>, LayerError> {
        let Self { server, place, options } = *self;
        let mut connections: Vec<Option<Connection>> = (0..place.procs).map(|_| None).collect();
        for peer in place.peers() {
            connections[peer] = Some(Connection::open(server.engine(), &addresses[peer], peer)?);
        }
        let links = GrpcLinks { server, connections, calls: Calls::new(options.size_bytes) };
        Ok(Box::new(RealMember::new(links, options.wait, place.procs, WINDOW)))
    }
}

struct GrpcLinks {
    server: GrpcServer,
    /// By rank; `None` for the own rank.
    connections: Vec<Option<Connection>>,
    calls: Calls,
}

impl Links for GrpcLinks {
    /// The replies of all peers come out of one queue, so none has to be selected.
    fn attend(&mut self, _: &[usize]) {}

    #[inline(always)]
    fn request(&mut self, peer: usize) -> Result<(), LayerError> {
        let Some(connection) = &self.connections[peer] else { return Err(no_peer_of_itself()) };
        self.calls.make(self.server.engine(), connection);
        Ok(())
    }

    #[inline(always)]
    fn take(&mut self) -> Result<Option<usize>, LayerError> {
        self.calls.take(self.server.engine())
    }

    #[inline(always)]
    fn answer(&mut self) -> Result<bool, LayerError> {
        self.server.answer()
    }

    fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        self.calls.block(self.server.engine(), timeout);
        Ok(())
    }

    fn block_on_requests(&mut self, timeout: Duration) -> Result<(), LayerError> {
        self.server.block(timeout)
    }
}
