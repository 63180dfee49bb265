//! The connection of a reliable VI. Messages are sent as requests, stores and gets, and the rules decide
//! about those that arrive. [`Connection`] delivers them once and in order.
//!
//! A message that fits into a datagram is a request. A longer message is announced by a request, which a
//! store of its bytes follows. Nothing else is put on the connection until all bytes of the store are
//! copied from the program's memory. So a completed message never waits behind bytes that may yet be
//! missing.
//!
//! At reliable reception every message is answered; otherwise only a refused message is. The connection
//! itself reports that other messages were taken.

use super::Means;
use super::memory::{gather, place};
use super::works::{Announced, Reach, Works};
use crate::statistics::PeerStatistics;
use crate::udp::{self, LINGER_NS};
use netdyno_host::datagram::DatagramWire;
use netdyno_protocol::frame::datagram::{self, Datagram, LONGEST_PAYLOAD};
use netdyno_protocol::frame::vi_message::{Head, Kind, Refusal, Verdict};
use netdyno_protocol::reliability::{Config, Connection, Delivery, Event, Loss};
use netdyno_protocol::vi::{Arrival, Level, Link, Nic, Outgoing, Parting, Progress, ViHandle};
use std::net::SocketAddr;

/// Request code: a message with its bytes.
const WHOLE: u8 = 0;
/// Request code: a message whose bytes follow in a store.
const ANNOUNCED: u8 = 1;
/// Request code: a probe, which the connection answers.
const ALIVE: u8 = 2;

/// Maximum number of unanswered requests.
const WINDOW: u32 = 256;

/// The peer broke the protocol.
struct Astray;

/// The event that an ended connection waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// The arrival of all messages.
    Arrival,
    /// The peer's goodbye, after it has learned the reason.
    Goodbye,
    /// No event.
    Nothing,
}

/// One reliable connection.
pub struct Reliable {
    connection: Connection,
    to: SocketAddr,
    /// `None` once the VI is no longer connected.
    vi: Option<ViHandle>,
    works: Works,
    /// Whether every message is answered.
    answers_all: bool,
    /// When the peer is probed if nothing arrives from it: a quarter of the timeout after its last
    /// datagram. The connection waits the rest of the timeout for the answer.
    ask_ns: u64,
    ask_after_ns: u64,
    /// Set once the connection is ended: the awaited event, and the latest time for it.
    ending: Option<(End, u64)>,
    /// Whether the peer knows of the end.
    is_left: bool,
}

impl Reliable {
    pub fn new(vi: ViHandle, link: &Link, to: SocketAddr, timeout_ns: u64, now_ns: u64) -> Self {
        let ask_after_ns = timeout_ns / 4;
        let peer_timeout_ns = timeout_ns - ask_after_ns;
        let config = Config { window: WINDOW, peer_timeout_ns, ..Config::default() };
        Self {
            connection: Connection::new(config, link.local, link.remote, now_ns),
            to,
            vi: Some(vi),
            works: Works::default(),
            answers_all: link.offer.level == Level::Reception,
            ask_ns: now_ns + ask_after_ns,
            ask_after_ns,
            ending: None,
            is_left: false,
        }
    }

    /// Returns the statistics of the connection.
    pub fn statistics(&self) -> PeerStatistics {
        PeerStatistics::of(&self.connection)
    }

    /// Returns the address of the peer.
    pub fn to(&self) -> SocketAddr {
        self.to
    }

    /// Sends everything that can be sent now.
    pub fn pump(&mut self, means: &mut Means<'_>) {
        loop {
            udp::transmit(means.socket, self.to, &mut self.connection, means.now_ns);
            if !self.feed(means) && !self.put_all(means) {
                break;
            }
        }
        means.socket.flush();
    }

    /// Queues more bytes of transfers on the connection, if they can be sent now.
    #[inline]
    fn feed(&mut self, means: &mut Means<'_>) -> bool {
        let now_ns = means.now_ns;
        let mut reach = Reach::new(self.vi, &mut self.works, means);
        let is_fed = self.connection.feed(&mut reach, now_ns);
        if reach.is_astray {
            self.expel(means.nic);
        }
        if let (Some((store, work)), Some(vi)) = (self.works.store, self.vi)
            && self.connection.lost().is_none()
            && !self.connection.needs_source(store)
        {
            self.works.store = None;
            means.nic.progress(vi, work, Progress::Accepted);
        }
        is_fed
    }

