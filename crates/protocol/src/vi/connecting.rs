//! Connection management: requests, acceptance, refusal and disconnection (VIA 1.0, "connection
//! management"; Speight et al. 1999, section 2.1).
//!
//! ```text
//!   client and server                        peers
//!
//!   ask      ---- request ---->  wait        ask      ---- request ---->  (not yet)
//!   PENDING                      waited      PENDING  <--- request -----  ask
//!            <--- accept ------  accept               ---- accept ----->  PENDING
//!   CONNECTED                    CONNECTED            <--- accept ------  CONNECTED
//!                                            CONNECTED
//! ```
//!
//! Signals may be lost, duplicated and delayed. A request is retransmitted until it is answered or
//! times out. Every signal names its request or its connection by a number that is used once. The
//! caller chooses these numbers at random, so that no third party can guess one.
//!
//! A provider remembers the requests that it has answered and those that were withdrawn
//! ([`super::settled`]). A late copy of such a request gets the same answer again and reaches no
//! program. A provider that receives a signal for an unknown connection answers with a disconnect
//! signal, which breaks the sender's end.
//!
//! A peer request whose attributes conflict may also be a late copy, of a request that was withdrawn
//! before this side heard of that. So the receiver keeps its own request and answers with its offer. If
//! the peer still asks, the peer refuses that offer.

use super::codes::AsyncError;
use super::connections::{Asking, ConnHandle, ConnectError, Incoming, Meeting, Wait, WaitHandle};
use super::handles::ViHandle;
use super::nic::{Event, Link, Nic, Parting};
use super::state::Change;
use crate::frame::vi_signal::{Address, Request, Signal, Why};
use crate::vi::attributes::Offer;
use alloc::vec::Vec;

/// Interval at which a request is retransmitted, ns. It is many round trips long and gives the peer's
/// program time to answer.
const AGAIN_NS: u64 = 20_000_000;

impl Nic {
    /// Returns the next signal to send, with its destination host.
    pub fn next_signal(&mut self) -> Option<(Vec<u8>, Signal)> {
        self.meeting.signals.pop_front()
    }

    fn say(&mut self, host: &[u8], signal: Signal) {
        self.meeting.signals.push_back((host.to_vec(), signal));
    }

    /// Waits for one request to the address `local`. A request for which there is no wait is refused.
    ///
    /// # Errors
    /// Returns `NoAddress` if the address is too long, `TooMany` if there are too many waits.
    pub fn wait(&mut self, local: Address, until_ns: Option<u64>) -> Result<WaitHandle, ConnectError> {
        if !local.is_valid() {
            return Err(ConnectError::NoAddress);
        }
        let wait = Wait { local, until_ns, found: None };
        self.meeting.waits.insert(wait).map_err(|_| ConnectError::TooMany)
    }

    /// Returns the request that a wait received and ends the wait. Returns `None` while there is none.
    ///
    /// # Errors
    /// Returns `Timeout` if the time limit has passed, `NoSuchRequest` if the wait does not exist.
    pub fn waited(&mut self, wait: WaitHandle, now_ns: u64) -> Result<Option<ConnHandle>, ConnectError> {
        let Wait { until_ns, found, .. } =
            *self.meeting.waits.get(wait).ok_or(ConnectError::NoSuchRequest)?;
        let is_late = until_ns.is_some_and(|at_ns| at_ns <= now_ns);
        if found.is_some() || is_late {
            self.meeting.waits.remove(wait);
        }
        match found {
            Some(found) => Ok(Some(found)),
            None if is_late => Err(ConnectError::Timeout),
            None => Ok(None),
        }
    }

    /// Returns whether a wait has received a request, which [`Nic::waited`] returns.
    pub fn has_request(&self, wait: WaitHandle) -> bool {
        self.meeting.waits.get(wait).is_some_and(|wait| wait.found.is_some())
    }

