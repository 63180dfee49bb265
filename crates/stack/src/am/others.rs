//! The transports of an endpoint other than shared memory.

use super::error::{ConnectError, OpenError, PeerLost};
use super::handlers::Offer;
use super::peer_id::{PeerId, Places, Wire};
use super::port::Port;
use super::transport::Transport;
use crate::statistics::Strays;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::time::Duration;

/// The transports that are open. Its calls are cold, so that they do not slow down shared memory, where a
/// request takes nanoseconds.
pub(super) struct Others<S>(Vec<Other<S>>);

struct Other<S> {
    wire: Wire,
    places: Places,
    /// Number of peers.
    count: usize,
    transport: Box<dyn Transport<S>>,
}

impl<S> Others<S> {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    #[inline(always)]
    pub(super) fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Opens a port of a transport, which `open` opens with its first port.
    pub(super) fn open_port<T: Transport<S> + 'static>(
        &mut self,
        wire: Wire,
        open: impl FnOnce() -> Result<T, OpenError>,
    ) -> Result<Port, OpenError> {
        let at = match self.0.iter().position(|other| other.wire == wire) {
            Some(at) => at,
            None => {
                let transport = Box::new(open()?);
                self.0.push(Other { wire, places: Places::new(), count: 0, transport });
                self.0.len() - 1
            }
        };
        Ok(Port { wire, address: self.0[at].transport.open_port()?, memory: None })
    }

    pub(super) fn connect(
        &mut self,
        index: usize,
        port: &Port,
        address: &[u8],
    ) -> Result<PeerId, ConnectError> {
        let other = self.0.iter_mut().find(|other| other.wire == port.wire);
        let Other { places, count, transport, .. } = other.ok_or(ConnectError::ForeignPort)?;
        let peer = places.id(index, *count).ok_or(ConnectError::TooManyPeers)?;
        transport.connect(peer, &port.address, address)?;
        *count += 1;
        Ok(peer)
    }

    /// Returns the transport to a peer.
    ///
    /// # Panics
    /// Panics if the peer is of another endpoint.
    #[cold]
    pub(super) fn to(&self, peer: PeerId) -> &dyn Transport<S> {
        let other = self.0.iter().find(|other| other.places.include(peer));
        other.unwrap_or_else(|| is_foreign(peer)).transport.as_ref()
    }

    /// Returns the transport to a peer.
    ///
    /// # Panics
    /// As [`Others::to`].
    #[cold]
    pub(super) fn to_mut(&mut self, peer: PeerId) -> &mut dyn Transport<S> {
        let other = self.0.iter_mut().find(|other| other.places.include(peer));
        other.unwrap_or_else(|| is_foreign(peer)).transport.as_mut()
    }

    #[inline(never)]
    pub(super) fn poll(&mut self, offer: &Offer<S>, state: &mut S) -> Result<usize, PeerLost> {
        self.0.iter_mut().try_fold(0, |handled, other| Ok(handled + other.transport.poll(offer, state)?))
    }

    pub(super) fn strays(&self) -> Strays {
        self.0.iter().fold(Strays::default(), |sum, other| sum.plus(other.transport.strays()))
    }

    /// Sleeps until a message arrives or a timer is due, at most for `timeout`.
    #[cold]
    pub(super) fn sleep(&mut self, timeout: Duration) {
        let timeout = self.0.iter_mut().map(|other| other.transport.until_due()).fold(timeout, Duration::min);
        let descriptors = self.0.iter().map(|other| other.transport.descriptor());
        let mut awaited: Vec<_> =
            descriptors.map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN)).collect();
        match poll(&mut awaited, Timespec::try_from(timeout).ok().as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            // Returning early costs time and is still correct.
            Err(_) => rustix::thread::sched_yield(),
        }
    }
}

#[cold]
fn is_foreign(peer: PeerId) -> ! {
    panic!("peer {} is of another endpoint: use the identifier that `connect` returned here", peer.index())
}
