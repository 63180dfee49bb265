//! The interface between a provider and its transport.

use crate::statistics::{PeerStatistics, Strays};
use netdyno_host::loan::Loan;
use netdyno_protocol::frame::vi_signal::Signal;
use netdyno_protocol::vi::{Completed, ConnectError, DescriptorAt, Link, Nic, Parting, ViHandle};
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

/// The result of the fast path for receives.
pub(super) enum Look {
    /// A receive is complete. The program gets it at once, because it has taken all earlier completions.
    Done(Completed),
    /// No message has arrived, and nothing else is to be done.
    Nothing,
    /// The fast path does not apply, and nothing was done.
    Further,
}

/// A transport: it carries out the decisions of a [`Nic`], and reports arrivals to it. All calls but
/// [`Wire::linger`] return at once.
pub(super) trait Wire: Send {
    /// Returns the address of this host, as programs name it on this transport.
    fn host(&self) -> Vec<u8>;

    /// Returns the time for the deadlines of [`Nic`].
    fn now_ns(&mut self) -> u64;

    /// Starts to accept requests at a discriminator. Each call is matched by one of [`Wire::ignore`].
    ///
    /// # Errors
    /// Returns an error if another user of this host owns the discriminator.
    fn listen(&mut self, discriminator: &[u8]) -> Result<(), ConnectError>;

    /// Ends one [`Wire::listen`] at a discriminator.
    fn ignore(&mut self, discriminator: &[u8]);

    /// Sends a signal to a host, once. The sender of a signal repeats it until it is answered.
    fn say(&mut self, nic: &mut Nic, host: &[u8], signal: &Signal);

    /// Receives control messages: signals, and the end of peers.
    fn hear(&mut self, nic: &mut Nic);

    /// Starts the connection of a VI.
    fn link(&mut self, nic: &mut Nic, vi: ViHandle, link: &Link);

    /// Ends the connection of a VI. If this side has ended it, the peer learns so after all earlier
    /// messages.
    fn unlink(&mut self, nic: &mut Nic, vi: ViHandle, link: &Link, parting: Parting);

    /// Posts and sends a short message by the fast path, if no other message precedes it. Returns false
    /// if the fast path does not apply; then nothing was done.
    #[inline]
    fn send_at_once(&mut self, _nic: &mut Nic, _vi: ViHandle, _at: DescriptorAt) -> bool {
        false
    }

    /// Receives a message for a VI by the fast path, if that applies.
    #[inline]
    fn receive_at_once(&mut self, _nic: &mut Nic, _vi: ViHandle) -> Look {
        Look::Further
    }

    /// Sends all messages of a VI that [`Nic::next`] returns, as far as there is room.
    fn send(&mut self, nic: &mut Nic, vi: ViHandle);

    /// Receives the messages for a VI, and continues sends that had to wait.
    fn receive(&mut self, nic: &mut Nic, vi: ViHandle);

    /// Receives the messages for all VIs. Returns whether anything was done.
    fn receive_all(&mut self, nic: &mut Nic) -> bool;

    /// Prepares for a sleep: a peer that sends something makes the descriptor readable, until the next
    /// [`Wire::hear`]. Returns the longest permitted sleep. The caller checks once more before it
    /// sleeps.
    fn prepare_sleep(&mut self) -> Duration;

    /// Returns the time until the next timer is due.
    fn until_due(&mut self) -> Duration {
        Duration::MAX
    }

    /// Returns the descriptor that becomes readable.
    fn descriptor(&self) -> BorrowedFd<'_>;

    /// Returns the address that this provider shares with others of this host, if it does.
    fn shared_address(&self) -> Option<SocketAddr> {
        None
    }

    /// Reports that memory was deregistered: messages from there go no further.
    fn withdraw(&mut self, _nic: &mut Nic) {}

    /// Returns the statistics of a VI's connection, if the transport counts them.
    fn statistics(&self, _vi: ViHandle) -> Option<PeerStatistics> {
        None
    }

    /// Returns whether the peer has, or will take without this process, all that was sent on a connected VI.
    fn is_delivered(&self, _vi: ViHandle) -> bool {
        true
    }

    /// Returns counts of received datagrams that belong to no peer, and of own datagrams that were never
    /// sent.
    fn strays(&self) -> Strays {
        Strays::default()
    }

    /// Offers memory of this process, which peers on its host may map.
    fn offer(&mut self, _memory: &Arc<Loan>) {}

    /// Closes the provider: ensures, for a bounded time, that peers receive what was sent.
    fn linger(&mut self, nic: &mut Nic);
}
