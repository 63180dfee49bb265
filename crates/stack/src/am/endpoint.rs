//! An endpoint: polls all peers of a program together, over every transport.

use super::bulk::Memories;
use super::call::Call;
use super::config::Config;
use super::dial::{DialSettings, Interface};
use super::error::{ConnectError, OpenError, PeerLost, RequestError, TooLong};
use super::handlers::{Handlers, Offer};
use super::others::Others;
use super::peer_id::{PeerId, Wire};
use super::port::Port;
use super::shm::ShmPeers;
use super::udp::UdpPeers;
use crate::statistics::{PeerStatistics, Strays};
use netdyno_protocol::am::Credit;
use netdyno_protocol::frame::slot::MAX_WORDS;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Longest sleep while a request waits for room in the window.
pub(super) const SLEEP_AT_MOST: Duration = Duration::from_millis(50);

/// The number of the next endpoint of this process. Each endpoint has a number of its own.
static ENDPOINTS: AtomicU64 = AtomicU64::new(1);

/// An Active Messages endpoint with handlers that work on an `S`.
///
/// Dropping the endpoint closes it. Messages sent over shared memory stay available to the peer.
/// Datagrams that are not acknowledged yet are sent again for up to [`LINGER`](super::LINGER), unless
/// the peer is lost.
pub struct Endpoint<S> {
    pub(super) config: Config,
    pub(super) offer: Offer<S>,
    /// The emulated interface that all messages pass through, if dials are set.
    interface: Option<Arc<Interface>>,
    /// Number of peers connected so far.
    count: usize,
    pub(super) shm: ShmPeers,
    /// Each is opened with its first port.
    pub(super) others: Others<S>,
}

impl<S> Endpoint<S> {
    /// Returns an endpoint without peers.
    ///
    /// # Errors
    /// Returns an error if the window, the size of medium messages or the dials are not valid.
    pub fn new(handlers: Handlers<S>, config: Config) -> Result<Self, OpenError> {
        let settings = DialSettings { settings: vec![config.dials], ..DialSettings::default() };
        Self::with_dial_settings(handlers, config, settings)
    }

    /// Returns an endpoint without peers whose dials change while links are open. `settings` gives the
    /// dial settings; [`Config::dials`] is ignored.
    ///
    /// # Errors
    /// As of [`Endpoint::new`].
    pub fn with_dial_settings(
        handlers: Handlers<S>,
        config: Config,
        settings: DialSettings,
    ) -> Result<Self, OpenError> {
        config.check()?;
        let offer = Offer { handlers, memories: Memories::new(ENDPOINTS.fetch_add(1, Ordering::Relaxed)) };
        let interface = Interface::of(settings, config.seed)?;
        let shm = ShmPeers::new(&config, interface.clone());
        Ok(Self { config, offer, interface, count: 0, shm, others: Others::new()? })
    }

    /// Opens a port for one peer. Pass its address to that peer, and get the peer's address in return.
    ///
    /// # Errors
    /// Returns an error if the system provides no shared memory, or no socket of the wire's kind at
    /// [`Config::bind`].
    pub fn open_port(&mut self, wire: Wire) -> Result<Port, OpenError> {
        let interface = &self.interface;
        match wire {
            Wire::Shm => self.shm.open_port(&self.config, self.offer.memories.endpoint()).map(Port::from),
            Wire::Udp | Wire::Xdp => {
                self.others.open_port(wire, || UdpPeers::open(wire, &self.config, interface.clone()))
            }
        }
    }

    /// Connects to the peer that received the address of `port` and returned `address` for it.
    ///
    /// # Errors
    /// Returns an error if `address` is not one of this transport, or if this process may not open the
    /// peer's memory. Returns an error if dials are set and the peer is on another host.
    pub fn connect(&mut self, port: Port, address: &[u8]) -> Result<PeerId, ConnectError> {
        let peer = match port {
            Port { memory: Some(memory), .. } => self.shm.connect(self.count, memory, address)?,
            port => self.others.connect(self.count, &port, address)?,
        };
        self.count += 1;
        Ok(peer)
    }

