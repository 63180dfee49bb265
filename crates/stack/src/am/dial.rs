//! The dials of an endpoint (León et al. 2002): it is its own network interface, which messages
//! leave and reach as late as the dials say, whichever peer they go to or come from.
//!
//! The stamp of a message lies beside it in its slot, on a line that only dialled messages touch.
//! A message that is not due stays in its ring. Dialled are requests, replies and stores; gets,
//! which only one side has a part in, are not.

use netdyno_clock::calibrate::Clock;
use netdyno_clock::ticks;
use netdyno_protocol::dial::terms::{Dials, Own, Terms, TermsError};
use netdyno_protocol::dial::timing::{Departed, Departures, Gate, Lane, Seen};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A stamp cannot lie further in the future: the peer writes it.
const LONGEST_HOLD_NS: f64 = 600e9;
/// What a peer has left behind that has ended, or closed, is held no longer than this.
const LAST_HOLD_NS: f64 = 5e9;

/// Both sides of the interface.
#[derive(Debug, Default)]
struct Sides {
    departures: Departures,
    gate: Gate,
}

/// What all peers of an endpoint go through.
#[derive(Debug)]
pub(super) struct Interface {
    terms: Terms,
    longest_hold: u64,
    last_hold: u64,
    sides: Mutex<Sides>,
}

impl Interface {
    /// `None` where no dial is turned. What the link has of its own nobody has measured.
    pub(super) fn of(dials: &Dials) -> Result<Option<Arc<Self>>, TermsError> {
        if dials.are_none() {
            return Ok(None);
        }
        let clock = Clock::calibrate();
        let terms = Terms::new(dials, &Own::UNKNOWN, clock.tick_ns)?;
        let [longest_hold, last_hold] = [LONGEST_HOLD_NS, LAST_HOLD_NS].map(|ns| clock.ticks(ns));
        Ok(Some(Arc::new(Self { terms, longest_hold, last_hold, sides: Mutex::default() })))
    }

    fn sides(&self) -> MutexGuard<'_, Sides> {
        self.sides.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the send overhead of the processor. Returns the stamp of a message of `bytes` that is
    /// sent now.
    #[cold]
    pub(super) fn depart(&self, bytes: usize) -> u64 {
        let now = spin(self.terms.send_overhead);
        self.sides().departures.depart(now, bytes, &self.terms).at
    }

    /// When a message that was stamped so is due at its peer.
    pub(super) fn due(&self, stamp: u64) -> u64 {
        stamp.saturating_add(self.terms.latency.ticks())
    }
}

/// Passes so many ticks with the processor busy. Returns when they are over.
fn spin(length: u64) -> u64 {
    let began = ticks::now();
    let mut now = began;
    while now.saturating_sub(began) < length {
        std::hint::spin_loop();
        now = ticks::now();
    }
    now
}

/// One ring of a peer, at the end that reads.
#[derive(Debug)]
pub(super) struct Inlet {
    interface: Arc<Interface>,
    lane: Lane,
    /// When the message at the head is due, once it has been seen.
    due: Option<u64>,
    /// Until when messages are held of a peer that sends no more.
    until: u64,
}

impl Inlet {
    pub(super) fn new(interface: &Arc<Interface>) -> Self {
        Self { interface: Arc::clone(interface), lane: Lane::default(), due: None, until: u64::MAX }
    }

    /// The peer sends no more. What it has sent is not waited for without end.
    pub(super) fn expect_no_more(&mut self) {
        self.until = self.until.min(ticks::now().saturating_add(self.interface.last_hold));
    }

    /// Whether the message at the head, which the peer stamped so, has to wait. Where not, it is
    /// released, and the receive overhead taken of the processor.
    #[cold]
    pub(super) fn holds(&mut self, stamp: u64) -> bool {
        let Interface { terms, longest_hold, .. } = &*self.interface;
        let now = ticks::now();
        let due = *self.due.get_or_insert_with(|| {
            // A peer without dials stamps nothing.
            let departed =
                (stamp != 0).then(|| Departed { at: stamp.min(now + longest_hold), at_once: true });
            // Its bytes were there before it departed: all messages take the same.
            self.lane.due(departed, 1, Seen::late(now), terms)
        });
        {
            let mut sides = self.interface.sides();
            if now < sides.gate.opens(due).min(self.until) {
                return true;
            }
            // What is released before it is due is not to hold up what others send.
            sides.gate.pass(due.min(now), terms);
        }
        self.due = None;
        self.lane.took_first(now);
        spin(terms.recv_overhead);
        false
    }
}
