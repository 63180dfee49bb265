//! An endpoint: all the peers of a program, polled together.

use super::error::{ConnectError, Loss, OpenError, PeerLost, RequestError};
use super::handlers::Handlers;
use super::peer::Peer;
use super::port::Port;
use netdyno_host::wait::Wait;
use netdyno_protocol::frame::port;
use netdyno_protocol::frame::slot::MAX_WORDS;
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

/// A peer of one endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PeerId(u32);

impl PeerId {
    /// Its place in the order of connecting, from 0.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// How an endpoint is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Requests to one peer that may be unanswered: a power of two from 1 to 32768. Of
    /// two different windows of a connection the smaller one counts.
    pub window: u32,
    /// Payload that a medium message to this endpoint may carry: a multiple of 64 up to
    /// 1 MiB.
    pub medium_bytes: u32,
    /// Patience with a peer that lives but answers nothing while requests wait.
    pub peer_timeout: Duration,
    /// What to do while nothing arrives.
    pub wait: Wait,
}

impl Default for Config {
    fn default() -> Self {
        Self { window: 256, medium_bytes: 4096, peer_timeout: Duration::from_secs(5), wait: Wait::Spin }
    }
}

/// An Active Messages endpoint with handlers that work on an `S`.
pub struct Endpoint<S> {
    config: Config,
    handlers: Handlers<S>,
    peers: Vec<Peer>,
    /// Indices of the peers heard from last, the newest at `newest`.
    hot: Vec<usize>,
    newest: usize,
    /// The next peer to be looked at in turn.
    cold: usize,
    polls_until_look: u32,
    polls_in_vain: u32,
    last_look: Instant,
    next_look: Instant,
    payload: Vec<u8>,
}

impl<S> Endpoint<S> {
    /// An endpoint without peers.
    ///
    /// # Errors
    /// A window or a medium size that cannot be made.
    pub fn new(handlers: Handlers<S>, config: Config) -> Result<Self, OpenError> {
        if !port::window_is_valid(config.window) {
            return Err(OpenError::Window(config.window));
        }
        if !port::medium_is_valid(config.medium_bytes) {
            return Err(OpenError::Medium(config.medium_bytes));
        }
        Ok(Self {
            config,
            handlers,
            peers: Vec::new(),
            hot: Vec::new(),
            newest: 0,
            cold: 0,
            polls_until_look: 0,
            polls_in_vain: 0,
            last_look: Instant::now(),
            next_look: Instant::now(),
            payload: Vec::with_capacity(config.medium_bytes as usize),
        })
    }

    /// Opens a port for one peer. Its address goes to that peer, whose address comes back.
    ///
    /// # Errors
    /// The system gives no shared memory.
    pub fn open_port(&self) -> Result<Port, OpenError> {
        Port::open(self.config.window, self.config.medium_bytes)
    }

    /// Connects the peer that has the address of `port` and gave `address` for it.
    ///
    /// # Errors
    /// The address is none, or leads to nothing that this process may open.
    pub fn connect(&mut self, port: Port, address: &[u8]) -> Result<PeerId, ConnectError> {
        let index = self.peers.len();
        let id = PeerId(index as u32);
        self.peers.push(Peer::connect(id, port, address)?);
        if self.hot.len() < HOT {
            self.hot.push(index);
        }
        Ok(id)
    }

    /// Requests to `peer` without an answer.
    pub fn in_flight(&self, peer: PeerId) -> u32 {
        self.peers[peer.index()].in_flight()
    }

    /// The longest payload that `peer` takes.
    pub fn medium_bytes(&self, peer: PeerId) -> usize {
        self.peers[peer.index()].medium_bytes()
    }

    /// Sends a request with up to four words, if there is room in the window.
    ///
    /// # Errors
    /// The window is full, or the peer is lost.
    #[inline]
    pub fn try_request<const N: usize>(
        &mut self,
        peer: PeerId,
        handler: u8,
        words: [u64; N],
    ) -> Result<(), RequestError> {
        const { assert!(N <= MAX_WORDS) };
        let peer = &mut self.peers[peer.index()];
        peer.check_room()?;
        peer.send(handler, &words);
        Ok(())
    }

