//! An endpoint: all the peers of a program, whatever the wire, polled together.

use super::bulk::Memories;
use super::config::{Config, PeerId, Wire};
use super::dial::{Interface, Turning};
use super::error::{ConnectError, OpenError, PeerLost, RequestError, TooLong};
use super::handlers::{Handlers, Offer, spread};
use super::port::{Port, Way};
use super::shm::{ShmPeers, ShmPort};
use super::udp::UdpPeers;
use crate::statistics::{PeerStatistics, Strays};
use netdyno_host::wait::Wait;
use netdyno_protocol::am::Credit;
use netdyno_protocol::frame::slot::MAX_WORDS;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Longest sleep while a request waits for room.
pub(super) const SLEEP_AT_MOST: Duration = Duration::from_millis(50);

/// Endpoints of this process so far: each has a number.
static ENDPOINTS: AtomicU64 = AtomicU64::new(1);

/// An Active Messages endpoint with handlers that work on an `S`.
///
/// Dropped, it closes: what was sent over shared memory is there for the peer to take; what
/// was sent over UDP and not acknowledged yet is sent again for up to
/// [`LINGER`](super::LINGER), unless the peer is lost.
pub struct Endpoint<S> {
    pub(super) config: Config,
    pub(super) offer: Offer<S>,
    /// Where dials are turned: what all messages go through.
    interface: Option<Arc<Interface>>,
    /// Peers connected so far.
    count: usize,
    pub(super) shm: ShmPeers,
    /// Made with the first UDP port.
    pub(super) udp: Option<Box<UdpPeers>>,
}

impl<S> Endpoint<S> {
    /// An endpoint without peers.
    ///
    /// # Errors
    /// A window or a medium size that cannot be made, or dials that cannot be turned so.
    pub fn new(handlers: Handlers<S>, config: Config) -> Result<Self, OpenError> {
        let turning = Turning { turns: vec![config.dials], ..Turning::default() };
        Self::with_turns(handlers, config, turning)
    }

    /// An endpoint without peers whose dials are turned while links are open: not as
    /// [`Config::dials`] say, but as `turning` does.
    ///
    /// # Errors
    /// As of [`Endpoint::new`].
    pub fn with_turns(handlers: Handlers<S>, config: Config, turning: Turning) -> Result<Self, OpenError> {
        config.check()?;
        let offer = Offer { handlers, memories: Memories::new(ENDPOINTS.fetch_add(1, Ordering::Relaxed)) };
        let interface = Interface::of(turning, config.seed)?;
        let shm = ShmPeers::new(&config, interface.clone());
        Ok(Self { config, offer, interface, count: 0, shm, udp: None })
    }

    /// Opens a port for one peer. Its address goes to that peer, whose address comes back.
    ///
    /// # Errors
    /// The system gives no shared memory, or no socket at [`Config::bind`].
    pub fn open_port(&mut self, wire: Wire) -> Result<Port, OpenError> {
        Ok(Port(match wire {
            Wire::Shm => Way::Shm(ShmPort::open(
                self.config.window,
                self.config.medium_bytes,
                self.offer.memories.endpoint(),
            )?),
            Wire::Udp => {
                let udp = match &mut self.udp {
                    Some(udp) => udp,
                    none => none.insert(Box::new(UdpPeers::open(&self.config, self.interface.clone())?)),
                };
                Way::Udp(udp.open_port()?)
            }
        }))
    }

    /// Connects the peer that has the address of `port` and gave `address` for it.
    ///
    /// # Errors
    /// The address is none of that wire, or leads to nothing that this process may open; or dials are
    /// turned, and it leads to another host.
    pub fn connect(&mut self, port: Port, address: &[u8]) -> Result<PeerId, ConnectError> {
        let peer = match (port.0, &mut self.udp) {
            (Way::Shm(port), _) => self.shm.connect(self.count, port, address)?,
            (Way::Udp(port), Some(udp)) => udp.connect(self.count, port, address)?,
            (Way::Udp(_), None) => return Err(ConnectError::ForeignPort),
        };
        self.count += 1;
        Ok(peer)
    }

    /// Requests to `peer` without an answer.
    pub fn in_flight(&self, peer: PeerId) -> u32 {
        match peer.wire() {
            Wire::Shm => self.shm.in_flight(peer),
            Wire::Udp => self.udp().in_flight(peer),
        }
    }

    /// The longest payload that `peer` takes.
    pub fn medium_bytes(&self, peer: PeerId) -> usize {
        match peer.wire() {
            Wire::Shm => self.shm.peer(peer).medium_bytes(),
            Wire::Udp => self.udp().medium_bytes(peer),
        }
    }

    /// What happened between this endpoint and a peer over UDP, and what the connection
    /// holds; `None` where the peer is reached otherwise.
    pub fn statistics(&self, peer: PeerId) -> Option<PeerStatistics> {
        match peer.wire() {
            Wire::Shm => None,
            Wire::Udp => Some(self.udp().statistics(peer)),
        }
    }

    /// Datagrams that came and belong to no peer.
    pub fn strays(&self) -> Strays {
        self.udp.as_ref().map_or_else(Strays::default, |udp| udp.strays())
    }

    /// Out of the way of shared memory, where a request takes nanoseconds.
    ///
    /// # Panics
    /// Where there is none: the caller has a peer of another endpoint.
    #[cold]
    pub(super) fn udp(&self) -> &UdpPeers {
        self.udp.as_ref().expect("a peer over UDP is of an endpoint with a socket")
    }

