//! Waiting for a peer in real time, with a timeout.

use netdyno_host::wait::Wait;
use netdyno_measure::layer::LayerError;
use netdyno_measure::logp::data::Transport;
use std::time::{Duration, Instant};

/// The peer timeout: a peer that does nothing for longer ends the run. A link may be down for 3 s, and TCP
/// then retransmits after up to twice that time.
pub const PEER_TIMEOUT: Duration = Duration::from_secs(10);

/// Empty polls between two readings of the clock.
const POLLS_PER_CLOCK: u32 = 1024;
/// Longest sleep in the kernel, so that the peer timeout is noticed.
pub(crate) const BLOCK_AT_MOST: Duration = Duration::from_millis(50);

/// A wait for the peer, from its first empty poll on.
pub(crate) struct PeerWait {
    wait: Wait,
    polls: u32,
    began: Option<Instant>,
    is_over: bool,
    /// What the transport had moved when the time was last over.
    moved: Option<u64>,
}

impl PeerWait {
    #[inline(always)]
    pub(crate) fn new(wait: Wait) -> Self {
        Self { wait, polls: 0, began: None, is_over: false, moved: None }
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
        match self.wait {
            Wait::Block => {
                block(BLOCK_AT_MOST)?;
                return self.check();
            }
            Wait::Yield => {
                self.wait.idle();
                self.polls += POLLS_PER_CLOCK / 32;
            }
            Wait::Spin => self.polls += 1,
            Wait::SpinFor(time) => {
                if self.began.get_or_insert_with(Instant::now).elapsed() >= time {
                    block(BLOCK_AT_MOST)?;
                    return self.check();
                }
            }
        }
        if self.polls >= POLLS_PER_CLOCK {
            self.polls = 0;
            self.check()?;
        }
        Ok(())
    }

    /// Reports whether the wait has lasted for a time, once it has been worth a look at the clock.
    #[inline(always)]
    pub(crate) fn has_lasted(&self, time: Duration) -> bool {
        self.began.is_some_and(|began| began.elapsed() > time)
    }

    /// Begins the time again after `error`, if the time is over and the transport has moved datagrams since it was last
    /// over: a large message may take longer on its way. The transport has a timeout of its own for a peer that is gone.
    ///
    /// # Errors
    /// Returns `error` otherwise.
    #[cold]
    pub(crate) fn while_moving(
        &mut self,
        error: LayerError,
        transport: Option<Transport>,
    ) -> Result<(), LayerError> {
        // Of a message that arrives only acknowledgements leave.
        let moved = transport.map(|counters| counters.sent + counters.acknowledgements);
        if !self.is_over || moved.is_none() || moved == self.moved {
            return Err(error);
        }
        *self = Self { moved, ..Self::new(self.wait) };
        Ok(())
    }

    #[cold]
    fn check(&mut self) -> Result<(), LayerError> {
        let began = *self.began.get_or_insert_with(Instant::now);
        if began.elapsed() > PEER_TIMEOUT {
            self.is_over = true;
            return Err(LayerError(format!("the other process has done nothing for {PEER_TIMEOUT:?}")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_goes_on_only_while_the_transport_moves() {
        let sent = |sent| Some(Transport { sent, ..Transport::default() });
        let late = || PeerWait { is_over: true, ..PeerWait::new(Wait::Spin) };
        let outcome =
            |wait: &mut PeerWait, transport| wait.while_moving(LayerError::new("late"), transport).is_ok();
        assert!(!outcome(&mut PeerWait::new(Wait::Spin), sent(1)), "another error ends the wait");
        assert!(!outcome(&mut late(), None), "nobody knows whether it moves");
        let mut wait = late();
        assert!(outcome(&mut wait, sent(1)) && !wait.is_over);
        wait.is_over = true;
        assert!(!outcome(&mut wait, sent(1)));
        assert!(outcome(&mut wait, sent(2)));
    }
}