    /// Returns a received request.
    ///
    /// # Errors
    /// Returns `NoSuchRequest` if it does not exist.
    pub fn request(&self, conn: ConnHandle) -> Result<&Request, ConnectError> {
        Ok(&self.meeting.incoming.get(conn).ok_or(ConnectError::NoSuchRequest)?.request)
    }

    /// Accepts a request: connects the VI `vi` with the requester's. `number` must be random. If the
    /// attributes of the two VIs conflict, the request stays, for another VI to accept or to be
    /// rejected.
    ///
    /// # Errors
    /// Returns `Conflict` if the attributes conflict, `Timeout` if the requester has withdrawn the
    /// request. Returns `State` if the VI is not idle, `NoSuchVi` or `NoSuchRequest` if one of them
    /// does not exist.
    pub fn accept(&mut self, conn: ConnHandle, vi: ViHandle, number: u64) -> Result<(), ConnectError> {
        let Incoming { request, is_given_up } =
            self.meeting.incoming.get(conn).ok_or(ConnectError::NoSuchRequest)?.clone();
        if is_given_up {
            self.meeting.incoming.remove(conn);
            return Err(ConnectError::Timeout);
        }
        let endpoint = self.vis.get(vi).ok_or(ConnectError::NoSuchVi)?;
        endpoint.state.after(Change::Accepted).ok_or(ConnectError::State)?;
        let ours = self.attributes().offer(&endpoint.attributes);
        if let Some(conflict) = ours.conflict(&request.offer) {
            return Err(ConnectError::Conflict(conflict));
        }
        self.meeting.incoming.remove(conn);
        let host = request.from.host;
        // While the connection lasts, a copy of the request is answered with its acceptance. After its
        // end a copy must not pass as a new request.
        self.meeting.settled.insert(&host, request.number, Some(Why::Rejected));
        self.say(&host, Signal::Accept { to: request.number, number, offer: ours });
        let link = Link { local: number, remote: request.number, host, offer: request.offer };
        self.link(vi, Change::Accepted, link);
        Ok(())
    }

    /// Rejects a request and tells the requester.
    ///
    /// # Errors
    /// Returns `NoSuchRequest` if the request does not exist.
    pub fn reject(&mut self, conn: ConnHandle) -> Result<(), ConnectError> {
        let incoming = self.meeting.incoming.remove(conn).ok_or(ConnectError::NoSuchRequest)?;
        let Incoming { request, is_given_up } = incoming;
        if !is_given_up {
            self.refuse_request(&request.from.host, request.number, Why::Rejected);
        }
        Ok(())
    }

    /// Rejects all received requests that are not answered. A provider that closes does so: the requesters would wait
    /// for their time limit otherwise.
    pub fn reject_all(&mut self) {
        for conn in self.meeting.incoming.iter().map(|(conn, _)| conn).collect::<Vec<_>>() {
            // The request exists, so this cannot fail.
            let _ = self.reject(conn);
        }
    }

    /// Refuses a request and remembers the refusal for its late copies.
    fn refuse_request(&mut self, host: &[u8], to: u64, why: Why) {
        self.meeting.settled.insert(host, to, Some(why));
        self.say(host, Signal::Refuse { to, why });
    }

