//! One peer over UDP: its connection, and how its messages are handled.

use super::outbox::UdpOutbox;
use super::transfers::Transfers;
use crate::am::bulk::Memories;
use crate::am::dial::Interface;
use crate::am::error::{Loss, PeerLost};
use crate::am::handlers::{Content, Offer, Outbox, Reply, ReplySlot, Request};
use crate::am::peer_id::PeerId;
use crate::am::transport::Lent;
use crate::udp::{self, Socket};
use netdyno_host::datagram::DatagramWire;
use netdyno_protocol::dial::timing::Lane;
use netdyno_protocol::frame::datagram::{self, Datagram, Header, Kind};
use netdyno_protocol::reliability::{self, Connection, Delivery, Grants};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// The receiving side of a dialled peer.
pub(super) struct Arriving {
    pub(super) interface: Arc<Interface>,
    pub(super) lane: Lane,
    /// The time until which messages are held at the latest. Set once the peer has ended.
    pub(super) until: u64,
}

pub(super) struct UdpPeer {
    pub(super) id: PeerId,
    pub(super) address: SocketAddr,
    pub(super) outbox: UdpOutbox,
    pub(super) transfers: Transfers,
    /// Present if dials are set.
    pub(super) arriving: Option<Box<Arriving>>,
    /// Longest payload that the peer may send, in bytes.
    our_medium_bytes: usize,
    peer_timeout: Duration,
    lost: Option<PeerLost>,
}

impl UdpPeer {
    pub(super) fn new(
        id: PeerId,
        address: SocketAddr,
        connection: Connection,
        [medium_bytes, our_medium_bytes]: [usize; 2],
        peer_timeout: Duration,
    ) -> Self {
        let outbox = UdpOutbox { connection, medium_bytes, now_ns: 0, departing: None };
        let transfers = Transfers::default();
        Self { id, address, outbox, transfers, arriving: None, our_medium_bytes, peer_timeout, lost: None }
    }

    #[inline(always)]
    pub(super) fn check_connected(&self) -> Result<(), PeerLost> {
        match self.lost {
            None => Ok(()),
            Some(lost) => Err(lost),
        }
    }

    /// Drops the answers to the peer's gets.
    pub(super) fn forget_answers(&mut self) {
        self.outbox.connection.forget_answers();
    }

    /// Returns whether a message to the peer is not acknowledged yet.
    pub(super) fn is_owed(&self) -> bool {
        self.lost.is_none() && self.outbox.connection.has_unacknowledged()
    }

    /// Shares the grants of the endpoint with this peer. Called before datagrams leave, because bytes may have
    /// begun or ceased to arrive since the last ones, and after the loss of the peer.
    #[inline]
    pub(super) fn share(&mut self, grants: &mut Grants) {
        grants.note(&mut self.outbox.connection);
        grants.grant(&mut self.outbox.connection);
    }

    /// Sends all datagrams that the connection has ready. Returns the time of its next timer.
    #[inline]
    pub(super) fn transmit(&mut self, socket: &mut Socket, now_ns: u64) -> u64 {
        udp::transmit(socket, self.address, &mut self.outbox.connection, now_ns);
        self.flush(socket)
    }

    /// Sends all datagrams that the connection has ready, and as much of its transfers as there is room
    /// for. Returns the time of its next timer.
    #[inline]
    pub(super) fn transmit_all(
        &mut self,
        socket: &mut Socket,
        memories: &Memories,
        lent: Lent<'_>,
        now_ns: u64,
    ) -> u64 {
        loop {
            udp::transmit(socket, self.address, &mut self.outbox.connection, now_ns);
            if !self.feed(memories, lent, now_ns) {
                return self.flush(socket);
            }
        }
    }

    #[inline]
    fn flush(&self, socket: &mut Socket) -> u64 {
        socket.flush();
        self.outbox.connection.deadline().unwrap_or(u64::MAX)
    }

