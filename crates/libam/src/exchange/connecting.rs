//! Connections to named endpoints: made when the first message is sent, by a call to the lobby of the other process.

use crate::code::Status;
use crate::job;
use crate::lobby::{self, Call, Calling};
use crate::name::Name;
use crate::objects::{Bundle, Endpoint, Peer, State, Translation, for_each_unshared};
use crate::refusal::failed;
use crate::settings;
use netdyno_host::machine;
use netdyno_host::signals::without_signals;
use netdyno_stack::am::{self, PeerId, Wire};
use std::fmt::Display;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use std::{io, thread};

/// Time for the answer of an endpoint that does not poll.
const ANSWER: Duration = Duration::from_secs(120);
/// Time in which a process is mostly greeted. Then this one polls.
const GREETED_SOON: Duration = Duration::from_millis(1);

impl Endpoint {
    /// Returns the peer of a translation. Connects to it before the first message.
    ///
    /// # Errors
    /// Returns `BadEndpoint` if there is no such endpoint, and `Unreachable` if it cannot be reached or is lost.
    #[inline]
    pub fn peer_of(
        &'static self,
        link: &mut am::Endpoint<State>,
        index: usize,
        Translation { name, peer, .. }: Translation,
    ) -> Result<PeerId, Status> {
        match peer {
            Some(peer) => Ok(peer),
            None => self.connect(link, index, &name),
        }
    }

    /// Returns the peer with a name, if there is a connection.
    pub fn peer_named(&self, name: &Name) -> Option<PeerId> {
        self.peers.borrow().iter().rfind(|peer| peer.name == *name).map(|peer| peer.id)
    }

    #[cold]
    fn connect(
        &'static self,
        link: &mut am::Endpoint<State>,
        index: usize,
        name: &Name,
    ) -> Result<PeerId, Status> {
        // The other endpoint may have called meanwhile, and again after a call that this one answered too late.
        let peer = match self.peer_named(name) {
            Some(peer) => peer,
            None => self.call(link, name)?,
        };
        if let Some(Some(entry)) = self.translations.borrow_mut().get_mut(index) {
            entry.peer = Some(peer);
        }
        Ok(peer)
    }

    /// Calls an endpoint and connects to it. Polls meanwhile, because the other side may call, too.
    fn call(&'static self, link: &mut am::Endpoint<State>, name: &Name) -> Result<PeerId, Status> {
        let failed = |error: &dyn Display| {
            failed(format!("endpoint {name} cannot be reached: {error}")).tell("connecting");
            Status::Unreachable
        };
        let until = Instant::now() + ANSWER;
        let begun = self.greet(link, *name, until).map_err(|error| failed(&error))?;
        let (mut calling, host) = begun.ok_or(Status::BadEndpoint)?;
        let near = if host == machine::host() { Wire::Shm } else { Wire::Udp };
        let wire = settings::wire().map_err(|error| failed(&error))?.unwrap_or(near);
        let port = link.open_port(wire).map_err(|error| failed(&error))?;
        calling.offer(&self.name, wire, &port.address()).map_err(|error| failed(&error))?;
        let address = loop {
            if let Some(address) = calling.answered().map_err(|error| failed(&error))? {
                break address;
            }
            if Instant::now() > until {
                return Err(failed(&"it does not poll"));
            }
            self.poll_while_waiting(link);
        };
        if address.is_empty() {
            return Err(failed(&"it refuses the connection"));
        }
        let id = link.connect(port, &address).map_err(|error| failed(&error))?;
        self.add_peer(*name, id);
        Ok(id)
    }

    /// Greets the process of an endpoint in a thread of its own, and polls meanwhile: the process may be stopped, or busy.
    fn greet(
        &'static self,
        link: &mut am::Endpoint<State>,
        name: Name,
        until: Instant,
    ) -> io::Result<Option<(Calling, String)>> {
        let (begun, greeted) = mpsc::channel();
        // This thread takes it, unless it has ended meanwhile.
        let work = move || drop(begun.send(Calling::begin(&name, until)));
        without_signals(|| thread::Builder::new().name("netdyno-greeting".into()).spawn(work))?;
        loop {
            match greeted.recv_timeout(GREETED_SOON) {
                Ok(begun) => return begun,
                Err(RecvTimeoutError::Timeout) => self.poll_while_waiting(link),
                Err(RecvTimeoutError::Disconnected) => return Err(io::ErrorKind::Other.into()),
            }
        }
    }

    /// Answers the calls for this endpoint, and for the others that no other thread uses now: their callers wait, and this
    /// thread may poll them later or never.
    #[cold]
    pub fn answer_calls(&'static self, link: &mut am::Endpoint<State>) {
        lobby::take_news();
        job::take_notices(self);
        self.inbox.take().into_iter().for_each(|call| self.accept(link, call));
        for_each_unshared(Bundle::answer_further_calls);
        self.lobby.keep_news();
    }

    /// Answers a call of another endpoint.
    fn accept(&self, link: &mut am::Endpoint<State>, call: Call) {
        let Call { from, wire, address, stream } = call;
        let accepted = link.open_port(wire).ok().and_then(|port| {
            let ours = port.address();
            let id = link.connect(port, &address).ok()?;
            Some((ours, id))
        });
        lobby::answer(&stream, accepted.as_ref().map(|(ours, _)| &ours[..]));
        if let Some((_, id)) = accepted {
            self.add_peer(from, id);
        }
    }

    fn add_peer(&self, name: Name, id: PeerId) {
        let translation = self.index_of(&name);
        // Of several translations it is not known by which the other endpoint is meant: its replies bear no tag.
        let only = translation.filter(|_| self.has_one_entry(&name));
        let tag = only.and_then(|index| Some(self.translation(index).ok()?.tag));
        let mut peers = self.peers.borrow_mut();
        debug_assert_eq!(peers.len(), id.index());
        peers.push(Peer::new(name, id, translation, tag));
    }

    /// Sleeps are prepared and taken back by the endpoint of the stack.
    pub fn prepare_sleep(&self, most: Duration) -> Duration {
        match self.link.try_borrow_mut().as_deref_mut() {
            Ok(Some(link)) if !self.peers.borrow().is_empty() => {
                // Zero once if there is more room, for which nobody waits here.
                let due = link.until_due();
                if due.is_zero() { link.until_due().min(most) } else { due.min(most) }
            }
            _ => most,
        }
    }

    /// Takes a prepared sleep back.
    pub fn cancel_sleep(&self) {
        if let Ok(Some(link)) = self.link.try_borrow_mut().as_deref_mut() {
            link.cancel_sleep();
        }
    }

    /// Returns a copy of the descriptor that is readable when a message arrives.
    pub fn descriptor(&self) -> Option<std::os::fd::OwnedFd> {
        use std::os::fd::AsFd;
        let link = self.link.try_borrow().ok()?;
        link.as_ref()?.as_fd().try_clone_to_owned().ok()
    }
}

impl Bundle {
    /// Answers the calls for all endpoints but those that are in use further out in this thread, or not open yet: these
    /// answer later.
    fn answer_further_calls(&self) {
        let endpoints = self.endpoints.borrow().clone();
        for endpoint in endpoints {
            job::take_notices(endpoint);
            if let Ok(Some(link)) = endpoint.link.try_borrow_mut().as_deref_mut() {
                endpoint.inbox.take().into_iter().for_each(|call| endpoint.accept(link, call));
            }
        }
    }
}
