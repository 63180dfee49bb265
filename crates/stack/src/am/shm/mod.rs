//! The peers of an endpoint that share memory with it, polled together.

mod attached;
mod bulk;
mod peer;
mod port;
mod serving;

pub(super) use peer::{Outbox, ShmPeer};
pub(super) use port::ShmPort;

use super::bulk::{Destination, Fetched, Note};
use super::config::{Config, PeerId, Wire};
use super::dial::Interface;
use super::error::{ConnectError, PeerLost};
use super::handlers::Offer;
use netdyno_host::wait::Wait;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Peers looked at in every poll: those heard from last.
const HOT: usize = 8;
/// Other peers looked at in every poll, in turn.
const COLD: usize = 8;
/// Polls in vain after which there is time to tell what is owed.
const POLLS_IN_VAIN: u32 = 8;
/// Polls between two looks at the clock, so that one costs next to nothing.
const POLLS_PER_LOOK: u32 = 1024;
/// The same where every poll in vain may give the processor away for milliseconds.
const YIELDING_POLLS_PER_LOOK: u32 = 32;
/// Time between two looks at the life of the peers: a system call each.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

pub(super) struct ShmPeers {
    peers: Vec<ShmPeer>,
    /// Places of the peers heard from last, the newest at `newest`.
    hot: Vec<usize>,
    newest: usize,
    /// The next peer to be looked at in turn.
    cold: usize,
    polls_per_look: u32,
    polls_until_look: u32,
    /// The same while every poll has something else to see to.
    polls_put_off: u32,
    polls_in_vain: u32,
    peer_timeout: Duration,
    /// Where dials are turned.
    interface: Option<Arc<Interface>>,
    last_look: Instant,
    next_look: Instant,
    payload: Vec<u8>,
    /// What was got and not handed to its handler yet.
    arrived: VecDeque<Arrived>,
}

/// A get whose bytes are here.
struct Arrived {
    peer: PeerId,
    to: Destination,
    note: Note,
}