    /// Queues the VI's messages on the connection, as far as there is room, so that they leave in one batch. Returns
    /// whether there was any.
    #[inline]
    fn put_all(&mut self, means: &mut Means<'_>) -> bool {
        let mut is_any = false;
        while self.put_next(means) {
            is_any = true;
        }
        is_any
    }

    /// Queues the VI's next message on the connection, if there is room for two requests.
    #[inline]
    fn put_next(&mut self, means: &mut Means<'_>) -> bool {
        let Some(vi) = self.vi else { return false };
        let has_room = self.connection.in_flight() + 2 <= WINDOW && self.connection.has_room();
        if !has_room || self.works.store.is_some() {
            return false;
        }
        let Some(outgoing) = means.nic.next(vi) else { return false };
        self.works.last_sent = outgoing.number;
        let Outgoing { head, .. } = outgoing;
        let is_put = match head.kind {
            Kind::Read { .. } => self.put_read(&outgoing, means.now_ns),
            _ if head.len as usize <= LONGEST_PAYLOAD => self.put_whole(vi, &outgoing, means),
            _ => self.put_announced(&outgoing, means.now_ns),
        };
        if is_put.is_none() {
            // Only a peer that completes requests which it does not acknowledge leaves no room.
            self.expel(means.nic);
        }
        true
    }

    fn put_read(&mut self, outgoing: &Outgoing, now_ns: u64) -> Option<()> {
        let Kind::Read { remote } = outgoing.head.kind else { return None };
        let len = u64::from(outgoing.head.len);
        // A range must not wrap around. Bytes behind the last address are refused, like those before it,
        // because nothing is registered there.
        let range = [remote.handle.into(), remote.address.min(u64::MAX - len), len];
        let get = self.connection.get(range, now_ns).ok()?;
        self.works.gets.push_back((get, outgoing.number));
        Some(())
    }

    #[inline]
    fn put_whole(&mut self, vi: ViHandle, outgoing: &Outgoing, means: &mut Means<'_>) -> Option<()> {
        let Outgoing { number, head } = *outgoing;
        let (segments, bytes) = means.scratch.cleared();
        if means.nic.bytes_of(vi, number, 0, head.len, segments).is_err() {
            // The rules have reported this on the descriptor.
            return Some(());
        }
        // SAFETY: the rules have just found the segments in registered memory, which stays until it is
        // deregistered.
        unsafe { gather(segments, bytes) };
        self.connection.request(WHOLE, &head.pack(), bytes, means.now_ns).ok()?;
        means.nic.progress(vi, number, Progress::Accepted);
        Some(())
    }

    fn put_announced(&mut self, outgoing: &Outgoing, now_ns: u64) -> Option<()> {
        let Outgoing { number, head } = *outgoing;
        self.connection.request(ANNOUNCED, &head.pack(), &[], now_ns).ok()?;
        let store = self.connection.store(0, &head.pack(), [0, 0, head.len.into()], now_ns).ok()?;
        self.works.store = Some((store, number));
        Some(())
    }

    /// Takes a datagram. Returns whether it is valid.
    #[inline]
    pub fn take(&mut self, bytes: &[u8], means: &mut Means<'_>) -> bool {
        let Ok(datagram) = datagram::parse(bytes) else { return false };
        self.ask_ns = means.now_ns + self.ask_after_ns;
        self.is_left |= datagram.header.kind == datagram::Kind::Goodbye;
        if matches!(self.ending, Some((End::Arrival, _))) {
            // Messages are no longer taken, only acknowledgements.
            self.connection.receive_at_end(&datagram.header, means.now_ns);
            return true;
        }
        if self.connection.receive(&datagram, means.now_ns) == Delivery::Now {
            self.handle(&datagram, means);
            while let Some(bytes) = self.connection.buffered() {
                // The datagram was checked before it was buffered.
                if let Ok(datagram) = datagram::parse(&bytes) {
                    self.handle(&datagram, means);
                }
                self.connection.recycle(bytes);
            }
        }
        self.find_loss(means.nic);
        true
    }

