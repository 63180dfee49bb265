//! Waiting for a peer in real time, with a timeout.

use netdyno_host::wait::Wait;
use netdyno_measure::layer::LayerError;
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
}

impl PeerWait {
    #[inline(always)]
    pub(crate) fn new(wait: Wait) -> Self {
        Self { wait, polls: 0, began: None }
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

    #[cold]
    fn check(&mut self) -> Result<(), LayerError> {
        let began = *self.began.get_or_insert_with(Instant::now);
        if began.elapsed() > PEER_TIMEOUT {
            return Err(LayerError(format!("the other process has done nothing for {PEER_TIMEOUT:?}")));
        }
        Ok(())
    }
}
