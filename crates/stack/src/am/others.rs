//! The transports of an endpoint other than shared memory.

use super::error::{ConnectError, OpenError, PeerLost};
use super::handlers::Offer;
use super::peer_id::{PeerId, Places, Wire};
use super::port::Port;
use super::transport::Transport;
use crate::statistics::Strays;
use netdyno_host::datagram::SocketError;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// The transports that are open. The look-ups are cold, so that they do not slow down shared memory, where
/// a request takes nanoseconds.
pub(super) struct Others<S> {
    list: Vec<Other<S>>,
    is_corked: bool,
    /// The sum of [`Transport::progress`] after the last poll, and whether that poll changed it.
    progress: u64,
    has_made_room: bool,
    /// Whether a poll has changed it that the progress thread has not told of.
    is_untold: bool,
    /// An epoll instance with the descriptors of the transports. It is filled when the program asks for
    /// it, because the kernel then does more for each datagram.
    wakeup: OwnedFd,
}

struct Other<S> {
    wire: Wire,
    places: Places,
    /// Number of peers.
    count: usize,
    transport: Box<dyn Transport<S>>,
}

impl<S> Others<S> {
    pub(super) fn new() -> Result<Self, OpenError> {
        let wakeup = epoll::create(CreateFlags::CLOEXEC)
            .map_err(|error| SocketError::System { what: "make an epoll instance", error: error.into() })?;
        Ok(Self {
            list: Vec::new(),
            is_corked: false,
            progress: 0,
            has_made_room: false,
            is_untold: false,
            wakeup,
        })
    }

    #[inline(always)]
    pub(super) fn are_none(&self) -> bool {
        self.list.is_empty()
    }

    /// Opens a port of a transport, which `open` opens with its first port.
    pub(super) fn open_port<T: Transport<S> + 'static>(
        &mut self,
        wire: Wire,
        open: impl FnOnce() -> Result<T, OpenError>,
    ) -> Result<Port, OpenError> {
        let at = match self.list.iter().position(|other| other.wire == wire) {
            Some(at) => at,
            None => {
                let mut transport = Box::new(open()?);
                transport.set_corked(self.is_corked);
                self.list.push(Other { wire, places: Places::new(), count: 0, transport });
                self.list.len() - 1
            }
        };
        let transport = &mut self.list[at].transport;
        let address = transport.open_port()?;
        Ok(Port { wire, address, description: transport.description(), memory: None })
    }

    pub(super) fn connect(
        &mut self,
        index: usize,
        port: &Port,
        address: &[u8],
    ) -> Result<PeerId, ConnectError> {
        let other = self.list.iter_mut().find(|other| other.wire == port.wire);
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
        let other = self.list.iter().find(|other| other.places.include(peer));
        other.unwrap_or_else(|| is_foreign(peer)).transport.as_ref()
    }

    /// Returns the transport to a peer.
    ///
    /// # Panics
    /// As [`Others::to`].
    #[cold]
    pub(super) fn to_mut(&mut self, peer: PeerId) -> &mut dyn Transport<S> {
        let other = self.list.iter_mut().find(|other| other.places.include(peer));
        other.unwrap_or_else(|| is_foreign(peer)).transport.as_mut()
    }

    /// Sets whether requests wait for the next poll, a flush, or a full batch.
    pub(super) fn set_corked(&mut self, is_corked: bool) {
        self.is_corked = is_corked;
        self.list.iter_mut().for_each(|other| other.transport.set_corked(is_corked));
    }

    /// Sends the requests that wait.
    pub(super) fn flush(&mut self) {
        self.list.iter_mut().for_each(|other| other.transport.flush());
    }

    #[inline(never)]
    pub(super) fn poll(&mut self, offer: &Offer<S>, state: &mut S) -> Result<usize, PeerLost> {
        let polled = self
            .list
            .iter_mut()
            .try_fold(0, |handled, other| Ok(handled + other.transport.poll(offer, state)?));
        let progress =
            self.list.iter().fold(0, |sum: u64, other| sum.wrapping_add(other.transport.progress()));
        self.has_made_room = std::mem::replace(&mut self.progress, progress) != progress || polled.is_err();
        self.is_untold |= self.has_made_room;
        polled
    }

    #[cold]
    pub(super) fn tend(&mut self, offer: &Offer<S>) {
        self.list.iter_mut().for_each(|other| other.transport.tend(offer));
    }

    /// Reports, once, that the last poll made room for what the program sends, or reported a loss.
    pub(super) fn has_made_room(&mut self) -> bool {
        std::mem::take(&mut self.has_made_room)
    }

    /// Reports, once, that some poll made room or reported a loss.
    pub(super) fn take_untold(&mut self) -> bool {
        std::mem::take(&mut self.is_untold)
    }

    pub(super) fn strays(&self) -> Strays {
        self.list.iter().fold(Strays::default(), |sum, other| sum.plus(other.transport.strays()))
    }

    /// Returns the time until the next timer is due.
    pub(super) fn until_due(&mut self) -> Duration {
        let due = self.list.iter_mut().map(|other| other.transport.until_due());
        due.min().unwrap_or(Duration::MAX)
    }

    /// Returns a descriptor that is readable while the descriptor of a transport is, or `shm`, the wake-up
    /// of shared memory.
    ///
    /// # Panics
    /// Panics if the system has no memory left to watch a descriptor.
    pub(super) fn wakeup(&self, shm: Option<BorrowedFd<'_>>) -> BorrowedFd<'_> {
        for descriptor in self.descriptors().chain(shm) {
            let data = EventData::new_u64(0);
            match epoll::add(&self.wakeup, descriptor, data, EventFlags::IN) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => panic!("the system does not watch a descriptor: {error}"),
            }
        }
        self.wakeup.as_fd()
    }

    fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.list.iter().map(|other| other.transport.descriptor())
    }

    /// Sleeps until a message arrives, or `shm`, the wake-up of shared memory, is readable; at most for
    /// `timeout`.
    #[cold]
    pub(super) fn sleep(&self, shm: Option<BorrowedFd<'_>>, timeout: Duration) {
        let timeout = Timespec::try_from(timeout).ok();
        let descriptors = self.descriptors().chain(shm);
        let mut awaited: Vec<_> =
            descriptors.map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN)).collect();
        match poll(&mut awaited, timeout.as_ref()) {
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