    fn handle(&mut self, datagram: &Datagram<'_>, means: &mut Means<'_>) {
        let handled = match (datagram.header.kind, datagram.header.handler) {
            (datagram::Kind::Request, WHOLE) => self.take_whole(datagram, means),
            (datagram::Kind::Request, ANNOUNCED) => self.take_announced(datagram, means),
            (datagram::Kind::Request, ALIVE) => Ok(()),
            (datagram::Kind::Request, _) => Err(Astray),
            (datagram::Kind::Reply, _) => self.take_verdict(datagram, means.nic),
            _ => self.take_transfer(datagram, means),
        };
        if let Err(Astray) = handled {
            self.expel(means.nic);
        }
    }

    /// Ends the connection, because the peer breaks the protocol.
    #[cold]
    fn expel(&mut self, nic: &mut Nic) {
        if let Some(vi) = self.vi {
            nic.lost(vi);
        }
        self.connection.end();
    }

    /// Returns the head of a message. Returns an error while the bytes of an announced message are
    /// missing.
    fn read_head(&self, datagram: &Datagram<'_>) -> Result<Head, Astray> {
        let head = Head::parse(datagram.words).map_err(|_| Astray)?;
        let is_in_turn = self.works.announced == Announced::Nothing || self.works.has_refused();
        // Reads arrive as gets.
        let is_message = !matches!(head.kind, Kind::Read { .. });
        if is_in_turn && is_message { Ok(head) } else { Err(Astray) }
    }

    #[inline]
    fn take_whole(&mut self, datagram: &Datagram<'_>, means: &mut Means<'_>) -> Result<(), Astray> {
        let head = self.read_head(datagram)?;
        if head.len as usize != datagram.payload.len() {
            return Err(Astray);
        }
        let refusal = self.place_whole(&head, datagram.payload, means).err();
        self.answer(head.number, refusal, means.now_ns);
        Ok(())
    }

    fn place_whole(&self, head: &Head, payload: &[u8], means: &mut Means<'_>) -> Result<(), Refusal> {
        let vi = self.begin(head, means.nic)?;
        let (segments, _) = means.scratch.cleared();
        means.nic.places(vi, 0, head.len, segments)?;
        // SAFETY: the rules have just found the segments in registered memory, which stays until it is
        // deregistered.
        unsafe { place(segments, payload) };
        means.nic.arrived(vi);
        Ok(())
    }

    /// Begins a message. Returns its VI, or an error if the message or an earlier one is refused.
    fn begin(&self, head: &Head, nic: &mut Nic) -> Result<ViHandle, Refusal> {
        let vi = self.vi.filter(|_| !self.works.has_refused()).ok_or(Refusal::NotConnected)?;
        match nic.arrive(vi, head) {
            Arrival::Place => Ok(vi),
            Arrival::Refuse(refusal) => Err(refusal),
            // Only sends and writes arrive here, and a reliable VI drops none.
            Arrival::Serve | Arrival::Drop => Err(Refusal::NotConnected),
        }
    }

    fn take_announced(&mut self, datagram: &Datagram<'_>, means: &mut Means<'_>) -> Result<(), Astray> {
        let head = self.read_head(datagram)?;
        match self.begin(&head, means.nic) {
            // The bytes follow in a store, and the answer is sent after them.
            Ok(_) => self.works.announced = Announced::Message(head),
            Err(refusal) => self.answer(head.number, Some(refusal), means.now_ns),
        }
        Ok(())
    }

    /// Reports the fate of a message to the peer, if the peer has to know.
    fn answer(&mut self, number: u32, refusal: Option<Refusal>, now_ns: u64) {
        if refusal.is_some() {
            self.works.announced = Announced::Refused;
        }
        if refusal.is_some() || self.answers_all {
            self.connection.reply(0, &[Verdict { number, refusal }.pack()], &[], now_ns);
        }
    }

    fn take_verdict(&mut self, datagram: &Datagram<'_>, nic: &mut Nic) -> Result<(), Astray> {
        let Verdict { number, refusal } = Verdict::parse(datagram.words[0]).map_err(|_| Astray)?;
        let work = self.works.sent(number).ok_or(Astray)?;
        // The peer cannot have received a message whose bytes are not all sent.
        if refusal.is_none() && self.works.store.is_some_and(|(_, storing)| storing == work) {
            return Err(Astray);
        }
        let progress = refusal.map_or(Progress::Received, Progress::Refused);
        self.tell(work, progress, nic);
        Ok(())
    }

    fn tell(&self, work: u64, progress: Progress, nic: &mut Nic) {
        if let Some(vi) = self.vi {
            nic.progress(vi, work, progress);
        }
    }

