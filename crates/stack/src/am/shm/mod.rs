//! The peers of an endpoint over shared memory, polled together.

mod attached;
mod bulk;
pub(super) mod outbox;
mod peer;
mod port;
mod serving;
mod sleeping;
mod transfers;

pub(super) use peer::ShmPeer;
pub(super) use port::ShmPort;

use super::bulk::{Destination, Fetched};
use super::call::Call;
use super::config::Config;
use super::dial::Interface;
use super::error::{ConnectError, OpenError, PeerLost};
use super::handlers::Offer;
use super::peer_id::{PeerId, Places};
use netdyno_host::wait::Wait;
use netdyno_host::wakeup::Wakeup;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Number of peers checked in every poll: the ones heard from last.
const HOT: usize = 8;
/// Number of other peers checked in every poll, round-robin.
const COLD: usize = 8;
/// Polls that find nothing, after which the endpoint sends pending credits.
const POLLS_IN_VAIN: u32 = 8;
/// Polls between two readings of the clock, so that a reading costs next to nothing per poll.
const POLLS_PER_LOOK: u32 = 1024;
/// Polls between two readings of the clock, if each idle poll may yield the processor for milliseconds.
const YIELDING_POLLS_PER_LOOK: u32 = 32;
/// Time between two checks whether the peers live; a check is one system call for each peer.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

pub(super) struct ShmPeers {
    peers: Vec<ShmPeer>,
    places: Places,
    /// Indices of the peers heard from last; the newest is at `newest`.
    hot: Vec<usize>,
    newest: usize,
    /// The completed requests at the last [`ShmPeers::has_made_room`], and at the last [`ShmPeers::take_untold`].
    completed: u64,
    told: u64,
    /// The next of the other peers to check.
    cold: usize,
    polls_per_look: u32,
    polls_until_look: u32,
    /// The rest of `polls_until_look`, while every poll has a completed get to hand over.
    polls_put_off: u32,
    polls_in_vain: u32,
    peer_timeout: Duration,
    /// Made with the first port, if the endpoint may sleep.
    wakeup: Option<Wakeup>,
    /// Whether a sleep is announced to the peers.
    is_asleep: bool,
    /// Present if dials are set.
    interface: Option<Arc<Interface>>,
    last_look: Instant,
    next_look: Instant,
    payload: Vec<u8>,
    /// Completed gets that were not handed to their handlers yet.
    arrived: VecDeque<Arrived>,
}

/// A get whose bytes have arrived.
struct Arrived {
    peer: PeerId,
    to: Destination,
    call: Call,
}