    /// Requests a connection for a VI. The other side is a program that waits at the address `to`, or,
    /// if `is_of_peer`, a peer that requests the same connection. `number` must be random.
    /// [`Nic::answer`] returns the outcome.
    ///
    /// # Errors
    /// Returns `NoAddress` if an address is too long, `NoSuchVi` if the VI does not exist, `State` if
    /// it is not idle. Returns `Taken` if another VI already asks the same peer with the same
    /// addresses.
    pub fn ask(
        &mut self,
        vi: ViHandle,
        [from, to]: [Address; 2],
        is_of_peer: bool,
        number: u64,
        until_ns: Option<u64>,
        now_ns: u64,
    ) -> Result<(), ConnectError> {
        if !from.is_valid() || !to.is_valid() {
            return Err(ConnectError::NoAddress);
        }
        let endpoint = self.vis.get(vi).ok_or(ConnectError::NoSuchVi)?;
        let state = endpoint.state.after(Change::Asked).ok_or(ConnectError::State)?;
        // Two such requests to one peer could not be told apart.
        if is_of_peer
            && self.asks(|request| request.is_of_peer && request.from == from && request.to == to).is_some()
        {
            return Err(ConnectError::Taken);
        }
        let offer = self.attributes().offer(&endpoint.attributes);
        let request = Request { number, is_of_peer, from, to, offer };
        self.say(&request.to.host.clone(), Signal::Request(request.clone()));
        self.meeting.asking.push(vi);
        if let Some(endpoint) = self.vis.get_mut(vi) {
            endpoint.state = state;
            endpoint.answer = None;
            endpoint.asking = Some(Asking { request, until_ns, again_ns: now_ns + AGAIN_NS, met: None });
        }
        Ok(())
    }

    /// Returns the outcome of a request, once: the peer's offer. Returns `None` while there is no
    /// outcome.
    ///
    /// # Errors
    /// Returns the reason if there is no connection, `State` if the VI has no request, `NoSuchVi` if
    /// the VI does not exist.
    pub fn answer(&mut self, vi: ViHandle) -> Result<Option<Offer>, ConnectError> {
        let endpoint = self.vis.get_mut(vi).ok_or(ConnectError::NoSuchVi)?;
        match endpoint.answer.take() {
            Some(answer) => answer.map(Some),
            None if endpoint.asking.is_some() => Ok(None),
            None => Err(ConnectError::State),
        }
    }

    /// Ends the connection of a VI, or withdraws its request. Unfinished descriptors are flushed, the VI becomes idle, and
    /// an answer that was not taken is forgotten.
    ///
    /// # Errors
    /// Returns `NoSuchVi` if the VI does not exist.
    pub fn disconnect(&mut self, vi: ViHandle) -> Result<(), ConnectError> {
        let endpoint = self.vis.get_mut(vi).ok_or(ConnectError::NoSuchVi)?;
        endpoint.state = endpoint.state.after(Change::Disconnected).ok_or(ConnectError::State)?;
        endpoint.answer = None;
        endpoint.send.flush();
        endpoint.receive.flush();
        self.part(vi, Parting::Ours);
        self.settle(vi);
        Ok(())
    }

    /// Ends the connection of a VI, or withdraws its request.
    pub(super) fn part(&mut self, vi: ViHandle, parting: Parting) {
        let Some(endpoint) = self.vis.get_mut(vi) else { return };
        endpoint.arriving = None;
        endpoint.fragments = Default::default();
        if let Some(link) = endpoint.link.take() {
            if parting == Parting::Peers {
                self.meeting.settled.insert(&link.host, link.remote, None);
            }
            self.tell(Event::Unlinked { vi, link, parting });
        }
        self.stop_asking(vi, true);
    }

    /// Forgets the request of a VI. If `is_said`, tells the other side with a disconnect signal.
    fn stop_asking(&mut self, vi: ViHandle, is_said: bool) -> Option<Asking> {
        let asking = self.vis.get_mut(vi)?.asking.take()?;
        self.meeting.asking.retain(|other| *other != vi);
        if is_said {
            let (to, number) = (asking.met.unwrap_or(0), asking.request.number);
            self.say(&asking.request.to.host, Signal::Disconnect { to, number });
        }
        Some(asking)
    }

    /// Ends the request of a VI with an error.
    fn give_up(&mut self, vi: ViHandle, error: ConnectError, is_said: bool) {
        self.stop_asking(vi, is_said);
        let Some(endpoint) = self.vis.get_mut(vi) else { return };
        if let Some(state) = endpoint.state.after(Change::GaveUp) {
            endpoint.state = state;
            endpoint.answer = Some(Err(error));
            self.meeting.answers += 1;
        }
    }