    /// Returns the number of requests to `peer` that are unanswered.
    pub fn in_flight(&self, peer: PeerId) -> u32 {
        match self.shm.find(peer) {
            Some(shm) => self.shm.in_flight(shm),
            None => self.others.to(peer).in_flight(peer),
        }
    }

    /// Returns the longest payload that `peer` accepts, in bytes.
    pub fn medium_bytes(&self, peer: PeerId) -> usize {
        match self.shm.find(peer) {
            Some(shm) => shm.medium_bytes(),
            None => self.others.to(peer).medium_bytes(peer),
        }
    }

    /// Returns the statistics of the connection with a peer over UDP; `None` for a peer over another
    /// transport.
    pub fn statistics(&self, peer: PeerId) -> Option<PeerStatistics> {
        match self.shm.find(peer) {
            Some(_) => None,
            None => self.others.to(peer).statistics(peer),
        }
    }

    /// Returns the counts of datagrams that belong to no peer.
    pub fn strays(&self) -> Strays {
        self.others.strays()
    }

    /// Sends a request with up to four words, if there is room in the window.
    ///
    /// # Errors
    /// Returns `Full` if the window is full, and `Lost` if the peer is lost.
    #[inline(always)]
    pub fn try_request<const N: usize>(
        &mut self,
        peer: PeerId,
        handler: u8,
        words: [u64; N],
    ) -> Result<(), RequestError> {
        if self.request_at_once(peer, handler, words) {
            return Ok(());
        }
        self.try_send_short(peer, &Call::new(handler, words))
    }

    /// Sends a request with up to four words, if that takes no more than a few stores: over shared memory, without dials,
    /// to a peer that does not sleep, with room in the window. Returns whether it was sent.
    #[inline(always)]
    pub fn request_at_once<const N: usize>(&mut self, peer: PeerId, handler: u8, words: [u64; N]) -> bool {
        const { assert!(N <= MAX_WORDS) };
        let Some(shm) = self.shm.find_mut(peer) else { return false };
        let Some(credit) = shm.simple_credit() else { return false };
        shm.send(credit, handler, &words);
        true
    }

    /// Sends a request with up to four words; polls until there is room in the window.
    ///
    /// # Errors
    /// Returns the loss of a peer: of `peer`, or of another peer whose loss a poll found.
    // With room in the window the request is a few stores, which must be inlined into the caller. A call
    // would save registers, and each saved register is one more store between the stores to the peer's
    // memory. The processor can have only a few stores in flight: a call halved the message rate.
    #[inline(always)]
    pub fn request<const N: usize>(
        &mut self,
        state: &mut S,
        peer: PeerId,
        handler: u8,
        words: [u64; N],
    ) -> Result<(), PeerLost> {
        while let Some(shm) = self.shm.find_mut(peer) {
            if let Some(credit) = shm.simple_credit() {
                shm.send(credit, handler, &words);
                return Ok(());
            }
            if shm.is_special() {
                break;
            }
            self.poll_for_room(state, peer)?;
        }
        self.request_slowly(state, peer, &Call::new(handler, words))
    }

    /// Polls until there is room for a request to a peer over shared memory.
    pub(super) fn wait_for_shm_credit(&mut self, state: &mut S, peer: PeerId) -> Result<Credit, PeerLost> {
        loop {
            if let Some(credit) = self.shm.peer_mut(peer).credit() {
                return Ok(credit);
            }
            self.poll_for_room(state, peer)?;
        }
    }

    /// Polls once for room in the window of `peer`, if that peer is still connected.
    #[inline(always)]
    fn poll_for_room(&mut self, state: &mut S, peer: PeerId) -> Result<(), PeerLost> {
        self.shm.peer(peer).check_connected()?;
        self.poll_or_idle(state)
    }

    /// Sends a request over a special link or another transport. Kept out of line, so that other links pay
    /// nothing for it.
    #[cold]
    #[inline(never)]
    fn request_slowly(&mut self, state: &mut S, peer: PeerId, call: &Call) -> Result<(), PeerLost> {
        self.until_sent(state, |endpoint| endpoint.try_send_short(peer, call))
    }