impl ShmPeers {
    pub(super) fn new(config: &Config, interface: Option<Arc<Interface>>) -> Self {
        Self {
            peers: Vec::new(),
            places: Places::new(),
            hot: Vec::new(),
            newest: 0,
            completed: 0,
            told: 0,
            cold: 0,
            polls_per_look: match config.wait {
                Wait::Spin => POLLS_PER_LOOK,
                Wait::Yield | Wait::Block | Wait::SpinFor(_) => YIELDING_POLLS_PER_LOOK,
            },
            polls_until_look: 0,
            polls_put_off: 0,
            polls_in_vain: 0,
            peer_timeout: config.peer_timeout,
            wakeup: None,
            is_asleep: false,
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

    /// Opens a port of the endpoint with this number in its process.
    pub(super) fn open_port(&mut self, config: &Config, endpoint: u64) -> Result<ShmPort, OpenError> {
        if config.may_sleep() && self.wakeup.is_none() {
            self.wakeup = Some(Wakeup::new()?);
        }
        ShmPort::open(config.window, config.medium_bytes, endpoint, self.wakeup.as_ref())
    }

    pub(super) fn connect(
        &mut self,
        index: usize,
        port: ShmPort,
        address: &[u8],
    ) -> Result<PeerId, ConnectError> {
        let place = self.peers.len();
        let id = self.places.id(index, place).ok_or(ConnectError::TooManyPeers)?;
        self.peers.push(ShmPeer::connect(id, port, address, self.interface.as_ref())?);
        if self.hot.len() < HOT {
            self.hot.push(place);
        }
        // An announced sleep does not know the new peer.
        if self.is_asleep {
            self.end_sleep();
        }
        Ok(id)
    }

    /// Returns a peer, if it is one over shared memory.
    #[inline(always)]
    pub(super) fn find(&self, id: PeerId) -> Option<&ShmPeer> {
        self.peers.get(self.places.index_of(id))
    }

    /// Returns a peer, if it is one over shared memory.
    #[inline(always)]
    pub(super) fn find_mut(&mut self, id: PeerId) -> Option<&mut ShmPeer> {
        self.peers.get_mut(self.places.index_of(id))
    }

    #[inline(always)]
    pub(super) fn peer(&self, id: PeerId) -> &ShmPeer {
        &self.peers[self.places.index_of(id)]
    }

    #[inline(always)]
    pub(super) fn peer_mut(&mut self, id: PeerId) -> &mut ShmPeer {
        &mut self.peers[self.places.index_of(id)]
    }

    /// Returns the number of unanswered requests to a peer, and of gets from it whose handler has not
    /// run.
    pub(super) fn in_flight(&self, peer: &ShmPeer) -> u32 {
        let arrived = self.arrived.iter().filter(|arrived| arrived.peer == peer.id).count();
        peer.in_flight() + arrived as u32
    }

    /// Reports whether requests were completed since the last call, because of which an endpoint may not sleep.
    pub(super) fn has_made_room(&mut self) -> bool {
        let completed = self.completed();
        std::mem::replace(&mut self.completed, completed) != completed
    }

    /// Reports whether requests were completed since the last call, of which the progress thread tells.
    pub(super) fn take_untold(&mut self) -> bool {
        let completed = self.completed();
        std::mem::replace(&mut self.told, completed) != completed
    }

    fn completed(&self) -> u64 {
        self.peers.iter().map(ShmPeer::completed).sum()
    }

    /// Returns the number of gets whose handler has not run.
    fn arrived(&self) -> usize {
        self.arrived.len()
    }

    /// Makes the next polls run the handler of a get. Sets `polls_until_look` to 0, which every poll
    /// checks anyway.
    fn arrive(&mut self, arrived: Arrived) {
        if self.arrived.is_empty() {
            self.polls_put_off = self.polls_until_look;
            self.polls_until_look = 0;
        }
        self.arrived.push_back(arrived);
    }

    /// Handles messages that have arrived: at most four requests and one reply of each peer that this
    /// poll checks.
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

    /// Sends pending credits, because no reply flows back that could carry them.
    #[cold]
    fn settle(&mut self) {
        for peer in &mut self.peers {
            peer.settle();
        }
    }

    /// Checks some of the other peers. A peer that has sent something joins the peers that every poll
    /// checks.
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

    /// Does the work that is not needed in every poll. Returns the number of gets handled.
    #[cold]
    #[inline(never)]
    fn attend<S>(&mut self, offer: &Offer<S>, state: &mut S) -> Result<usize, PeerLost> {
        if self.polls_put_off == 0 {
            self.look_after_peers()?;
            self.polls_put_off = self.polls_until_look;
        }
        let Some(Arrived { peer, to, call }) = self.arrived.pop_front() else {
            self.polls_until_look = std::mem::take(&mut self.polls_put_off);
            return Ok(0);
        };
        if self.arrived.is_empty() {
            self.polls_until_look = std::mem::take(&mut self.polls_put_off);
        } else {
            self.polls_until_look = 1;
            self.polls_put_off -= 1;
        }
        // The get began only because this handler exists.
        if let Some(handler) = offer.handlers.fetched(call.handler) {
            handler(state, Fetched { peer, words: call.words, bytes: to.placed() });
        }
        Ok(1)
    }

    /// Checks whether the peers live.
    fn look_after_peers(&mut self) -> Result<(), PeerLost> {
        self.polls_until_look = self.polls_per_look;
        // Count from 0 again, so that credits that become pending later are sent as well.
        self.polls_in_vain = 0;
        let now = Instant::now();
        if now < self.next_look {
            return Ok(());
        }
        let timeout = self.peer_timeout;
        // A program that did not poll for long must not take its own absence for silence of its peers.
        // So one pause counts for at most a quarter of the timeout.
        let most = (timeout / 4).max(Duration::from_millis(1));
        let passed = now.saturating_duration_since(self.last_look).min(most);
        self.last_look = now;
        self.next_look = now + LOOK_INTERVAL.min(timeout / 4);
        // Where every poll finds something, none is in vain. A peer that sends little must not wait for that.
        self.settle();
        for peer in &mut self.peers {
            if let Err(lost) = peer.look(passed, timeout) {
                // The next poll checks the other peers, without waiting for the interval.
                self.polls_until_look = 0;
                self.next_look = now;
                return Err(lost);
            }
        }
        Ok(())
    }
}
