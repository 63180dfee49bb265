//! Peers over UDP with dials turned: messages are stamped as they are sent, acknowledged as they
//! arrive, and held until they are due.

use super::UdpPeers;
use super::peer::{Outbox, UdpPeer};
use crate::am::bulk::Memories;
use crate::am::config::PeerId;
use crate::am::dial::{Interface, answered, take_send_overhead};
use crate::am::error::{PeerLost, RequestError};
use crate::am::handlers::Offer;
use netdyno_clock::ticks;
use netdyno_protocol::dial::link::{Seen, Usual};
use netdyno_protocol::dial::timing::{Departed, Lane};
use netdyno_protocol::frame::datagram::{self, Datagram};
use netdyno_protocol::reliability::{Delivery, Full, Released};
use std::sync::Arc;
use std::time::Duration;

/// How messages to a dialled peer depart.
pub(super) struct Departing {
    interface: Arc<Interface>,
    /// What a send takes from a reading of the clock until the datagram has left, for requests and
    /// replies: until then it is overhead, not flight.
    request_takes: Usual,
    reply_takes: Usual,
    /// When a reply was written that has yet to leave.
    replied_at: Option<u64>,
}

impl Departing {
    fn new(interface: &Arc<Interface>) -> Self {
        Self {
            interface: Arc::clone(interface),
            request_takes: Usual::UNKNOWN,
            reply_takes: Usual::UNKNOWN,
            replied_at: None,
        }
    }

    /// Takes the send overhead of the processor. Returns how a request of `bytes` departs then.
    fn request(&mut self, bytes: usize, answer_bytes: usize) -> Sending {
        let terms = self.interface.terms();
        let began = take_send_overhead(&terms);
        let sent = began.saturating_add(self.request_takes.get().unwrap_or(0));
        let departed = self.interface.depart(sent, bytes, &terms);
        Sending { began, departed, answered: answered(departed.at, answer_bytes, &terms) }
    }

    /// The same for what answers a request.
    fn reply(&mut self, bytes: usize) -> Departed {
        let terms = self.interface.terms();
        let began = take_send_overhead(&terms);
        self.replied_at = Some(began);
        let sent = began.saturating_add(self.reply_takes.get().unwrap_or(0));
        self.interface.depart(sent, bytes, &terms)
    }
}

/// A request that is sent.
struct Sending {
    /// When the overhead was over.
    began: u64,
    departed: Departed,
    /// When it can be answered.
    answered: u64,
}

/// What arrives from a dialled peer.
pub(super) struct Arriving {
    interface: Arc<Interface>,
    lane: Lane,
    /// Until when messages are held of a peer that sends no more.
    until: u64,
}

impl Outbox {
    /// Has the next reply, of `bytes`, depart as the dials say.
    #[cold]
    pub(super) fn depart(&mut self, bytes: usize) {
        if let Some(departing) = &mut self.departing {
            let departed = departing.reply(bytes);
            self.connection.depart(departed);
        }
    }

    /// Has the next request, of `bytes`, depart as the dials say; its answer has `answer_bytes`
    /// besides. Returns when its send began.
    #[cold]
    pub(super) fn depart_request(&mut self, bytes: usize, answer_bytes: usize, now_ns: u64) -> u64 {
        let Some(departing) = &mut self.departing else { return 0 };
        let Sending { began, departed, answered } = departing.request(bytes, answer_bytes);
        self.connection.depart(departed);
        self.connection.expect_answer(now_ns.saturating_add(departing.interface.ns_until(answered)));
        began
    }
}

impl UdpPeer {
    /// Turns the dials of a peer that is new.
    pub(super) fn dial(&mut self, interface: &Arc<Interface>) {
        self.outbox.connection.hold_messages();
        self.outbox.departing = Some(Box::new(Departing::new(interface)));
        let interface = Arc::clone(interface);
        self.arriving = Some(Box::new(Arriving { interface, lane: Lane::default(), until: u64::MAX }));
    }

    /// Where dials are turned, has the next request depart as they say, if there is room for it.
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

