//! The known time of a cycle of post-work-wait, for messages of one size.
//!
//! Let T = o_s + data + L + steal + o_r be the time of one message. If messages make progress by themselves, a
//! cycle without work and with a batch of B messages is the longest of:
//! * T + (B - 1) m, if m is the longest of o_s, g + data, and o_r + steal: each further message follows after m.
//!   Towards the other process m is the longest of all four, because o_r and steal are on different processors
//!   there. A cycle has the mean of both, because the answers to two batches are in flight;
//! * o_s + (B - 1) max(o_s, g + data) + g + data, after which the last send is complete;
//! * B (o_s + steal + o_r), the worker's processor time.
//!
//! The arrival of a message interrupts the receive of an earlier one. If steal is long, the receives of a batch may
//! not end before the next batch has arrived as well. The worker then posts two batches one right after the other,
//! and goes on so: each second cycle is short. Two cycles then take 2 T + (2 B - 1) m + (B - 1) m', where m is that
//! towards the other process and m' that towards the worker. The tests do not know which of both happens.
//!
//! If messages make progress inside calls only, they leave once all of them are posted.

use netdyno_protocol::sim::Truth;

/// The known values for messages of one size, in ns.
#[derive(Clone, Copy, Debug)]
pub struct KnownCycle {
    /// Number of messages each way in a cycle.
    pub batch: f64,
    pub o_s: f64,
    pub o_r: f64,
    /// Time that the arrival of a message takes from the worker's computation.
    pub steal: f64,
    /// Processor time of the helper for a message.
    pub helper: f64,
    /// The time of one message.
    pub one_way: f64,
    /// The time for which a message occupies a stage of the interface.
    stage: f64,
    pub moves_by_itself: bool,
}

impl KnownCycle {
    pub fn of(truth: &Truth, bytes: usize, batch: usize) -> Self {
        let ns = |ps: u64| ps as f64 / 1e3;
        let (o_s, o_r, data) = (ns(truth.o_s_of(bytes)), ns(truth.o_r_of(bytes)), ns(truth.data_of(bytes)));
        let steal = ns(truth.steal_of(bytes));
        Self {
            batch: batch as f64,
            o_s,
            o_r,
            steal,
            helper: ns(truth.helper_of(bytes)),
            one_way: o_s + data + ns(truth.l_of(bytes)) + steal + o_r,
            stage: ns(truth.g_ps) + data,
            moves_by_itself: truth.offload || bytes <= truth.eager_bytes,
        }
    }

    /// Returns the time between messages one way.
    pub fn gap(&self) -> f64 {
        self.stage.max(self.o_s).max(self.o_r).max(self.steal)
    }

    /// Returns the worker's processor time for the messages of a cycle that move by themselves.
    fn busy(&self) -> f64 {
        self.batch * (self.o_s + self.steal + self.o_r)
    }

    /// Returns the time between messages towards the worker, if they move by themselves.
    fn gap_here(&self) -> f64 {
        self.stage.max(self.o_s).max(self.o_r + self.steal)
    }

    /// Returns the time of a cycle.
    pub fn cycle(&self, work: f64) -> f64 {
        let Self { batch, o_s, o_r, steal, one_way, stage, .. } = *self;
        let further = batch - 1.0;
        if self.moves_by_itself {
            let arrived = one_way + further * f64::midpoint(self.gap_here(), self.gap());
            let sent = o_s + further * o_s.max(stage) + stage;
            arrived.max(sent).max(self.busy() + work)
        } else {
            let (arrived, sent) = (one_way + further * stage.max(o_r + steal), o_s + batch * stage);
            further * o_s + arrived.max(sent) + work
        }
    }

    /// Returns the longest mean time of a cycle without work: that of two batches that are posted together, if
    /// interruptions may bring them together.
    pub fn longest_cycle(&self) -> f64 {
        let cycle = self.cycle(0.0);
        if !self.moves_by_itself || self.steal == 0.0 {
            return cycle;
        }
        let further_there = (2.0 * self.batch - 1.0) * self.gap();
        let further_here = (self.batch - 1.0) * self.gap_here();
        cycle.max(self.one_way + f64::midpoint(further_there, further_here))
    }

    /// Returns the work that is free if a cycle without work takes `cycle`.
    pub fn free(&self, cycle: f64) -> f64 {
        if self.moves_by_itself { cycle - self.busy() } else { 0.0 }
    }

    /// Returns the share of `waiting` that long work hides: all of it but the receives.
    pub fn hidden(&self, waiting: f64) -> f64 {
        if self.moves_by_itself { 1.0 - self.batch * self.o_r / waiting } else { 0.0 }
    }

    /// Returns the time inside the calls of a cycle with long work.
    pub fn calls(&self) -> f64 {
        if self.moves_by_itself { self.batch * (self.o_s + self.o_r) } else { self.cycle(0.0) }
    }

    /// Returns the time that a cycle with long work takes from that work.
    pub fn stolen(&self) -> f64 {
        if self.moves_by_itself { self.batch * self.steal } else { 0.0 }
    }

    /// Returns the helper's processor time for a cycle.
    pub fn helped(&self) -> f64 {
        self.batch * self.helper
    }
}