    /// Connects a VI.
    fn link(&mut self, vi: ViHandle, change: Change, link: Link) {
        let Some(endpoint) = self.vis.get_mut(vi) else { return };
        let Some(state) = endpoint.state.after(change) else { return };
        endpoint.state = state;
        endpoint.link = Some(link.clone());
        self.tell(Event::Linked { vi, link });
    }

    /// Processes a signal that came from `host`.
    pub fn signal(&mut self, host: &[u8], signal: Signal) {
        match signal {
            Signal::Request(request) => {
                let from = Address { host: host.to_vec(), ..request.from };
                self.take_request(Request { from, ..request });
            }
            Signal::Accept { to, number, offer } => self.take_accept(host, to, number, offer),
            Signal::Refuse { to, why } => {
                let asks = self.asks(|request| request.number == to && request.to.host == host);
                if let Some(vi) = asks {
                    let is_of_peer = self.request_of(vi).is_some_and(|request| request.is_of_peer);
                    self.give_up(vi, why.into(), is_of_peer);
                }
            }
            Signal::Disconnect { to, number } => {
                self.meeting.settled.insert(host, number, None);
                self.take_disconnect(host, to, number);
            }
        }
    }

    /// Reports that the path over which a peer sent the request `number` is gone. The peer may ask
    /// again over another.
    pub fn unreachable(&mut self, host: &[u8], number: u64) {
        self.take_disconnect(host, 0, number);
    }

    /// Reports that the transport can not reach the destination of the request `number`.
    pub fn can_not_ask(&mut self, number: u64, error: ConnectError) {
        if let Some(vi) = self.asks(|request| request.number == number) {
            self.give_up(vi, error, false);
        }
    }

    /// Returns the VI whose pending request satisfies `is_it`.
    fn asks(&self, is_it: impl Fn(&Request) -> bool) -> Option<ViHandle> {
        self.meeting.asking.iter().copied().find(|vi| self.request_of(*vi).is_some_and(&is_it))
    }

    /// Returns the pending request of a VI.
    fn request_of(&self, vi: ViHandle) -> Option<&Request> {
        Some(&self.vis.get(vi)?.asking.as_ref()?.request)
    }

    /// Returns the VI that is connected to the end `remote` of `host`.
    fn linked(&self, host: &[u8], remote: u64) -> Option<(ViHandle, &Link)> {
        let mut links = self.vis.iter().filter_map(|(vi, endpoint)| Some((vi, endpoint.link.as_ref()?)));
        links.find(|(_, link)| link.remote == remote && link.host == host)
    }

    /// Returns a counter that grows when a wait receives a request and when the outcome of a request is
    /// known. A change tells the caller to wake waiting threads.
    pub fn answers(&self) -> u64 {
        self.meeting.answers
    }

    /// Reports whether any VI has a pending request.
    pub fn is_asking(&self) -> bool {
        !self.meeting.asking.is_empty()
    }

    /// Returns the host to which this side sent `number`, in a request or for a connection. Only that
    /// host knows the number. So a signal with it comes from that host, whichever of the host's
    /// addresses it comes from.
    pub fn host_told(&self, number: u64) -> Option<&[u8]> {
        self.vis.iter().find_map(|(_, endpoint)| {
            let asked = endpoint.asking.as_ref().map(|asking| &asking.request);
            let asked = asked.filter(|request| request.number == number).map(|request| &request.to.host);
            let linked = endpoint.link.as_ref().filter(|link| link.local == number).map(|link| &link.host);
            asked.or(linked).map(Vec::as_slice)
        })
    }

    /// Returns the host that chose `number` for its end of a connection. The number identifies the
    /// host, whichever of its addresses it sends from.
    pub fn host_that_told(&self, number: u64) -> Option<&[u8]> {
        let mut links = self.vis.iter().filter_map(|(_, endpoint)| endpoint.link.as_ref());
        links.find(|link| link.remote == number).map(|link| link.host.as_slice())
    }

