//! The sleep of an endpoint with peers over shared memory, and the wake-up of a peer that sleeps.
//!
//! An endpoint that may sleep names its wake-up in each of its ports, before the peer connects. So a peer that
//! never sleeps costs its senders nothing. Otherwise the sender writes its message and then checks whether the
//! peer sleeps ([`netdyno_host::sleep`]). A sleep is short in any case: a peer that does not ring costs latency
//! and nothing else.

use super::peer::ShmPeer;
use super::port::{ASLEEP, CLOSED};
use super::{POLLS_IN_VAIN, ShmPeers};
use netdyno_host::sleep;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

impl ShmPeers {
    /// Returns the descriptor that is readable once a peer has ended the sleep; `None` if the endpoint never
    /// sleeps.
    pub(in crate::am) fn wakeup(&self) -> Option<BorrowedFd<'_>> {
        self.wakeup.as_ref().map(AsFd::as_fd)
    }

    /// Announces a sleep to all peers. Returns how long the endpoint may sleep on its wake-up: until the peers
    /// must be checked. Returns zero if there is something to poll for, or if the endpoint never sleeps.
    #[cold]
    pub(in crate::am) fn prepare_sleep(&mut self) -> Duration {
        let Some(wakeup) = &self.wakeup else { return Duration::ZERO };
        if !self.arrived.is_empty() {
            return Duration::ZERO;
        }
        // Before the announcements: later rings must end the sleep.
        wakeup.drain();
        // Nothing may be owed to a peer meanwhile.
        self.settle();
        self.polls_in_vain = POLLS_IN_VAIN;
        self.is_asleep = true;
        self.connected().for_each(|peer| sleep::announce(peer.inbox.word(ASLEEP)));
        // Few polls follow while the endpoint sleeps, so the next one reads the clock.
        self.polls_until_look = 0;
        if self.has_message() {
            self.end_sleep();
            return Duration::ZERO;
        }
        self.next_look.saturating_duration_since(Instant::now())
    }

    /// Returns whether a peer has written a message or has closed. In the second case the next poll checks the
    /// peers.
    fn has_message(&mut self) -> bool {
        let (mut has_message, mut has_closed) = (false, false);
        for peer in self.connected() {
            has_message |= peer.has_message();
            has_closed |= peer.has_closed();
        }
        if has_closed {
            self.next_look = Instant::now();
        }
        has_message || has_closed
    }

    /// Takes the announcements back: the endpoint is awake, and its peers need not ring.
    pub(in crate::am) fn end_sleep(&mut self) {
        self.is_asleep = false;
        self.connected().for_each(|peer| sleep::cancel(peer.inbox.word(ASLEEP)));
    }

    /// Reports whether calls since [`ShmPeers::prepare_sleep`] have ended the announced sleep, or have left a
    /// get for the next poll. Sends the credits that these calls owe.
    pub(in crate::am) fn must_end_sleep(&mut self) -> bool {
        if self.polls_in_vain < POLLS_IN_VAIN {
            self.settle();
            self.polls_in_vain = POLLS_IN_VAIN;
        }
        !self.is_asleep || !self.arrived.is_empty()
    }

    fn connected(&self) -> impl Iterator<Item = &ShmPeer> {
        self.peers.iter().filter(|peer| peer.check_connected().is_ok())
    }
}

impl ShmPeer {
    fn has_message(&self) -> bool {
        self.replies_in.read().is_some() || self.requests_in.read().is_some()
    }

    fn has_closed(&self) -> bool {
        self.inbox.word(CLOSED).load(Ordering::Relaxed) != 0
    }

    /// Wakes the peer, if it sleeps. Called behind each message, or once behind several.
    #[inline]
    pub(super) fn wake(&self) {
        if let Some(waker) = &self.waker
            && sleep::is_to_be_woken(self.their_inbox.word(ASLEEP))
        {
            waker.ring();
        }
    }
}