    /// Whether dials are turned.
    #[inline(always)]
    pub(super) fn is_dialled(&self) -> bool {
        self.arriving.is_some()
    }

    /// Takes a datagram that is for this connection, and holds what it makes deliverable. Returns how
    /// many messages that are.
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
                // It was sound when it was kept.
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

    /// What was sent by a peer that sends no more is not waited for without end.
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
        // What is here is no silence, and nothing to ask for.
        outbox.connection.expect_answer(is_due_ns);
    }

    /// When the first message that is held will be released, in ticks.
    fn next_release(&self) -> Option<u64> {
        let arriving = self.arriving.as_ref()?;
        Some(arriving.interface.opens(self.outbox.connection.next_due()?, arriving.until))
    }

    /// Whether the time of the first message that is held has come. It is then to be handled.
    fn may_release(&self, now: u64) -> bool {
        let due = self.outbox.connection.next_due();
        let arriving = self.arriving.as_ref().zip(due);
        arriving.is_some_and(|(arriving, due)| arriving.interface.releases(due, arriving.until, now))
    }

    /// Handles the first message that is held, whose time has come.
    fn release<S>(&mut self, now_ns: u64, offer: &Offer<S>, state: &mut S) -> Result<usize, PeerLost> {
        let Outbox { connection, departing, .. } = &mut self.outbox;
        let Some(departing) = departing else { return Ok(0) };
        let handled = match connection.release(now_ns, |bytes| departing.reply(bytes)) {
            None => 0,
            Some(Released::Event(event)) => self.handle_event(event, now_ns, offer, state)?,
            Some(Released::Message(bytes)) => {
                let handled = match datagram::parse(&bytes) {
                    Ok(datagram) => self.handle(&datagram, now_ns, offer, state)?,
                    // It was sound when it was held.
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
    /// Sends a request as the dials say, if there is room.
    #[cold]
    #[inline(never)]
    pub(super) fn try_send_dialled(
        &mut self,
        id: PeerId,
        handler: u8,
        words: &[u64],
        payload: &[u8],
    ) -> Result<(), RequestError> {
        let now_ns = self.clock.now_ns();
        let outbox = &mut self.peers[id.place()].outbox;
        if !outbox.connection.has_room() {
            return Err(RequestError::Full);
        }
        let began = outbox.depart_request(size_of_val(words) + payload.len(), 0, now_ns);
        // It is later by the overhead.
        let now_ns = self.clock.now_ns();
        let outbox = &mut self.peers[id.place()].outbox;
        outbox.connection.request(handler, words, payload, now_ns).map_err(|Full| RequestError::Full)?;
        self.transmit(id.place(), now_ns);
        if let Some(departing) = &mut self.peers[id.place()].outbox.departing {
            departing.request_takes.note(ticks::now().saturating_sub(began));
        }
        Ok(())
    }

    /// Handles the message that is due first, if its time has come.
    #[cold]
    #[inline(never)]
    pub(super) fn release<S>(&mut self, offer: &Offer<S>, state: &mut S) -> Result<usize, PeerLost> {
        let next =
            self.peers.iter().enumerate().filter_map(|(place, peer)| Some((peer.next_release()?, place)));
        let Some((_, place)) = next.min() else { return Ok(0) };
        if !self.peers[place].may_release(ticks::now()) {
            return Ok(0);
        }
        let result = self.peers[place].release(self.clock.now_ns(), offer, state);
        // The handler may have taken its time.
        let now_ns = self.clock.now_ns();
        self.answer(place, result.is_ok(), now_ns, &offer.memories);
        if let Some(departing) = &mut self.peers[place].outbox.departing
            && let Some(began) = departing.replied_at.take()
        {
            departing.reply_takes.note(ticks::now().saturating_sub(began));
        }
        result
    }

    /// How long until something that is held is released.
    pub(super) fn until_release(&self) -> Option<Duration> {
        let interface = self.interface.as_ref()?;
        let at = self.peers.iter().filter_map(UdpPeer::next_release).min()?;
        Some(Duration::from_nanos(interface.ns_until(at)))
    }
}