    fn take_request(&mut self, request: Request) {
        if let Some((vi, link)) = self.linked(&request.from.host, request.number) {
            // The requester missed the acceptance, so it is repeated.
            let number = link.local;
            let Some(endpoint) = self.vis.get(vi) else { return };
            let offer = self.attributes().offer(&endpoint.attributes);
            self.say(&request.from.host, Signal::Accept { to: request.number, number, offer });
        } else if let Some(answer) = self.meeting.settled.get(&request.from.host, request.number) {
            if let Some(why) = answer {
                self.say(&request.from.host, Signal::Refuse { to: request.number, why });
            }
        } else if request.is_of_peer {
            self.take_peer(&request);
        } else {
            self.take_client(request);
        }
    }

    /// Processes the request of a client. Without a matching wait the request is refused.
    fn take_client(&mut self, request: Request) {
        let is_same = |incoming: &Incoming| {
            incoming.request.number == request.number && incoming.request.from.host == request.from.host
        };
        if self.meeting.incoming.iter().any(|(_, incoming)| is_same(incoming)) {
            return;
        }
        let Request { number, ref from, ref to, .. } = request;
        let host = from.host.clone();
        // Only the discriminator is compared. The request reached this host, whatever name the client
        // has for it.
        let is_for = |wait: &Wait| wait.found.is_none() && wait.local.discriminator == to.discriminator;
        let wait = self.meeting.waits.iter().find(|(_, wait)| is_for(wait)).map(|(handle, _)| handle);
        let why = match wait {
            None => Why::NoMatch,
            Some(wait) => match self.meeting.incoming.insert(Incoming { request, is_given_up: false }) {
                Ok(conn) => {
                    self.meeting.answers += 1;
                    let wait = self.meeting.waits.get_mut(wait);
                    return wait.into_iter().for_each(|wait| wait.found = Some(conn));
                }
                Err(_) => Why::NoRoom,
            },
        };
        self.refuse_request(&host, number, why);
    }

    /// Processes the request of a peer. Without a matching request of this side it is ignored, because
    /// the peer repeats it.
    fn take_peer(&mut self, theirs: &Request) {
        // Two VIs on one host may have the same address. A VI that receives its own request has not
        // found its peer.
        let is_meant = |ours: &Request| {
            ours.is_of_peer
                && ours.number != theirs.number
                && ours.from.discriminator == theirs.to.discriminator
                && ours.to == theirs.from
        };
        let Some(vi) = self.asks(is_meant) else { return };
        let Some(asking) = self.vis.get_mut(vi).and_then(|endpoint| endpoint.asking.as_mut()) else { return };
        let Request { number, offer, .. } = asking.request;
        let to = theirs.number;
        if let Some(met) = asking.met.filter(|met| *met != to) {
            // The peer may already be connected with this VI by the earlier request, if its acceptance
            // was lost. If the peer has withdrawn that request, it answers with a disconnect signal.
            self.say(&theirs.from.host, Signal::Accept { to: met, number, offer });
        } else {
            // A peer with conflicting attributes detects the conflict in this side's offer, if it still
            // asks.
            asking.met = offer.conflict(&theirs.offer).is_none().then_some(to);
            self.say(&theirs.from.host, Signal::Accept { to, number, offer });
        }
    }