    pub(super) fn say_goodbye(&mut self, socket: &mut Socket, now_ns: u64) {
        udp::send_goodbyes(socket, self.address, self.outbox.connection.goodbye(), now_ns);
    }

    /// Takes the acknowledgement, or the goodbye, that a datagram carries, but no message: this endpoint closes.
    pub(super) fn take_acknowledgement(&mut self, header: &Header, now_ns: u64) {
        self.outbox.connection.receive_at_end(header, now_ns);
        if header.kind == Kind::Goodbye {
            self.lose(Loss::Closed);
        }
    }

    /// Takes a datagram of this connection, and handles the messages that become deliverable.
    #[inline]
    pub(super) fn take<S>(
        &mut self,
        datagram: &Datagram<'_>,
        now_ns: u64,
        offer: &Offer<S>,
        state: &mut S,
    ) -> Result<usize, PeerLost> {
        if self.outbox.connection.receive(datagram, now_ns) == Delivery::Nothing {
            return self.find_loss().map(|()| 0);
        }
        let mut handled = self.handle(datagram, now_ns, offer, state)?;
        while let Some(bytes) = self.outbox.connection.buffered() {
            // The datagram was checked before it was buffered.
            if let Ok(datagram) = datagram::parse(&bytes) {
                handled += self.handle(&datagram, now_ns, offer, state)?;
            }
            self.outbox.connection.recycle(bytes);
        }
        self.find_loss()?;
        Ok(handled)
    }

    #[inline]
    pub(super) fn handle<S>(
        &mut self,
        datagram: &Datagram<'_>,
        now_ns: u64,
        offer: &Offer<S>,
        state: &mut S,
    ) -> Result<usize, PeerLost> {
        let Datagram { header, words, payload, .. } = *datagram;
        if header.kind.is_of_transfer() {
            return self.take_transfer(datagram, now_ns, offer, state);
        }
        if payload.len() > self.our_medium_bytes {
            return Err(self.lose(Loss::Misbehaved));
        }
        let content = Content { peer: self.id, words, payload };
        match header.kind {
            Kind::Reply => {
                let Some(handler) = offer.handlers.reply(header.handler) else {
                    return Err(self.lose(Loss::Misbehaved));
                };
                handler(state, Reply { content });
            }
            _ => {
                let Some(handler) = offer.handlers.request(header.handler) else {
                    return Err(self.lose(Loss::Misbehaved));
                };
                self.outbox.now_ns = now_ns;
                handler(state, Request { content, slot: ReplySlot(Outbox::Other(&mut self.outbox)) });
            }
        }
        Ok(1)
    }

    /// Runs the timers of the connection that are due.
    pub(super) fn on_time(&mut self, now_ns: u64) -> Result<(), PeerLost> {
        if self.lost.is_some() || self.outbox.connection.deadline().is_none_or(|at_ns| at_ns > now_ns) {
            return Ok(());
        }
        self.outbox.connection.on_time(now_ns);
        self.expect_no_more_of_the_ended();
        self.find_loss()
    }

    /// Reports the end of the connection, once.
    #[inline]
    pub(super) fn find_loss(&mut self) -> Result<(), PeerLost> {
        match self.outbox.connection.lost() {
            None => Ok(()),
            Some(_) if self.lost.is_some() => Ok(()),
            Some(reliability::Loss::Silent) => Err(self.lose(Loss::Silent(self.peer_timeout))),
            Some(reliability::Loss::Closed) => Err(self.lose(Loss::Closed)),
            Some(reliability::Loss::Misbehaved) => Err(self.lose(Loss::Misbehaved)),
        }
    }

    /// Ends the connection and discards its transfers.
    #[cold]
    pub(super) fn lose(&mut self, loss: Loss) -> PeerLost {
        let (unresolved, not_sent) = (self.outbox.connection.in_flight(), self.outbox.connection.not_sent());
        let lost = PeerLost { peer: self.id, loss, unresolved, not_sent };
        self.lost = Some(lost);
        self.outbox.connection.end();
        self.transfers = Transfers::default();
        lost
    }
}
