//! Peers over UDP on dialled links. Messages are stamped as they are sent, acknowledged as they arrive,
//! and held until they are due.

use super::UdpPeers;
use super::outbox::{Departing, UdpOutbox};
use super::peer::{Arriving, UdpPeer};
use crate::am::bulk::Memories;
use crate::am::call::Call;
use crate::am::dial::Interface;
use crate::am::error::{PeerLost, RequestError};
use crate::am::handlers::Offer;
use crate::am::peer_id::PeerId;
use netdyno_clock::ticks;
use netdyno_protocol::dial::link::Seen;
use netdyno_protocol::dial::timing::Lane;
use netdyno_protocol::frame::datagram::{self, Datagram};
use netdyno_protocol::reliability::{Delivery, Full, Released};
use std::sync::Arc;
use std::time::Duration;

impl UdpPeer {
    /// Makes the link to a new peer a dialled link.
    pub(super) fn dial(&mut self, interface: &Arc<Interface>) {
        self.outbox.connection.hold_messages();
        self.outbox.departing = Some(Box::new(Departing::new(interface)));
        let interface = Arc::clone(interface);
        self.arriving = Some(Box::new(Arriving { interface, lane: Lane::default(), until: u64::MAX }));
    }

    /// On a dialled link, stamps the next request as the dials say, if there is room in the window.
    pub(super) fn depart(
        &mut self,
        bytes: usize,
        answer_bytes: usize,
        now_ns: u64,
    ) -> Result<(), RequestError> {
        if !self.is_dialled() {
            return Ok(());
        }
        if !self.outbox.connection.has_room() {
            return Err(RequestError::Full);
        }
        self.outbox.depart_request(bytes, answer_bytes, now_ns);
        Ok(())
    }

    /// Returns whether the link to the peer is dialled.
    #[inline(always)]
    pub(super) fn is_dialled(&self) -> bool {
        self.arriving.is_some()
    }

    /// Takes a datagram of this connection, and holds the messages that become deliverable. Returns
    /// their number.
    #[cold]
    #[inline(never)]
    pub(super) fn take_and_hold(
        &mut self,
        datagram: &Datagram<'_>,
        not_at: Option<u64>,
        now_ns: u64,
        memories: &Memories,
    ) -> Result<usize, PeerLost> {
        let mut held = 0;
        if self.outbox.connection.receive(datagram, now_ns) == Delivery::Now {
            let seen = Seen { not_at, ..Seen::late(ticks::now()) };
            self.hold(datagram, seen, now_ns, memories);
            held += 1;
            while let Some(bytes) = self.outbox.connection.buffered() {
                // The datagram was checked before it was buffered.
                if let Ok(datagram) = datagram::parse(&bytes) {
                    self.hold(&datagram, seen, now_ns, memories);
                    held += 1;
                }
                self.outbox.connection.recycle(bytes);
            }
        }
        self.expect_no_more_of_the_ended();
        self.find_loss().map(|()| held)
    }

    /// Limits the time for which messages of a peer are held that sends no more.
    pub(super) fn expect_no_more_of_the_ended(&mut self) {
        if let Some(arriving) = self.arriving.as_mut().filter(|_| self.outbox.connection.is_ending()) {
            arriving.until = arriving.until.min(arriving.interface.last_release());
        }
    }

    fn hold(&mut self, datagram: &Datagram<'_>, seen: Seen, now_ns: u64, memories: &Memories) {
        let Self { outbox, transfers, arriving, .. } = self;
        let Some(arriving) = arriving else { return };
        let Arriving { interface, lane, .. } = &mut **arriving;
        let mut is_due_ns = 0;
        let due = |departed, bytes| {
            let due = interface.due(lane, departed, bytes, seen);
            is_due_ns = now_ns.saturating_add(interface.ns_until(due));
            due
        };
        outbox.connection.hold(datagram, &mut transfers.reach(memories, None), due);
        // A held message is not silence of the peer, and nothing has to be requested again.
        outbox.connection.expect_answer(is_due_ns);
    }