    fn take_accept(&mut self, host: &[u8], to: u64, number: u64, offer: Offer) {
        if self.linked(host, number).is_some_and(|(_, link)| link.local == to) {
            return;
        }
        // The connection ended before this side learned of it. The peer will answer the pending request
        // anew.
        if self.meeting.settled.get(host, number).is_some() {
            return;
        }
        let asks = self.asks(|request| request.number == to && request.to.host == host);
        let Some(vi) = asks else {
            // No VI asks under that number any more.
            return self.say(host, Signal::Disconnect { to: number, number: to });
        };
        let Some(ours) = self.request_of(vi) else { return };
        let is_of_peer = ours.is_of_peer;
        if let Some(conflict) = ours.offer.conflict(&offer) {
            if is_of_peer {
                self.refuse_request(host, number, Why::Conflict(conflict));
            } else {
                self.say(host, Signal::Disconnect { to: number, number: to });
            }
            return self.give_up(vi, ConnectError::Conflict(conflict), is_of_peer);
        }
        let Some(Asking { request, .. }) = self.stop_asking(vi, false) else { return };
        if request.is_of_peer {
            // The peer waits for the same signal from this side and may have missed it.
            self.say(host, Signal::Accept { to: number, number: to, offer: request.offer });
        }
        if let Some(endpoint) = self.vis.get_mut(vi) {
            endpoint.answer = Some(Ok(offer));
            self.meeting.answers += 1;
        }
        self.link(vi, Change::Connected, Link { local: to, remote: number, host: host.to_vec(), offer });
    }

    fn take_disconnect(&mut self, host: &[u8], to: u64, number: u64) {
        let linked = self.linked(host, number).filter(|(_, link)| to == 0 || link.local == to);
        if let Some((vi, _)) = linked {
            self.break_vi(vi, AsyncError::ConnLost, None, Parting::Peers);
            self.settle(vi);
        }
        if let Some(vi) = self.asks(|request| request.number == to && request.to.host == host)
            && let Some(asking) = self.vis.get_mut(vi).and_then(|endpoint| endpoint.asking.as_mut())
        {
            // Another request of the peer may take the place of this one.
            asking.met = asking.met.filter(|met| *met != number);
        }
        let Meeting { waits, incoming, .. } = &mut self.meeting;
        let given_up = incoming
            .iter()
            .find(|(_, incoming)| incoming.request.number == number && incoming.request.from.host == host);
        let Some((conn, _)) = given_up else { return };
        // The program has not seen the request yet, so it is removed as if it had never come.
        let unseen = waits.iter().find(|(_, wait)| wait.found == Some(conn)).map(|(wait, _)| wait);
        match unseen.and_then(|wait| waits.get_mut(wait)) {
            Some(wait) => {
                wait.found = None;
                incoming.remove(conn);
            }
            None => incoming.get_mut(conn).into_iter().for_each(|incoming| incoming.is_given_up = true),
        }
    }

    /// Answers a message for an unknown connection with a disconnect signal.
    pub fn stranger(&mut self, host: &[u8], to: u64, number: u64) {
        self.say(host, Signal::Disconnect { to, number });
    }

    /// Returns the time at which [`Nic::on_time`] must be called at the latest, ns.
    pub fn deadline(&self) -> Option<u64> {
        let asking = self.meeting.asking.iter().filter_map(|vi| {
            let asking = self.vis.get(*vi)?.asking.as_ref()?;
            Some(asking.until_ns.map_or(asking.again_ns, |until_ns| until_ns.min(asking.again_ns)))
        });
        let waiting = self.meeting.waits.iter().filter_map(|(_, wait)| wait.until_ns);
        asking.chain(waiting).min()
    }

    /// Processes the deadlines that have passed: ends requests that timed out and retransmits the
    /// others.
    pub fn on_time(&mut self, now_ns: u64) {
        for vi in self.meeting.asking.clone() {
            let Some(asking) = self.vis.get_mut(vi).and_then(|endpoint| endpoint.asking.as_mut()) else {
                continue;
            };
            if asking.until_ns.is_some_and(|at_ns| at_ns <= now_ns) {
                self.give_up(vi, ConnectError::Timeout, true);
            } else if asking.again_ns <= now_ns {
                asking.again_ns = now_ns + AGAIN_NS;
                let request = asking.request.clone();
                self.say(&request.to.host.clone(), Signal::Request(request));
            }
        }
    }
}