    /// Sends a request with up to four words; polls until there is room.
    ///
    /// # Errors
    /// A peer is lost: this one, or another that a poll found to be.
    #[inline]
    pub fn request<const N: usize>(
        &mut self,
        state: &mut S,
        peer: PeerId,
        handler: u8,
        words: [u64; N],
    ) -> Result<(), PeerLost> {
        const { assert!(N <= MAX_WORDS) };
        self.wait_for_room(state, peer)?;
        self.peers[peer.index()].send(handler, &words);
        Ok(())
    }

    /// Sends a request with a payload, if there is room in the window.
    ///
    /// # Errors
    /// The payload is too long, the window is full, or the peer is lost.
    pub fn try_request_medium<const N: usize>(
        &mut self,
        peer: PeerId,
        handler: u8,
        words: [u64; N],
        payload: &[u8],
    ) -> Result<(), RequestError> {
        const { assert!(N <= MAX_WORDS) };
        let peer = &mut self.peers[peer.index()];
        peer.check_len(payload)?;
        peer.check_room()?;
        peer.send_medium(handler, &words, payload);
        Ok(())
    }

    /// Sends a request with a payload; polls until there is room.
    ///
    /// # Errors
    /// The payload is too long, or a peer is lost.
    pub fn request_medium<const N: usize>(
        &mut self,
        state: &mut S,
        peer: PeerId,
        handler: u8,
        words: [u64; N],
        payload: &[u8],
    ) -> Result<(), RequestError> {
        const { assert!(N <= MAX_WORDS) };
        self.peers[peer.index()].check_len(payload)?;
        self.wait_for_room(state, peer)?;
        self.peers[peer.index()].send_medium(handler, &words, payload);
        Ok(())
    }

    #[inline(always)]
    fn wait_for_room(&mut self, state: &mut S, peer: PeerId) -> Result<(), PeerLost> {
        loop {
            let wanted = &self.peers[peer.index()];
            wanted.check_connected()?;
            if wanted.has_room() {
                return Ok(());
            }
            if self.poll(state)? == 0 {
                self.config.wait.idle();
            }
        }
    }

    /// Handles what has arrived: at most four requests and one reply of each peer that it
    /// looks at. Never waits. Returns how many messages were handled.
    ///
    /// # Errors
    /// A peer is lost. Each loss is reported once; the other peers go on.
    #[inline]
    pub fn poll(&mut self, state: &mut S) -> Result<usize, PeerLost> {
        if self.polls_until_look == 0 {
            self.look_after_peers()?;
        }
        self.polls_until_look -= 1;
        let mut handled = 0;
        for at in 0..self.hot.len() {
            handled += self.peers[self.hot[at]].poll(&self.handlers, &mut self.payload, state)?;
        }
        if self.peers.len() > HOT {
            handled += self.poll_cold(state)?;
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
    fn poll_cold(&mut self, state: &mut S) -> Result<usize, PeerLost> {
        let mut handled = 0;
        for _ in 0..COLD {
            let index = self.cold;
            self.cold = (self.cold + 1) % self.peers.len();
            let here = self.peers[index].poll(&self.handlers, &mut self.payload, state)?;
            if here > 0 && !self.hot.contains(&index) {
                self.newest = (self.newest + 1) % HOT;
                self.hot[self.newest] = index;
            }
            handled += here;
        }
        Ok(handled)
    }

    /// What need not be done in every poll: looks whether the peers live.
    #[cold]
    fn look_after_peers(&mut self) -> Result<(), PeerLost> {
        self.polls_until_look = match self.config.wait {
            Wait::Spin => POLLS_PER_LOOK,
            Wait::Yield | Wait::Block => YIELDING_POLLS_PER_LOOK,
        };
        // Counts from here again, so that what comes to be owed later is told as well.
        self.polls_in_vain = 0;
        let now = Instant::now();
        if now < self.next_look {
            return Ok(());
        }
        let timeout = self.config.peer_timeout;
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

    /// Gives a peer up: nothing more is taken from it or sent to it.
    pub fn disconnect(&mut self, peer: PeerId) {
        let peer = &mut self.peers[peer.index()];
        if peer.check_connected().is_ok() {
            peer.lose(Loss::Closed);
        }
    }
}