    fn take_transfer(&mut self, datagram: &Datagram<'_>, means: &mut Means<'_>) -> Result<(), Astray> {
        let mut reach = Reach::new(self.vi, &mut self.works, means);
        let event = self.connection.transfer(datagram, &mut reach);
        if reach.is_astray {
            return Err(Astray);
        }
        match event {
            Event::Nothing => {}
            Event::Stored(stored) => {
                let head = self.works.stored(stored.range.len).ok_or(Astray)?;
                if let Some(vi) = self.vi {
                    means.nic.arrived(vi);
                }
                self.answer(head.number, None, means.now_ns);
            }
            Event::Fetched(get) => {
                let work = self.works.fetched(get).ok_or(Astray)?;
                self.tell(work, Progress::Fetched, means.nic);
            }
            Event::GetRefused(range) => {
                let work = self.works.fetched(range.number).ok_or(Astray)?;
                self.tell(work, Progress::Refused(Refusal::ReadDenied), means.nic);
            }
            Event::StoreRefused(stored) => {
                let Head { number, kind, .. } = Head::parse(stored.words).map_err(|_| Astray)?;
                let work = self.works.sent(number).ok_or(Astray)?;
                // The message was accepted when it began. Since then its destination was deregistered.
                let is_write = matches!(kind, Kind::Write { .. });
                let refusal = if is_write { Refusal::WriteDenied } else { Refusal::BadReceive };
                self.tell(work, Progress::Refused(refusal), means.nic);
            }
        }
        Ok(())
    }

    /// Returns the time of the next timer.
    #[inline]
    pub fn deadline(&self) -> u64 {
        if self.is_over(0) {
            return 0;
        }
        let asking = if self.is_waiting() || self.vi.is_none() { u64::MAX } else { self.ask_ns };
        let ending = self.ending.map_or(u64::MAX, |(_, until_ns)| until_ns);
        self.connection.deadline().unwrap_or(u64::MAX).min(asking).min(ending)
    }

    /// Returns whether the peer has acknowledged all that was sent.
    pub fn is_delivered(&self) -> bool {
        !self.is_waiting() && self.works.store.is_none()
    }

    /// Returns whether the connection itself would notice silence of the peer.
    fn is_waiting(&self) -> bool {
        self.connection.in_flight() > 0 || self.connection.has_unacknowledged()
    }

    /// Runs the timers that are due.
    pub fn on_time(&mut self, means: &mut Means<'_>) {
        if self.connection.deadline().is_some_and(|at_ns| at_ns <= means.now_ns) {
            self.connection.on_time(means.now_ns);
        }
        if self.vi.is_some() && !self.is_waiting() && self.ask_ns <= means.now_ns {
            // There is room, because no request is unanswered.
            let _ = self.connection.request(ALIVE, &[], &[], means.now_ns);
        }
        self.find_loss(means.nic);
    }

    /// Tells the VI if the connection has ended.
    #[inline]
    fn find_loss(&self, nic: &mut Nic) {
        if let (Some(vi), Some(loss)) = (self.vi, self.connection.lost()) {
            match loss {
                Loss::Closed => nic.left(vi),
                Loss::Silent | Loss::Misbehaved => nic.lost(vi),
            }
        }
    }

    /// Separates the connection from its VI, which is no longer connected.
    pub fn part(&mut self, parting: Parting, now_ns: u64) {
        let end = match parting {
            Parting::Ours => End::Arrival,
            Parting::Refusal => End::Goodbye,
            Parting::Peers => End::Nothing,
        };
        self.vi = None;
        self.works.forget();
        self.connection.forget_transfers();
        self.ending = Some((end, now_ns + LINGER_NS));
    }

    /// Returns whether nothing but a goodbye is to be sent.
    pub fn is_over(&self, now_ns: u64) -> bool {
        let Some((end, until_ns)) = self.ending else { return false };
        let is_done = match end {
            End::Arrival => self.is_left || !self.connection.has_unacknowledged(),
            End::Goodbye => self.is_left,
            End::Nothing => true,
        };
        is_done || self.connection.lost().is_some() || now_ns >= until_ns
    }

    /// Sends goodbyes, unless the peer has sent one.
    pub fn say_goodbye(&mut self, means: &mut Means<'_>) {
        if !self.is_left {
            udp::send_goodbyes(means.socket, self.to, self.connection.goodbye(), means.now_ns);
        }
    }
}
