//! How VIs find each other (VIA 1.0, "connection management"; Speight et al. 1999, section 2.1).
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
//! Signals may be lost, come twice and late. A request is sent again until it is answered or its time
//! is up. Every signal names the request or the connection that it is about by a number that is used
//! once. A provider remembers the requests that it has answered and those that were withdrawn
//! ([`super::settled`]): a late copy of one gets the same answer again and reaches no program. Who is
//! told of a connection that he does not know says so, and then the other side's breaks. Numbers are
//! chosen at random by the caller, so that nobody can guess one.
//!
//! A peer request that does not fit may be a late copy as well, of one that was withdrawn unheard. So
//! the receiver does not give up its own request by itself: it answers with its offer, and the peer, if
//! it still asks, refuses that.

use super::codes::AsyncError;
use super::nic::{Event, Link, Nic, Parting, ViHandle};
use super::settled::Settled;
use super::state::Change;
use super::table::{Table, handle};
use crate::frame::vi_signal::{Address, Request, Signal, Why};
use crate::vi::attributes::{Conflict, Offer};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Time after which a request is sent again: many round trips, and a moment for a program.
const AGAIN_NS: u64 = 20_000_000;

handle! {
    /// A program that waits for a request.
    WaitHandle
}

handle! {
    /// A request that was waited for, to be accepted or rejected.
    ConnHandle
}

/// Why there is no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectError {
    /// There is no such VI.
    NoSuchVi,
    /// There is no such request, or nobody waits so.
    NoSuchRequest,
    /// An address that can not be.
    NoAddress,
    /// Another VI asks the same peer by the same names.
    Taken,
    /// Here or there is no room.
    TooMany,
    /// Not in the state that the VI is in.
    State,
    /// The time is up, or the other side's is.
    Timeout,
    /// The other side does not want it.
    Rejected,
    /// Nobody waits for it.
    NoMatch,
    /// Another user of this host has the name.
    Foreign,
    /// The VIs do not fit together.
    Conflict(Conflict),
}

impl From<Why> for ConnectError {
    fn from(why: Why) -> Self {
        match why {
            Why::NoMatch => Self::NoMatch,
            Why::Rejected => Self::Rejected,
            Why::NoRoom => Self::TooMany,
            Why::Conflict(conflict) => Self::Conflict(conflict),
        }
    }
}

/// What a VI asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asking {
    request: Request,
    /// When the time is up.
    until_ns: Option<u64>,
    again_ns: u64,
    /// The number of the peer that was found to ask for us.
    met: Option<u64>,
}

#[derive(Clone, Debug)]
struct Wait {
    local: Address,
    until_ns: Option<u64>,
    found: Option<ConnHandle>,
}

#[derive(Clone, Debug)]
struct Incoming {
    request: Request,
    is_given_up: bool,
}

/// Who waits, who has come, and what is to be said.
#[derive(Clone, Debug)]
pub(super) struct Meeting {
    waits: Table<WaitHandle, Wait>,
    incoming: Table<ConnHandle, Incoming>,
    /// VIs that ask.
    asking: Vec<ViHandle>,
    settled: Settled,
    signals: VecDeque<(Vec<u8>, Signal)>,
    answers: u64,
}

impl Meeting {
    pub fn new(most: u32) -> Self {
        Self {
            waits: Table::new(most),
            incoming: Table::new(most),
            asking: Vec::new(),
            settled: Settled::default(),
            signals: VecDeque::new(),
            answers: 0,
        }
    }
}

impl Nic {
    /// What is to be said to whom next.
    pub fn next_signal(&mut self) -> Option<(Vec<u8>, Signal)> {
        self.meeting.signals.pop_front()
    }

    fn say(&mut self, host: &[u8], signal: Signal) {
        self.meeting.signals.push_back((host.to_vec(), signal));
    }

    /// Waits for one request for that address. Requests that nobody waits for are refused.
    ///
    /// # Errors
    /// There can be no such address, or too many wait.
    pub fn wait(&mut self, local: Address, until_ns: Option<u64>) -> Result<WaitHandle, ConnectError> {
        if !local.is_valid() {
            return Err(ConnectError::NoAddress);
        }
        let wait = Wait { local, until_ns, found: None };
        self.meeting.waits.insert(wait).map_err(|_| ConnectError::TooMany)
    }

    /// The request that has come, and the end of waiting. `None` where it goes on.
    ///
    /// # Errors
    /// The time is up, or nobody waits so.
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

    /// A request that has come.
    ///
    /// # Errors
    /// There is none.
    pub fn request(&self, conn: ConnHandle) -> Result<&Request, ConnectError> {
        Ok(&self.meeting.incoming.get(conn).ok_or(ConnectError::NoSuchRequest)?.request)
    }

