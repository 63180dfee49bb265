//! Waiting for a peer in real time, with a timeout.

use netdyno_host::wait::Wait;
use netdyno_measure::layer::LayerError;
use netdyno_measure::logp::data::Transport;
use std::time::{Duration, Instant};

/// The peer timeout: a peer that does nothing for longer ends the run. A link may be down for 3 s, and TCP
/// then retransmits after up to twice that time.
pub const PEER_TIMEOUT: Duration = Duration::from_secs(10);

/// The slowest link, in bytes in a second, that is told from a peer that does nothing, over a library that does not say
/// how much of a message has moved.
const SLOWEST: usize = 10_000_000;
/// Empty polls between two readings of the clock.
const POLLS_PER_CLOCK: u32 = 1024;
/// Longest sleep in the kernel, so that the peer timeout is noticed.
pub(crate) const BLOCK_AT_MOST: Duration = Duration::from_millis(50);

/// A wait for the peer, from its first empty poll on.
pub(crate) struct PeerWait {
    wait: Wait,
    polls: u32,
    began: Option<Instant>,
    /// Since when nothing has been heard of the peer.
    silent_since: Option<Instant>,
    /// Bytes on their way, of which nothing is heard before all have arrived.
    bytes: usize,
    /// What the transport had moved when the wait first looked at it.
    moved: Option<u64>,
}

impl PeerWait {
    #[inline(always)]
    pub(crate) fn new(wait: Wait) -> Self {
        Self { wait, polls: 0, began: None, silent_since: None, bytes: 0, moved: None }
    }

    /// Gives the peer more time for this many bytes on their way, of which nothing is heard before all have arrived.
    #[inline(always)]
    pub(crate) fn for_bytes(self, bytes: usize) -> Self {
        Self { bytes, ..self }
    }

    /// Notes that a part of a message has moved, so that the peer is there. The time to spin is that of the whole
    /// message, as it is where a process serves ([`crate::idle`]).
    #[inline(always)]
    pub(crate) fn note_moved(&mut self) {
        self.silent_since = None;
    }

    /// Passes time after an empty poll, as `wait` says. `block` sleeps for at most the given time.
    ///
    /// # Errors
    /// [`PEER_TIMEOUT`] is over, or `block` failed.
    #[inline(always)]
    pub(crate) fn after_empty_poll(
        &mut self,
        block: impl FnOnce(Duration) -> Result<(), LayerError>,
    ) -> Result<(), LayerError> {
        self.after_empty_poll_of(&mut (), |(), timeout| block(timeout), |()| None)
    }

    /// Passes time as [`PeerWait::after_empty_poll`] does. The wait goes on while the `transport` of the `wire`
    /// counts more, because a large message may take longer on its way.
    ///
    /// # Errors
    /// [`PEER_TIMEOUT`] is over and the transport has moved nothing since it began, or `block` failed.
    #[inline(always)]
    pub(crate) fn after_empty_poll_of<W>(
        &mut self,
        wire: &mut W,
        block: impl FnOnce(&mut W, Duration) -> Result<(), LayerError>,
        transport: impl Fn(&W) -> Option<Transport>,
    ) -> Result<(), LayerError> {
        match self.wait {
            Wait::Block => {
                block(wire, BLOCK_AT_MOST)?;
                return self.check(|| transport(wire));
            }
            Wait::Yield => {
                self.wait.idle();
                self.polls += POLLS_PER_CLOCK / 32;
            }
            Wait::Spin => self.polls += 1,
            Wait::SpinFor(time) => {
                if self.began.get_or_insert_with(Instant::now).elapsed() >= time {
                    block(wire, BLOCK_AT_MOST)?;
                    return self.check(|| transport(wire));
                }
            }
        }
        if self.polls >= POLLS_PER_CLOCK {
            self.polls = 0;
            self.check(|| transport(wire))?;
        }
        Ok(())
    }

    /// Reports whether the wait has lasted for a time, once it has been worth a look at the clock.
    #[inline(always)]
    pub(crate) fn has_lasted(&self, time: Duration) -> bool {
        self.began.is_some_and(|began| began.elapsed() > time)
    }

    #[cold]
    fn check(&mut self, transport: impl Fn() -> Option<Transport>) -> Result<(), LayerError> {
        // Of a message that arrives only acknowledgements leave.
        let moved = || transport().map(|counters| counters.sent + counters.acknowledgements);
        self.began.get_or_insert_with(Instant::now);
        let silent_since = *self.silent_since.get_or_insert_with(Instant::now);
        self.moved = self.moved.or_else(&moved);
        let limit = PEER_TIMEOUT + Duration::from_secs((self.bytes / SLOWEST) as u64);
        if silent_since.elapsed() <= limit {
            return Ok(());
        }
        let moved = moved();
        if moved.is_none() || moved == self.moved {
            return Err(LayerError(format!("the other process has completed nothing for {limit:?}")));
        }
        (self.silent_since, self.moved) = (Some(Instant::now()), moved);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_goes_on_only_while_the_transport_moves() {
        let sent = |sent| Some(Transport { sent, ..Transport::default() });
        let outcome = |before: Option<u64>, transport: Option<Transport>| {
            let silent_since = Instant::now().checked_sub(2 * PEER_TIMEOUT);
            let mut wait = PeerWait { silent_since, moved: before, ..PeerWait::new(Wait::Spin) };
            wait.check(|| transport).map(|()| (wait.moved, wait.silent_since > silent_since))
        };
        assert_eq!(outcome(Some(1), sent(2)).unwrap(), (Some(2), true));
        for (before, transport) in [(Some(2), sent(2)), (None, sent(2)), (None, None)] {
            assert!(outcome(before, transport).is_err(), "{before:?}");
        }
        let mut wait = PeerWait::new(Wait::Spin);
        wait.check(|| sent(7)).unwrap();
        assert_eq!(wait.moved, Some(7));
    }

    #[test]
    fn a_long_message_has_more_time() {
        let outcome = |bytes: usize, silent: Duration| {
            let silent_since = Instant::now().checked_sub(silent);
            let mut wait = PeerWait { silent_since, ..PeerWait::new(Wait::Spin) }.for_bytes(bytes);
            wait.check(|| None)
        };
        assert!(outcome(1 << 30, 10 * PEER_TIMEOUT).is_ok() && outcome(1 << 30, 12 * PEER_TIMEOUT).is_err());
        assert!(outcome(1 << 20, 2 * PEER_TIMEOUT).is_err());
    }

    /// The other end spins once for a message, however many parts it comes in.
    #[test]
    fn a_part_of_a_message_begins_no_new_time_to_spin() {
        let (time, mut slept) = (Duration::from_secs(1), 0);
        let (began, silent_since) =
            (Instant::now().checked_sub(2 * time), Instant::now().checked_sub(2 * PEER_TIMEOUT));
        let mut wait = PeerWait { began, silent_since, ..PeerWait::new(Wait::SpinFor(time)) };
        wait.note_moved();
        for _ in 0..2 {
            let sleep = |_| {
                slept += 1;
                Ok(())
            };
            wait.after_empty_poll(sleep).unwrap();
        }
        assert_eq!(slept, 2);
    }
}