    #[cold]
    pub(super) fn udp_mut(&mut self) -> &mut UdpPeers {
        self.udp.as_mut().expect("a peer over UDP is of an endpoint with a socket")
    }

    /// Sends a request with up to four words, if there is room in the window.
    ///
    /// # Errors
    /// The window is full, or the peer is lost.
    #[inline(always)]
    pub fn try_request<const N: usize>(
        &mut self,
        peer: PeerId,
        handler: u8,
        words: [u64; N],
    ) -> Result<(), RequestError> {
        const { assert!(N <= MAX_WORDS) };
        match peer.wire() {
            Wire::Shm => {
                let wanted = self.shm.peer_mut(peer);
                if let Some(credit) = wanted.simple_credit() {
                    wanted.send(credit, handler, &words);
                    return Ok(());
                }
                let [a, b, c, d] = spread(words);
                wanted.try_send_short(handler, N, a, b, c, d)
            }
            Wire::Udp => {
                let [a, b, c, d] = spread(words);
                self.udp_mut().try_send_short(peer, handler, N, a, b, c, d)
            }
        }
    }

    /// Sends a request with up to four words; polls until there is room.
    ///
    /// # Errors
    /// A peer is lost: this one, or another that a poll found to be.
    // What is left to do where there is room are a few stores, and belongs into the caller: each
    // register that a call would save is one store more between those to memory of the other
    // side, of which the processor has only so many under way. That took half of the rate.
    #[inline(always)]
    pub fn request<const N: usize>(
        &mut self,
        state: &mut S,
        peer: PeerId,
        handler: u8,
        words: [u64; N],
    ) -> Result<(), PeerLost> {
        const { assert!(N <= MAX_WORDS) };
        match peer.wire() {
            Wire::Shm => loop {
                let wanted = self.shm.peer_mut(peer);
                if let Some(credit) = wanted.simple_credit() {
                    wanted.send(credit, handler, &words);
                    return Ok(());
                }
                if wanted.is_dialled() {
                    let [a, b, c, d] = spread(words);
                    return self.request_slowly(state, peer, handler, N, a, b, c, d);
                }
                self.poll_for_room(state, peer)?;
            },
            Wire::Udp => {
                let [a, b, c, d] = spread(words);
                self.request_slowly(state, peer, handler, N, a, b, c, d)
            }
        }
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

    /// Polls once, as long as the peer lives for which there is no room.
    #[inline(always)]
    fn poll_for_room(&mut self, state: &mut S, peer: PeerId) -> Result<(), PeerLost> {
        self.shm.peer(peer).check_connected()?;
        if self.poll(state)? == 0 {
            self.idle(SLEEP_AT_MOST);
        }
        Ok(())
    }

    /// Over UDP, or with dials turned: out of the way of those without.
    #[cold]
    #[inline(never)]
    #[allow(clippy::too_many_arguments, reason = "words in registers")]
    fn request_slowly(
        &mut self,
        state: &mut S,
        peer: PeerId,
        handler: u8,
        count: usize,
        a: u64,
        b: u64,
        c: u64,
        d: u64,
    ) -> Result<(), PeerLost> {
        self.until_sent(state, |endpoint| match peer.wire() {
            Wire::Shm => endpoint.shm.peer_mut(peer).try_send_short(handler, count, a, b, c, d),
            Wire::Udp => endpoint.udp_mut().try_send(peer, handler, &[a, b, c, d][..count], &[]),
        })
    }

    /// Polls until `try_send` finds room. The length of a payload has been checked.
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
            if self.poll(state)? == 0 {
                self.idle(SLEEP_AT_MOST);
            }
        }
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
        TooLong::check(payload, self.medium_bytes(peer))?;
        match peer.wire() {
            Wire::Shm => self.shm.peer_mut(peer).try_send_medium(handler, &words, payload),
            Wire::Udp => self.udp_mut().try_send(peer, handler, &words, payload),
        }
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
        TooLong::check(payload, self.medium_bytes(peer))?;
        self.until_sent(state, |endpoint| endpoint.try_request_medium(peer, handler, words, payload))?;
        Ok(())
    }

    /// Handles what has arrived: a few requests and replies of each peer that it looks at.
    /// Never waits. Returns how many messages were handled.
    ///
    /// # Errors
    /// A peer is lost. Each loss is reported once; the other peers go on.
    #[inline]
    pub fn poll(&mut self, state: &mut S) -> Result<usize, PeerLost> {
        let handled = self.shm.poll(&self.offer, state)?;
        match &mut self.udp {
            None => Ok(handled),
            Some(udp) => Ok(handled + udp.poll(&self.offer, state)?),
        }
    }

    /// Passes time after a poll in vain, as [`Config::wait`] says: not at all, by giving the
    /// processor away, or asleep until a datagram comes or there is something to do, at most
    /// for `timeout`. Shared memory wakes nobody: with a peer there, nobody sleeps.
    #[inline]
    pub fn idle(&mut self, timeout: Duration) {
        match &mut self.udp {
            Some(udp) if self.config.wait == Wait::Block && self.shm.is_empty() => udp.block(timeout),
            _ => self.config.wait.idle(),
        }
    }

    /// Gives a peer up: nothing more is taken from it or sent to it.
    pub fn disconnect(&mut self, peer: PeerId) {
        match peer.wire() {
            Wire::Shm => self.shm.peer_mut(peer).disconnect(),
            Wire::Udp => self.udp_mut().disconnect(peer),
        }
    }
}