    #[cold]
    #[inline(never)]
    fn try_send_short(&mut self, peer: PeerId, call: &Call) -> Result<(), RequestError> {
        match self.shm.find_mut(peer) {
            Some(shm) => shm.try_send_short(call),
            None => self.others.to_mut(peer).try_send(peer, call, &[]),
        }
    }

    /// Calls `try_send` and polls, until `try_send` finds room. The caller has checked the length of the
    /// payload.
    pub(super) fn until_sent(
        &mut self,
        state: &mut S,
        mut try_send: impl FnMut(&mut Self) -> Result<(), RequestError>,
    ) -> Result<(), PeerLost> {
        loop {
            match try_send(self) {
                Err(RequestError::Lost(lost)) => return Err(lost),
                Err(RequestError::Full) => {}
                Ok(()) | Err(RequestError::TooLong(_)) => return Ok(()),
            }
            self.poll_or_idle(state)?;
        }
    }

    /// Polls. Passes time if there was nothing.
    #[inline(always)]
    pub(super) fn poll_or_idle(&mut self, state: &mut S) -> Result<(), PeerLost> {
        if self.poll(state)? == 0 {
            self.idle(SLEEP_AT_MOST);
        }
        Ok(())
    }

    /// Sends a request with a payload, if there is room in the window.
    ///
    /// # Errors
    /// Returns `TooLong` if the payload is too long, `Full` if the window is full, and `Lost` if the
    /// peer is lost.
    pub fn try_request_medium<const N: usize>(
        &mut self,
        peer: PeerId,
        handler: u8,
        words: [u64; N],
        payload: &[u8],
    ) -> Result<(), RequestError> {
        const { assert!(N <= MAX_WORDS) };
        TooLong::check(payload, self.medium_bytes(peer))?;
        match self.shm.find_mut(peer) {
            Some(shm) => shm.try_send_medium(handler, &words, payload),
            None => self.others.to_mut(peer).try_send(peer, &Call::new(handler, words), payload),
        }
    }

    /// Sends a request with a payload; polls until there is room in the window.
    ///
    /// # Errors
    /// Returns `TooLong` if the payload is too long, and `Lost` if a peer is lost.
    pub fn request_medium<const N: usize>(
        &mut self,
        state: &mut S,
        peer: PeerId,
        handler: u8,
        words: [u64; N],
        payload: &[u8],
    ) -> Result<(), RequestError> {
        TooLong::check(payload, self.medium_bytes(peer))?;
        self.until_sent(state, |endpoint| endpoint.try_request_medium(peer, handler, words, payload))?;
        Ok(())
    }

    /// Lets requests over UDP and AF_XDP wait, so that several leave in one system call (as with `TCP_CORK`, tcp(7)).
    /// A request then leaves at the next [`Endpoint::poll`], [`Endpoint::flush`] or [`Endpoint::uncork`], before the
    /// endpoint sleeps, or with the 32nd request to the same peer, whichever comes first. Their order stays.
    ///
    /// Requests over shared memory and over dialled links leave at once, and so do transfers, with all requests to
    /// their peer that wait.
    pub fn cork(&mut self) {
        self.others.set_corked(true);
    }

    /// Ends [`Endpoint::cork`], and sends the requests that wait.
    pub fn uncork(&mut self) {
        self.others.set_corked(false);
        self.others.flush();
    }

    /// Sends the requests that wait since [`Endpoint::cork`]. The endpoint stays corked.
    pub fn flush(&mut self) {
        self.others.flush();
    }

    /// Handles messages that have arrived: a few requests and replies of each peer that this poll
    /// checks. Never waits. Returns the number of messages handled.
    ///
    /// # Errors
    /// Returns the loss of a peer. Each loss is reported once; the other peers continue.
    #[inline]
    pub fn poll(&mut self, state: &mut S) -> Result<usize, PeerLost> {
        let handled = self.shm.poll(&self.offer, state)?;
        if self.others.are_none() { Ok(handled) } else { Ok(handled + self.others.poll(&self.offer, state)?) }
    }

