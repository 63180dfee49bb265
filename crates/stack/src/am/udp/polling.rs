//! A poll of all peers: it finds the connection of each datagram, and sends the answer of that connection.

use super::peer::UdpPeer;
use crate::am::bulk::Memories;
use crate::am::error::PeerLost;
use crate::udp::{Connections, Lookup, Socket, Taken};
use netdyno_host::datagram::DatagramWire;
use netdyno_protocol::frame::datagram::{self, Datagram, Kind};
use netdyno_protocol::reliability::Grants;
use std::net::SocketAddr;

/// The peers during a poll. `take` takes a datagram of a connected peer, and returns the number of messages
/// handled.
pub(super) struct Polling<'a, F> {
    pub(super) peers: &'a mut [UdpPeer],
    pub(super) places: &'a mut Lookup<u64>,
    pub(super) memories: &'a Memories,
    pub(super) grants: &'a mut Grants,
    pub(super) take: F,
}

impl<F> Polling<'_, F> {
    /// Returns the place of the peer whose datagram this is: by connection number and source address.
    #[inline]
    fn find(&mut self, bytes: &[u8], from: SocketAddr) -> Option<usize> {
        let place = self.places.find(datagram::connection_of(bytes)?)?;
        let address = self.peers[place].address;
        (address.port() == from.port() && address.ip() == from.ip()).then_some(place)
    }

    /// Takes only the acknowledgement of a datagram.
    pub(super) fn acknowledge(&mut self, bytes: &[u8], from: SocketAddr, now_ns: u64) -> Taken {
        let Some(place) = self.find(bytes, from) else { return Taken::Foreign };
        let Ok(datagram) = datagram::parse(bytes) else { return Taken::Malformed };
        self.peers[place].outbox.connection.acknowledge(&datagram.header, now_ns);
        Taken::By(place, 0)
    }
}

impl<F> Connections for Polling<'_, F>
where
    F: FnMut(&mut UdpPeer, &Datagram<'_>, u64) -> Result<usize, PeerLost>,
{
    type Lost = PeerLost;

    #[inline]
    fn on_datagram(
        &mut self,
        bytes: &[u8],
        from: SocketAddr,
        socket: &mut Socket,
        now_ns: u64,
    ) -> Result<Taken, PeerLost> {
        let Some(place) = self.find(bytes, from) else { return Ok(Taken::Foreign) };
        let Ok(datagram) = datagram::parse(bytes) else { return Ok(Taken::Malformed) };
        let peer = &mut self.peers[place];
        if peer.check_connected().is_err() {
            // The peer does not know yet that its connection has ended.
            if datagram.header.kind != Kind::Goodbye {
                socket.send(peer.address, peer.outbox.connection.goodbye(), now_ns);
            }
            return Ok(Taken::By(place, 0));
        }
        let handled = (self.take)(peer, &datagram, now_ns);
        // The answers come after all datagrams of the poll, so that their grants count all bytes that arrive.
        self.grants.note(&mut peer.outbox.connection);
        handled.map(|count| Taken::By(place, count)).inspect_err(|_| peer.say_goodbye(socket, now_ns))
    }

    #[inline]
    fn pump(&mut self, place: usize, socket: &mut Socket, now_ns: u64) -> u64 {
        let peer = &mut self.peers[place];
        peer.share(self.grants);
        peer.transmit_all(socket, self.memories, None, now_ns)
    }

    fn on_time(&mut self, socket: &mut Socket, now_ns: u64) -> Result<u64, PeerLost> {
        let mut next_ns = u64::MAX;
        for peer in &mut *self.peers {
            let result = peer.on_time(now_ns);
            peer.share(self.grants);
            result.inspect_err(|_| peer.say_goodbye(socket, now_ns))?;
            next_ns = next_ns.min(peer.transmit_all(socket, self.memories, None, now_ns));
        }
        Ok(next_ns)
    }

    fn is_owed(&self) -> bool {
        self.peers.iter().any(UdpPeer::is_owed)
    }
}
