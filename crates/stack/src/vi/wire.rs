//! What a way down does for a provider.

use crate::statistics::{PeerStatistics, Strays};
use netdyno_host::loan::Loan;
use netdyno_protocol::frame::vi_signal::Signal;
use netdyno_protocol::vi::{Completed, ConnectError, DescriptorAt, Link, Nic, Parting, ViHandle};
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

/// What a short look for a VI has found.
pub(super) enum Look {
    /// A receive is complete, which the program is given at once: it has taken all that was done before.
    Done(Completed),
    /// Nothing has come, and nothing else is to be done.
    Nothing,
    /// That is not to be said in one step, and nothing was done.
    Further,
}

/// One way down: it carries what a [`Nic`] decides, and tells it what comes. All of its calls return
/// at once, but for [`Wire::linger`].
pub(super) trait Wire: Send {
    /// This host, as programs name it on this wire.
    fn host(&self) -> Vec<u8>;

    /// The time that counts here, for [`Nic`]'s deadlines.
    fn now_ns(&mut self) -> u64;

    /// Somebody here may be asked for at a discriminator from now on. Said as often as
    /// [`Wire::ignore`].
    ///
    /// # Errors
    /// Nobody here can be: another user of this host has the name.
    fn listen(&mut self, discriminator: &[u8]) -> Result<(), ConnectError>;

    /// One who could be asked for at it is no longer.
    fn ignore(&mut self, discriminator: &[u8]);

    /// Tells a host something, now or never: what is to be answered is said again by whoever asks.
    fn say(&mut self, nic: &mut Nic, host: &[u8], signal: &Signal);

    /// Takes what comes beside the messages of VIs: signals, and the end of peers.
    fn hear(&mut self, nic: &mut Nic);

    /// A VI is connected.
    fn link(&mut self, nic: &mut Nic, vi: ViHandle, link: &Link);

    /// A VI is no longer connected. Where this side has ended that, the peer learns it behind all that
    /// was sent.
    fn unlink(&mut self, nic: &mut Nic, vi: ViHandle, link: &Link, parting: Parting);

    /// Posts a send and carries it, where that is one step: nothing stands before it, and it is short. False
    /// where it is not, and nothing was done.
    #[inline]
    fn send_at_once(&mut self, _nic: &mut Nic, _vi: ViHandle, _at: DescriptorAt) -> bool {
        false
    }

    /// Takes a message for a VI, where that is one step.
    #[inline]
    fn receive_at_once(&mut self, _nic: &mut Nic, _vi: ViHandle) -> Look {
        Look::Further
    }

    /// Carries what a VI sends, as far as there is room: all that [`Nic::next`] has.
    fn send(&mut self, nic: &mut Nic, vi: ViHandle);

    /// Takes what has come for a VI, and goes on with what it sends where that had to wait.
    fn receive(&mut self, nic: &mut Nic, vi: ViHandle);

    /// The same for all VIs. Whether anything was done.
    fn receive_all(&mut self, nic: &mut Nic) -> bool;

    /// From now on whoever has something for this process makes the descriptor readable, until the
    /// next [`Wire::hear`]. How long may be slept at most. The caller looks once more before it sleeps.
    fn prepare_sleep(&mut self) -> Duration;

    /// How long until something is due by the clock.
    fn until_due(&mut self) -> Duration {
        Duration::MAX
    }

    /// What becomes readable.
    fn descriptor(&self) -> BorrowedFd<'_>;

    /// The address that other providers of this host may have as well, where it is shared.
    fn shared_address(&self) -> Option<SocketAddr> {
        None
    }

    /// Memory is not registered any more: what is sent from there goes no further.
    fn withdraw(&mut self, _nic: &mut Nic) {}

    /// What happened between a VI and its peer, where the wire keeps count.
    fn statistics(&self, _vi: ViHandle) -> Option<PeerStatistics> {
        None
    }

    /// Datagrams that came and were not taken as any peer's, and those that never left.
    fn strays(&self) -> Strays {
        Strays::default()
    }

    /// This process has memory that peers on its host may be let read.
    fn offer(&mut self, _memory: &Arc<Loan>) {}

    /// The provider is closed: sees to it, for a bounded time, that peers get what was sent.
    fn linger(&mut self, nic: &mut Nic);
}
