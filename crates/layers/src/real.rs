//! What layers in real time have in common: the clock, the window, and waiting.

use crate::half::{PEER_TIMEOUT, Replier};
use crate::time::{RealTime, in_real_time};
use netdyno_host::wait::Wait;
use netdyno_measure::layer::{LayerError, Requester};
use netdyno_measure::logp::data::Transport;
use netdyno_stack::am::{PeerStatistics, Strays};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Looks in vain between two readings of the clock while waiting.
const LOOKS_PER_CLOCK: u32 = 1024;
/// Longest sleep in the kernel, so that patience has an end.
pub(crate) const BLOCK_AT_MOST: Duration = Duration::from_millis(50);

/// Either end of a wire. It keeps no count of what is under way.
pub trait Wire {
    /// Sends a message; there is room for it.
    fn send(&mut self) -> Result<(), LayerError>;

    /// Takes a message, if one is there.
    fn take(&mut self) -> Result<bool, LayerError>;

    /// Answers a request, if one is there.
    fn answer(&mut self) -> Result<bool, LayerError> {
        let found = self.take()?;
        if found {
            self.send()?;
        }
        Ok(found)
    }

    /// Sleeps until something may have arrived, at most for `timeout`.
    fn block(&mut self, timeout: Duration) -> Result<(), LayerError>;

    /// What happened on the way so far, where the wire keeps count.
    fn transport(&self) -> Option<Transport> {
        None
    }
}

/// What netdyno's own stack has counted.
pub(crate) fn counted(peer: PeerStatistics, strays: Strays) -> Transport {
    let PeerStatistics { counters, memory_bytes } = peer;
    let Strays { malformed, foreign, refused } = strays;
    Transport {
        sent: counters.sent,
        retransmitted: counters.retransmitted,
        acknowledgements: counters.acknowledgements,
        duplicates: counters.duplicates,
        malformed,
        foreign,
        refused,
        memory_bytes,
    }
}

/// A requester in real time over any wire.
pub struct RealRequester<W> {
    wire: W,
    wait: Wait,
    time: RealTime,
    in_flight: usize,
    window: usize,
    max_window: usize,
}

impl<W: Wire> RealRequester<W> {
    /// A requester with at most `max_window` requests without a reply. Calibrates the clock.
    pub fn new(wire: W, wait: Wait, max_window: usize) -> Self {
        Self { wire, wait, time: RealTime::calibrate(), in_flight: 0, window: max_window, max_window }
    }

    pub(crate) fn wire(&self) -> &W {
        &self.wire
    }

    pub(crate) fn wire_mut(&mut self) -> &mut W {
        &mut self.wire
    }

    pub(crate) fn waits(&self) -> Wait {
        self.wait
    }

    /// For messages of another size another window may be the widest; it is in force.
    pub(crate) fn set_max_window(&mut self, window: usize) {
        (self.window, self.max_window) = (window, window);
    }
}

in_real_time!(RealRequester<W: Wire>);

impl<W: Wire> Requester for RealRequester<W> {
    #[inline(always)]
    fn issue(&mut self) -> Result<bool, LayerError> {
        if self.in_flight >= self.window {
            return Ok(false);
        }
        self.wire.send()?;
        self.in_flight += 1;
        Ok(true)
    }

    #[inline(always)]
    fn poll(&mut self) -> Result<bool, LayerError> {
        let found = self.wire.take()?;
        self.in_flight -= usize::from(found);
        Ok(found)
    }

    #[inline(always)]
    fn wait(&mut self) -> Result<(), LayerError> {
        let mut patience = Patience::new(self.wait);
        while !self.poll()? {
            patience.in_vain(|timeout| self.wire.block(timeout))?;
        }
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn max_window(&self) -> usize {
        self.max_window
    }

    fn set_window(&mut self, window: usize) {
        self.window = window;
    }

    fn transport(&self) -> Option<Transport> {
        self.wire.transport()
    }
}

/// What to do after a look in vain, and for how long.
pub(crate) struct Patience {
    wait: Wait,
    looks: u32,
    began: Option<Instant>,
}

impl Patience {
    #[inline(always)]
    pub(crate) fn new(wait: Wait) -> Self {
        Self { wait, looks: 0, began: None }
    }

    #[inline(always)]
    pub(crate) fn in_vain(
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
                self.looks += LOOKS_PER_CLOCK / 32;
            }
            Wait::Spin => self.looks += 1,
        }
        if self.looks >= LOOKS_PER_CLOCK {
            self.looks = 0;
            self.check()?;
        }
        Ok(())
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

/// A replier in real time over any wire.
pub struct RealReplier<W> {
    wire: W,
    wait: Wait,
}

impl<W: Wire> RealReplier<W> {
    /// A replier that waits as told.
    pub fn new(wire: W, wait: Wait) -> Self {
        Self { wire, wait }
    }
}

impl<W: Wire> Replier for RealReplier<W> {
    fn serve(&mut self, over: &AtomicBool) -> Result<(), LayerError> {
        loop {
            if self.wire.answer()? {
                continue;
            }
            if over.load(Ordering::Relaxed) {
                return Ok(());
            }
            match self.wait {
                Wait::Block => self.wire.block(BLOCK_AT_MOST)?,
                wait => wait.idle(),
            }
        }
    }
}