impl ShmPeers {
    pub(super) fn new(config: &Config, interface: Option<Arc<Interface>>) -> Self {
        Self {
            peers: Vec::new(),
            hot: Vec::new(),
            newest: 0,
            cold: 0,
            polls_per_look: match config.wait {
                Wait::Spin => POLLS_PER_LOOK,
                Wait::Yield | Wait::Block => YIELDING_POLLS_PER_LOOK,
            },
            polls_until_look: 0,
            polls_put_off: 0,
            polls_in_vain: 0,
            peer_timeout: config.peer_timeout,
            last_look: Instant::now(),
            next_look: Instant::now(),
            payload: Vec::with_capacity(config.medium_bytes as usize),
            arrived: VecDeque::new(),
            interface,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.peers.is_empty()
    }

    pub(super) fn connect(
        &mut self,
        index: usize,
        port: ShmPort,
        address: &[u8],
    ) -> Result<PeerId, ConnectError> {
        let place = self.peers.len();
        let id = PeerId::new(index, Wire::Shm, place);
        self.peers.push(ShmPeer::connect(id, port, address, self.interface.as_ref())?);
        if self.hot.len() < HOT {
            self.hot.push(place);
        }
        Ok(id)
    }

    #[inline(always)]
    pub(super) fn peer(&self, id: PeerId) -> &ShmPeer {
        &self.peers[id.place()]
    }

    #[inline(always)]
    pub(super) fn peer_mut(&mut self, id: PeerId) -> &mut ShmPeer {
        &mut self.peers[id.place()]
    }

    /// Requests to a peer without an answer, and gets from it without their handler.
    pub(super) fn in_flight(&self, id: PeerId) -> u32 {
        let arrived = self.arrived.iter().filter(|arrived| arrived.peer == id).count();
        self.peer(id).in_flight() + arrived as u32
    }

    /// Gets without their handler.
    fn arrived(&self) -> usize {
        self.arrived.len()
    }

    /// Sees to it that the next polls hand what was got to its handler. They find out by what
    /// they look at anyway.
    fn arrive(&mut self, arrived: Arrived) {
        if self.arrived.is_empty() {
            self.polls_put_off = self.polls_until_look;
            self.polls_until_look = 0;
        }
        self.arrived.push_back(arrived);
    }

    /// Handles what has arrived: at most four requests and one reply of each peer that it
    /// looks at.
    #[inline(always)]
    pub(super) fn poll<S>(&mut self, offer: &Offer<S>, state: &mut S) -> Result<usize, PeerLost> {
        let mut handled = 0;
        if self.polls_until_look == 0 {
            handled = self.attend(offer, state)?;
        }
        self.polls_until_look -= 1;
        for at in 0..self.hot.len() {
            handled += self.peers[self.hot[at]].poll(offer, &mut self.payload, state)?;
        }
        if self.peers.len() > HOT {
            handled += self.poll_cold(offer, state)?;
        }
        if handled > 0 {
            self.polls_in_vain = 0;
        } else {
            self.polls_in_vain += 1;
            if self.polls_in_vain == POLLS_IN_VAIN {
                self.settle();
            }
        }
        Ok(handled)
    }

    /// Tells peers what is owed: nothing flows back that could carry it.
    #[cold]
    fn settle(&mut self) {
        for peer in &mut self.peers {
            peer.settle();
        }
    }

    /// Looks at some of the other peers; one that sent something becomes hot.
    fn poll_cold<S>(&mut self, offer: &Offer<S>, state: &mut S) -> Result<usize, PeerLost> {
        let mut handled = 0;
        for _ in 0..COLD {
            let place = self.cold;
            self.cold = (self.cold + 1) % self.peers.len();
            let here = self.peers[place].poll(offer, &mut self.payload, state)?;
            if here > 0 && !self.hot.contains(&place) {
                self.newest = (self.newest + 1) % HOT;
                self.hot[self.newest] = place;
            }
            handled += here;
        }
        Ok(handled)
    }

    /// What need not be done in every poll. Returns how much was handled.
    #[cold]
    #[inline(never)]
    fn attend<S>(&mut self, offer: &Offer<S>, state: &mut S) -> Result<usize, PeerLost> {
        if self.polls_put_off == 0 {
            self.look_after_peers()?;
            self.polls_put_off = self.polls_until_look;
        }
        let Some(Arrived { peer, to, note }) = self.arrived.pop_front() else {
            self.polls_until_look = std::mem::take(&mut self.polls_put_off);
            return Ok(0);
        };
        if self.arrived.is_empty() {
            self.polls_until_look = std::mem::take(&mut self.polls_put_off);
        } else {
            self.polls_until_look = 1;
            self.polls_put_off -= 1;
        }
        // Looked at when the get began.
        if let Some(handler) = offer.handlers.fetched(note.handler) {
            handler(state, Fetched { peer, words: note.words, bytes: to.placed() });
        }
        Ok(1)
    }

    /// Looks whether the peers live.
    fn look_after_peers(&mut self) -> Result<(), PeerLost> {
        self.polls_until_look = self.polls_per_look;
        // Counts from here again, so that what comes to be owed later is told as well.
        self.polls_in_vain = 0;
        let now = Instant::now();
        if now < self.next_look {
            return Ok(());
        }
        let timeout = self.peer_timeout;
        // A program that did not poll for long is not to take its own absence for the
        // silence of its peers: of one pause a quarter of the patience counts at most.
        let most = (timeout / 4).max(Duration::from_millis(1));
        let passed = now.saturating_duration_since(self.last_look).min(most);
        self.last_look = now;
        self.next_look = now + LOOK_INTERVAL.min(timeout / 4);
        for peer in &mut self.peers {
            if let Err(lost) = peer.look(passed, timeout) {
                // The others are looked at by the next poll, not an interval later.
                self.polls_until_look = 0;
                self.next_look = now;
                return Err(lost);
            }
        }
        Ok(())
    }
}
