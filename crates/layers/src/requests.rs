//! Requests and replies of two processes in real time, over any wire.

use crate::half::Replier;
use crate::idle::Idle;
use crate::peer_wait::{BLOCK_AT_MOST, PeerWait};
use crate::time::{RealTime, in_real_time};
use netdyno_host::wait::Wait;
use netdyno_measure::layer::{LayerError, Meter, Requester};
use netdyno_measure::logp::data::Transport;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Returns the error for a reply that arrives while no request is in flight.
#[cold]
pub(crate) fn unasked_reply() -> LayerError {
    LayerError::new("a reply came that nothing was asked for")
}

/// Either end of a wire. A wire does not count requests in flight.
pub(crate) trait Wire {
    /// Sends a message. The caller has made sure that there is room for it.
    fn send(&mut self) -> Result<(), LayerError>;

    /// Takes a message, if one has arrived. Returns whether one had.
    fn take(&mut self) -> Result<bool, LayerError>;

    /// Answers a request, if one has arrived. Returns whether one had.
    fn answer(&mut self) -> Result<bool, LayerError> {
        let found = self.take()?;
        if found {
            self.send()?;
        }
        Ok(found)
    }

    /// Sleeps until something may have arrived, at most for `timeout`.
    fn block(&mut self, timeout: Duration) -> Result<(), LayerError>;

    /// Returns whether a part of a message has arrived since the last call. The other process is there then, however long
    /// the whole takes.
    fn has_moved(&mut self) -> bool {
        false
    }

    /// Returns the transport's counters, for a wire that keeps them.
    fn transport(&self) -> Option<Transport> {
        None
    }

    /// Returns the most bytes on their way of which nothing is heard before they have arrived.
    fn unheard_bytes(&self) -> usize {
        0
    }
}

/// A requester in real time over any wire.
pub(crate) struct RealRequester<W> {
    wire: W,
    wait: Wait,
    time: RealTime,
    in_flight: usize,
    window: usize,
    max_window: usize,
    /// Reads the accounts of both sides, if the layer was opened with accounts.
    meter: Option<Box<dyn Meter>>,
}

impl<W: Wire> RealRequester<W> {
    /// Returns a requester with at most `max_window` requests in flight. Calibrates the clock.
    pub(crate) fn new(wire: W, wait: Wait, max_window: usize) -> Self {
        let (time, meter) = (RealTime::calibrate(), None);
        Self { wire, wait, time, in_flight: 0, window: max_window, max_window, meter }
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

    /// Returns the meter of both sides' processor time, or takes another one.
    pub(crate) fn meter(&mut self) -> &mut Option<Box<dyn Meter>> {
        &mut self.meter
    }

    /// Sets the widest window, which depends on the size of messages, and uses it from now on.
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
        if found {
            self.in_flight = self.in_flight.checked_sub(1).ok_or_else(unasked_reply)?;
        }
        Ok(found)
    }

    #[inline(always)]
    fn wait(&mut self) -> Result<(), LayerError> {
        let mut wait = PeerWait::new(self.wait).for_bytes(self.wire.unheard_bytes());
        while !self.poll()? {
            if self.wire.has_moved() {
                wait.note_moved();
            }
            wait.after_empty_poll_of(&mut self.wire, W::block, W::transport)?;
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

/// The end of a layer that answers requests.
pub(crate) trait Responder {
    /// Answers a request, if one has arrived. Returns whether one had.
    fn answer(&mut self) -> Result<bool, LayerError>;

    /// Sleeps until something may have arrived, at most for `timeout`.
    fn block(&mut self, timeout: Duration) -> Result<(), LayerError>;
}

impl<W: Wire> Responder for W {
    #[inline(always)]
    fn answer(&mut self) -> Result<bool, LayerError> {
        Wire::answer(self)
    }

    fn block(&mut self, timeout: Duration) -> Result<(), LayerError> {
        Wire::block(self, timeout)
    }
}

/// A replier in real time.
pub(crate) struct RealReplier<R> {
    responder: R,
    wait: Wait,
}

impl<R: Responder> RealReplier<R> {
    pub(crate) fn new(responder: R, wait: Wait) -> Self {
        Self { responder, wait }
    }
}

impl<R: Responder> Replier for RealReplier<R> {
    fn serve(&mut self, over: &AtomicBool) -> Result<(), LayerError> {
        let mut idle = Idle::new(self.wait);
        loop {
            if self.responder.answer()? {
                idle.found();
                continue;
            }
            if over.load(Ordering::Relaxed) {
                return Ok(());
            }
            idle.pass(|| self.responder.block(BLOCK_AT_MOST))?;
        }
    }
}
