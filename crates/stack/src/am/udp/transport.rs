//! UDP as a transport of an endpoint.

use super::UdpPeers;
use super::transfers::Get;
use crate::am::bulk::{Destination, Memories, Shared, Target};
use crate::am::call::Call;
use crate::am::error::{ConnectError, Loss, OpenError, PeerLost, RequestError};
use crate::am::handlers::Offer;
use crate::am::peer_id::PeerId;
use crate::am::transport::{Lent, Transport};
use crate::statistics::{PeerStatistics, Strays};
use netdyno_host::datagram::DatagramWire;
use netdyno_protocol::frame::memory_key::MemoryKey;
use netdyno_protocol::frame::udp_port::UdpPortAddress;
use netdyno_protocol::reliability::Full;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

impl<S> Transport<S> for UdpPeers {
    fn open_port(&mut self) -> Result<Vec<u8>, OpenError> {
        Ok(self.new_port()?.encode().to_vec())
    }

    fn description(&self) -> Option<String> {
        self.driver.socket.description()
    }

    fn connect(&mut self, peer: PeerId, ours: &[u8], theirs: &[u8]) -> Result<(), ConnectError> {
        let parse = |address| UdpPortAddress::parse(address).map_err(ConnectError::address(self.wire));
        self.add_peer(peer, parse(ours)?, parse(theirs)?)
    }

    fn disconnect(&mut self, peer: PeerId) {
        if self.peer(peer).check_connected().is_err() {
            return;
        }
        self.send_waiting();
        self.peers[peer.place()].lose(Loss::Closed);
        let now_ns = self.driver.clock.now_ns();
        self.say_goodbye(peer.place(), now_ns);
    }

    fn check_connected(&self, peer: PeerId) -> Result<(), PeerLost> {
        self.peer(peer).check_connected()
    }

    fn in_flight(&self, peer: PeerId) -> u32 {
        self.peer(peer).outbox.connection.in_flight()
    }

    fn progress(&self) -> u64 {
        self.peers.iter().fold(0, |sum: u64, peer| sum.wrapping_add(peer.outbox.connection.progress()))
    }

    fn medium_bytes(&self, peer: PeerId) -> usize {
        self.peer(peer).outbox.medium_bytes
    }

    fn statistics(&self, peer: PeerId) -> Option<PeerStatistics> {
        Some(PeerStatistics::of(&self.peer(peer).outbox.connection))
    }

    fn strays(&self) -> Strays {
        self.driver.strays()
    }

    fn try_send(&mut self, id: PeerId, call: &Call, payload: &[u8]) -> Result<(), RequestError> {
        let peer = &mut self.peers[id.place()];
        peer.check_connected()?;
        if peer.is_dialled() {
            return self.try_send_dialled(id, call, payload);
        }
        let now_ns = self.driver.clock.now_ns();
        let sent = peer.outbox.connection.request(call.handler, call.words(), payload, now_ns);
        sent.map_err(|Full| RequestError::Full)?;
        self.depart_or_wait(id.place(), now_ns);
        Ok(())
    }

    fn set_corked(&mut self, is_corked: bool) {
        self.corking.is_on = is_corked;
    }

    fn flush(&mut self) {
        self.send_waiting();
    }

    fn poll(&mut self, offer: &Offer<S>, state: &mut S) -> Result<usize, PeerLost> {
        UdpPeers::poll(self, offer, state)
    }

    fn tend(&mut self, offer: &Offer<S>) {
        UdpPeers::tend(self, &offer.memories);
    }

    fn until_due(&mut self) -> Duration {
        // The program may sleep now, and requests wait for its next poll at the latest.
        self.send_waiting();
        let left = self.driver.until_due();
        self.until_release().map_or(left, |until| left.min(until))
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.driver.socket.as_fd()
    }

    fn try_attach(&mut self, id: PeerId, key: &MemoryKey) -> Result<u32, RequestError> {
        let now_ns = self.driver.clock.now_ns();
        let peer = &mut self.peers[id.place()];
        peer.check_connected()?;
        peer.depart(0, 0, now_ns)?;
        let number =
            peer.outbox.connection.attach(&key.encode(), now_ns).map_err(|Full| RequestError::Full)?;
        peer.transfers.gets.push_back(Get { number, to: None });
        Ok(number)
    }

    fn attached(&self, peer: PeerId) -> Option<(u32, bool)> {
        self.peer(peer).transfers.attached
    }

    fn try_store(&mut self, target: Target, len: usize, call: &Call) -> Result<u32, RequestError> {
        let (now_ns, Target { remote, offset }) = (self.driver.clock.now_ns(), target);
        let peer = &mut self.peers[remote.peer.place()];
        peer.check_connected()?;
        let range = [remote.memory, offset as u64, len as u64];
        peer.depart(len, 0, now_ns)?;
        let store = peer.outbox.connection.store(call.handler, call.words(), range, now_ns);
        store.map_err(|Full| RequestError::Full)
    }

    fn needs_source(&self, peer: PeerId, number: u32) -> bool {
        self.peer(peer).outbox.connection.needs_source(number)
    }

    fn keep(&mut self, peer: PeerId, number: u32, bytes: Shared) {
        self.peers[peer.place()].transfers.sources.push_back((number, bytes));
    }

    fn try_get(&mut self, target: Target, to: &Destination, call: &Call) -> Result<(), RequestError> {
        let (now_ns, Target { remote, offset }) = (self.driver.clock.now_ns(), target);
        let peer = &mut self.peers[remote.peer.place()];
        peer.check_connected()?;
        peer.depart(0, to.len, now_ns)?;
        let range = [remote.memory, offset as u64, to.len as u64];
        let number = peer.outbox.connection.get(range, now_ns).map_err(|Full| RequestError::Full)?;
        peer.transfers.gets.push_back(Get { number, to: Some((to.clone(), *call)) });
        Ok(())
    }

    fn push(&mut self, peer: PeerId, memories: &Memories, lent: Lent<'_>) {
        let now_ns = self.driver.clock.now_ns();
        self.transmit_all(peer.place(), now_ns, memories, lent);
    }
}