    /// Connects a VI with the one that asked. `number` is to be random. Where the VIs do not fit
    /// together the request stays, for another VI or to be rejected.
    ///
    /// # Errors
    /// They can not be connected, or the other side has given up.
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
        // While the connection lasts a copy of the request is answered with it. Afterwards nobody may
        // take it for a new one.
        self.meeting.settled.insert(&host, request.number, Some(Why::Rejected));
        self.say(&host, Signal::Accept { to: request.number, number, offer: ours });
        let link = Link { local: number, remote: request.number, host, offer: request.offer };
        self.link(vi, Change::Accepted, link);
        Ok(())
    }

    /// Tells the one that asked that there will be no connection.
    ///
    /// # Errors
    /// There is no such request.
    pub fn reject(&mut self, conn: ConnHandle) -> Result<(), ConnectError> {
        let incoming = self.meeting.incoming.remove(conn).ok_or(ConnectError::NoSuchRequest)?;
        let Incoming { request, is_given_up } = incoming;
        if !is_given_up {
            self.refuse_request(&request.from.host, request.number, Why::Rejected);
        }
        Ok(())
    }

    /// Refuses a request, for good.
    fn refuse_request(&mut self, host: &[u8], to: u64, why: Why) {
        self.meeting.settled.insert(host, to, Some(why));
        self.say(host, Signal::Refuse { to, why });
    }

    /// A VI asks for a connection: with whoever waits there, or with a peer that asks for it as
    /// well. `number` is to be random. What came of it says [`Nic::answer`].
    ///
    /// # Errors
    /// It can not ask.
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
        // Of two that ask the same peer nobody could say who is meant.
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

    /// What came of asking, told once: the other side's VI. `None` where nothing has yet.
    ///
    /// # Errors
    /// There is no connection, or nobody asked for one.
    pub fn answer(&mut self, vi: ViHandle) -> Result<Option<Offer>, ConnectError> {
        let endpoint = self.vis.get_mut(vi).ok_or(ConnectError::NoSuchVi)?;
        match endpoint.answer.take() {
            Some(answer) => answer.map(Some),
            None if endpoint.asking.is_some() => Ok(None),
            None => Err(ConnectError::State),
        }
    }

    /// Ends the connection of a VI, or what it asks for. All that is not finished is flushed, and
    /// the VI is idle.
    ///
    /// # Errors
    /// There is no such VI.
    pub fn disconnect(&mut self, vi: ViHandle) -> Result<(), ConnectError> {
        let endpoint = self.vis.get_mut(vi).ok_or(ConnectError::NoSuchVi)?;
        endpoint.state = endpoint.state.after(Change::Disconnected).ok_or(ConnectError::State)?;
        endpoint.send.flush();
        endpoint.receive.flush();
        self.part(vi, Parting::Ours);
        self.settle(vi);
        Ok(())
    }

    /// The connection of a VI has ended, or what it asked for is not wanted any more.
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

    /// Forgets what a VI asks for, and says so where that is to be known.
    fn stop_asking(&mut self, vi: ViHandle, is_said: bool) -> Option<Asking> {
        let asking = self.vis.get_mut(vi)?.asking.take()?;
        self.meeting.asking.retain(|other| *other != vi);
        if is_said {
            let (to, number) = (asking.met.unwrap_or(0), asking.request.number);
            self.say(&asking.request.to.host, Signal::Disconnect { to, number });
        }
        Some(asking)
    }

    /// A VI has asked in vain.
    fn give_up(&mut self, vi: ViHandle, error: ConnectError, is_said: bool) {
        self.stop_asking(vi, is_said);
        let Some(endpoint) = self.vis.get_mut(vi) else { return };
        if let Some(state) = endpoint.state.after(Change::GaveUp) {
            endpoint.state = state;
            endpoint.answer = Some(Err(error));
            self.meeting.answers += 1;
        }
    }

    /// A VI is connected.
    fn link(&mut self, vi: ViHandle, change: Change, link: Link) {
        let Some(endpoint) = self.vis.get_mut(vi) else { return };
        let Some(state) = endpoint.state.after(change) else { return };
        endpoint.state = state;
        endpoint.link = Some(link.clone());
        self.tell(Event::Linked { vi, link });
    }

    /// A signal has come from a host.
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

    /// The way is gone over which a peer asked under that number. The peer may ask again by another.
    pub fn unreachable(&mut self, host: &[u8], number: u64) {
        self.take_disconnect(host, 0, number);
    }

    /// The wire finds nobody to be asked under that number.
    pub fn can_not_ask(&mut self, number: u64, error: ConnectError) {
        if let Some(vi) = self.asks(|request| request.number == number) {
            self.give_up(vi, error, false);
        }
    }

    /// The VI that asks for something.
    fn asks(&self, is_it: impl Fn(&Request) -> bool) -> Option<ViHandle> {
        self.meeting.asking.iter().copied().find(|vi| self.request_of(*vi).is_some_and(&is_it))
    }

    /// What a VI asks for.
    fn request_of(&self, vi: ViHandle) -> Option<&Request> {
        Some(&self.vis.get(vi)?.asking.as_ref()?.request)
    }

    /// The VI that is connected with a number of a host.
    fn linked(&self, host: &[u8], remote: u64) -> Option<(ViHandle, &Link)> {
        let mut links = self.vis.iter().filter_map(|(vi, endpoint)| Some((vi, endpoint.link.as_ref()?)));
        links.find(|(_, link)| link.remote == remote && link.host == host)
    }

    /// A number that grows when a request has come that is waited for, or when it is known what came
    /// of asking: somebody may wait for that.
    pub fn answers(&self) -> u64 {
        self.meeting.answers
    }

    /// Whether any VI asks for a connection.
    pub fn is_asking(&self) -> bool {
        !self.meeting.asking.is_empty()
    }

    /// The host that was told a number of ours: that is asked for a connection under it, or has one.
    /// Whoever answers to the number is that host, by whichever of its addresses it does.
    pub fn host_told(&self, number: u64) -> Option<&[u8]> {
        self.vis.iter().find_map(|(_, endpoint)| {
            let asked = endpoint.asking.as_ref().map(|asking| &asking.request);
            let asked = asked.filter(|request| request.number == number).map(|request| &request.to.host);
            let linked = endpoint.link.as_ref().filter(|link| link.local == number).map(|link| &link.host);
            asked.or(linked).map(Vec::as_slice)
        })
    }

    /// The host that has told us its number for a connection, by which it is known wherever it speaks
    /// from.
    pub fn host_that_told(&self, number: u64) -> Option<&[u8]> {
        let mut links = self.vis.iter().filter_map(|(_, endpoint)| endpoint.link.as_ref());
        links.find(|link| link.remote == number).map(|link| link.host.as_slice())
    }

    fn take_request(&mut self, request: Request) {
        if let Some((vi, link)) = self.linked(&request.from.host, request.number) {
            // It did not hear the answer.
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

    /// A client asks. Where nobody waits for it, it is told so.
    fn take_client(&mut self, request: Request) {
        let is_same = |incoming: &Incoming| {
            incoming.request.number == request.number && incoming.request.from.host == request.from.host
        };
        if self.meeting.incoming.iter().any(|(_, incoming)| is_same(incoming)) {
            return;
        }
        let Request { number, ref from, ref to, .. } = request;
        let host = from.host.clone();
        // The host is this one, by whatever name it was found.
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

    /// A peer asks. Where nobody here asks for it, it will ask again.
    fn take_peer(&mut self, theirs: &Request) {
        // On one host both may have one address. A VI that hears itself has not found its peer.
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
            // It may be connected with us, and we have not heard. If it has given up, it says so.
            self.say(&theirs.from.host, Signal::Accept { to: met, number, offer });
        } else {
            // A peer that does not fit finds that out by our offer, if it still asks.
            asking.met = offer.conflict(&theirs.offer).is_none().then_some(to);
            self.say(&theirs.from.host, Signal::Accept { to, number, offer });
        }
    }

    fn take_accept(&mut self, host: &[u8], to: u64, number: u64, offer: Offer) {
        if self.linked(host, number).is_some_and(|(_, link)| link.local == to) {
            return;
        }
        // The connection has ended before this side heard of it. Our request is answered anew.
        if self.meeting.settled.get(host, number).is_some() {
            return;
        }
        let asks = self.asks(|request| request.number == to && request.to.host == host);
        let Some(vi) = asks else {
            // Nobody asks any more.
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
            // It waits for the same from us, and may not have heard it.
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
            // Another one may ask in its place.
            asking.met = asking.met.filter(|met| *met != number);
        }
        let Meeting { waits, incoming, .. } = &mut self.meeting;
        let given_up = incoming
            .iter()
            .find(|(_, incoming)| incoming.request.number == number && incoming.request.from.host == host);
        let Some((conn, _)) = given_up else { return };
        // Nobody has seen it: as if it had never come.
        let unseen = waits.iter().find(|(_, wait)| wait.found == Some(conn)).map(|(wait, _)| wait);
        match unseen.and_then(|wait| waits.get_mut(wait)) {
            Some(wait) => {
                wait.found = None;
                incoming.remove(conn);
            }
            None => incoming.get_mut(conn).into_iter().for_each(|incoming| incoming.is_given_up = true),
        }
    }

    /// Something has come for a connection that is not known here: what is to be said to that.
    pub fn stranger(&mut self, host: &[u8], to: u64, number: u64) {
        self.say(host, Signal::Disconnect { to, number });
    }

    /// When to come back, at the latest.
    pub fn deadline(&self) -> Option<u64> {
        let asking = self.meeting.asking.iter().filter_map(|vi| {
            let asking = self.vis.get(*vi)?.asking.as_ref()?;
            Some(asking.until_ns.map_or(asking.again_ns, |until_ns| until_ns.min(asking.again_ns)))
        });
        let waiting = self.meeting.waits.iter().filter_map(|(_, wait)| wait.until_ns);
        asking.chain(waiting).min()
    }

    /// The time has come, or passed.
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