    /// Sends again what is due and not acknowledged, for a program that does not poll this endpoint now, for instance
    /// because it waits for another one: over UDP a peer may wait for a datagram that was lost. Handles no message: those
    /// that have arrived wait for the next poll, which also reports a loss. A peer is not lost because it was silent while
    /// the program did not poll for long. Takes no time unless a timer is due.
    pub fn tend(&mut self) {
        self.others.tend(&self.offer);
    }

    /// Passes time after a poll that found nothing, as [`Config::wait`] says: returns at once, yields the
    /// processor, or sleeps until a message arrives or a timer is due, at most for `timeout`. An endpoint
    /// yields instead of sleeping while a dialled message over shared memory is not due yet, and after a poll that made
    /// room for further requests, for which the program may wait.
    #[inline]
    pub fn idle(&mut self, timeout: Duration) {
        if self.config.wait.sleeps() { self.block(timeout) } else { self.config.wait.idle() }
    }

    #[cold]
    fn block(&mut self, timeout: Duration) {
        if self.shm.is_empty() && self.others.are_none() {
            return self.config.wait.idle();
        }
        let most = self.until_due().min(timeout);
        if most.is_zero() {
            self.config.wait.idle();
        } else {
            self.others.sleep(self.shm.wakeup(), most);
        }
        self.shm.end_sleep();
    }

    /// Returns the longest time that a program may sleep on the endpoint's descriptor ([`AsFd`]) before it
    /// polls again: until the next timer is due. Announces the sleep to the peers over shared memory, which
    /// then end it by their next message. So call it right before the sleep.
    ///
    /// With a peer over shared memory, only an endpoint that blocks ([`Config::wait`]) or that peers wake
    /// ([`Config::is_woken`]) may sleep. Otherwise the result is zero. It is zero once after a poll that made room for
    /// further requests.
    pub fn until_due(&mut self) -> Duration {
        // This also sends the requests that wait.
        let others = self.others.until_due();
        if self.has_made_room() {
            return Duration::ZERO;
        }
        if self.shm.is_empty() { others } else { others.min(self.shm.prepare_sleep()) }
    }

    /// Reports, once, that the last poll made room for further requests or bytes, or reported a loss: nothing that arrives
    /// later tells of it.
    fn has_made_room(&mut self) -> bool {
        let by_shm = self.shm.has_made_room();
        self.others.has_made_room() || by_shm
    }

    /// Reports, once, that a poll made room of which the progress thread has not told the threads that wait.
    pub(super) fn take_untold_room(&mut self) -> bool {
        let by_shm = self.shm.take_untold();
        self.others.take_untold() || by_shm
    }

    /// Takes the announcement of [`Endpoint::until_due`] back: peers over shared memory need not end the sleep.
    pub fn cancel_sleep(&mut self) {
        self.shm.end_sleep();
    }

    /// Reports whether calls since [`Endpoint::until_due`] need a poll before `left` has passed: for a thread
    /// that sleeps on the endpoint's descriptor while others call.
    pub fn must_end_sleep(&mut self, left: Duration) -> bool {
        (!self.shm.is_empty() && self.shm.must_end_sleep()) || self.others.until_due() < left
    }

    /// Disconnects a peer: the endpoint receives nothing more from it and sends nothing more to it.
    pub fn disconnect(&mut self, peer: PeerId) {
        match self.shm.find_mut(peer) {
            Some(shm) => shm.disconnect(),
            None => self.others.to_mut(peer).disconnect(peer),
        }
    }
}

impl<S> AsFd for Endpoint<S> {
    /// Returns a descriptor that is readable while a datagram waits for a poll, and once a peer over shared
    /// memory has ended a sleep. It knows the ports that were opened before the call. A program sleeps on it
    /// for [`Endpoint::until_due`] at most, after a poll that handled nothing.
    ///
    /// # Panics
    /// Panics if the system has no memory left to watch a socket.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.others.wakeup(self.shm.wakeup())
    }
}