    /// Returns when the first held message will be released, in ticks.
    fn next_release(&self) -> Option<u64> {
        let arriving = self.arriving.as_ref()?;
        Some(arriving.interface.opens(self.outbox.connection.next_due()?, arriving.until))
    }

    /// Returns whether the time of the first held message has come. The caller must then handle the
    /// message.
    fn may_release(&self, now: u64) -> bool {
        let due = self.outbox.connection.next_due();
        let arriving = self.arriving.as_ref().zip(due);
        arriving.is_some_and(|(arriving, due)| arriving.interface.releases(due, arriving.until, now))
    }

    /// Handles the first held message, whose time has come.
    fn release<S>(&mut self, now_ns: u64, offer: &Offer<S>, state: &mut S) -> Result<usize, PeerLost> {
        let UdpOutbox { connection, departing, .. } = &mut self.outbox;
        let Some(departing) = departing else { return Ok(0) };
        let handled = match connection.release(now_ns, |bytes| departing.reply(bytes)) {
            None => 0,
            Some(Released::Event(event)) => self.handle_event(event, now_ns, offer, state)?,
            Some(Released::Message(bytes)) => {
                let handled = match datagram::parse(&bytes) {
                    Ok(datagram) => self.handle(&datagram, now_ns, offer, state)?,
                    // The datagram was checked before it was held.
                    Err(_) => 0,
                };
                self.outbox.connection.recycle(bytes);
                handled
            }
        };
        self.find_loss().map(|()| handled)
    }
}

impl UdpPeers {
    /// Sends a request as the dials say, if there is room in the window.
    #[cold]
    #[inline(never)]
    pub(super) fn try_send_dialled(
        &mut self,
        id: PeerId,
        call: &Call,
        payload: &[u8],
    ) -> Result<(), RequestError> {
        let now_ns = self.driver.clock.now_ns();
        let outbox = &mut self.peers[id.place()].outbox;
        if !outbox.connection.has_room() {
            return Err(RequestError::Full);
        }
        let began = outbox.depart_request(size_of_val(call.words()) + payload.len(), 0, now_ns);
        // The overhead has taken time.
        let now_ns = self.driver.clock.now_ns();
        let outbox = &mut self.peers[id.place()].outbox;
        let sent = outbox.connection.request(call.handler, call.words(), payload, now_ns);
        sent.map_err(|Full| RequestError::Full)?;
        self.transmit(id.place(), now_ns);
        if let Some(departing) = &mut self.peers[id.place()].outbox.departing {
            departing.request_takes.note(ticks::now().saturating_sub(began));
        }
        Ok(())
    }

    /// Handles the held message that is due first, if its time has come.
    #[cold]
    #[inline(never)]
    pub(super) fn release<S>(&mut self, offer: &Offer<S>, state: &mut S) -> Result<usize, PeerLost> {
        let next =
            self.peers.iter().enumerate().filter_map(|(place, peer)| Some((peer.next_release()?, place)));
        let Some((_, place)) = next.min() else { return Ok(0) };
        if !self.peers[place].may_release(ticks::now()) {
            return Ok(0);
        }
        let result = self.peers[place].release(self.driver.clock.now_ns(), offer, state);
        // The handler may have taken a long time.
        let now_ns = self.driver.clock.now_ns();
        match result {
            Ok(_) => self.transmit_all(place, now_ns, &offer.memories, None),
            Err(_) => self.say_goodbye(place, now_ns),
        }
        if let Some(departing) = &mut self.peers[place].outbox.departing
            && let Some(began) = departing.replied_at.take()
        {
            departing.reply_takes.note(ticks::now().saturating_sub(began));
        }
        result
    }

    /// Returns the time until the next held message is released.
    pub(super) fn until_release(&self) -> Option<Duration> {
        let interface = self.interface.as_ref()?;
        let at = self.peers.iter().filter_map(UdpPeer::next_release).min()?;
        Some(Duration::from_nanos(interface.ns_until(at)))
    }
}
