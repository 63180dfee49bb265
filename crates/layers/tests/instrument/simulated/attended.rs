//! A simulated initiator whose target has a process, in virtual time. The process replies to a put that notifies it, and
//! takes part in epochs. Operations without either are those of [`OneSided`].
//!
//! ```text
//! put with a notification: a request with the bytes, and an empty reply ([`Interface`])
//! fence: all operations are complete, then ─ o_s ─ L ─ o_r ─▶ target ─ o_s ─ L ─ o_r ─▶ initiator
//! post:  all bytes have left, then ─ o_s ─▶; all operations are complete, then ─ L ─ o_r ─▶ the target's reply is here
//! ```
//!
//! A call in the wrong order is an error: a start outside of an epoch, or an opening of an open one.

use netdyno_measure::layer::{Initiator, LayerError, Time, Work};
use netdyno_measure::onesided::data::{Operation, Synchronisation};
use netdyno_protocol::random::Random;
use netdyno_protocol::sim::{Access, Interface, OneSided, Stuck, Truth};

/// Most bytes of an operation.
const LARGEST: usize = 1 << 30;
/// Notifications are messages of their own kind, which no epoch contains.
const WITHOUT_EPOCHS: [Operation; 4] = Operation::ALL;
const IN_EPOCHS: [Operation; 3] = [Operation::Put, Operation::Get, Operation::FetchAdd];

/// The initiator.
pub struct AttendedInitiator {
    truth: Truth,
    synchronisation: Option<Synchronisation>,
    /// Draws the times of opening and closing.
    random: Random,
    one_sided: OneSided,
    /// Puts that notify the target's process.
    notifying: Interface,
    operation: Operation,
    bytes: usize,
    is_open: bool,
    /// When the bytes of all puts that notify have left the send stage, and when that stage is free.
    left_ps: u64,
    stage_ps: u64,
}

impl AttendedInitiator {
    /// Returns an idle initiator. `seed` seeds its noise.
    pub fn new(truth: Truth, synchronisation: Option<Synchronisation>, seed: u64) -> Self {
        Self {
            truth,
            synchronisation,
            random: Random::new(!seed),
            one_sided: OneSided::new(truth, seed),
            // A layer takes replies while it waits for room before the send stage. This model would take none.
            notifying: Interface::new(Truth { capacity: usize::MAX, ..truth }, seed),
            operation: Operation::Put,
            bytes: 1,
            is_open: false,
            left_ps: 0,
            stage_ps: 0,
        }
    }

    fn notifies(&self) -> bool {
        self.operation == Operation::PutNotify
    }

    fn now_ps(&self) -> u64 {
        if self.notifies() { self.notifying.now_ps() } else { self.one_sided.now_ps() }
    }

    /// Sets both models to the later of their times.
    fn meet(&mut self) {
        let times_ps = [self.one_sided.now_ps(), self.notifying.now_ps()];
        let latest_ps = times_ps[0].max(times_ps[1]);
        self.one_sided.compute(latest_ps - times_ps[0]);
        self.notifying.pass(latest_ps - times_ps[1]);
    }

    /// Lets the mean times of some steps pass, each with its noise.
    fn pass(&mut self, steps: &[u64]) {
        for &mean_ps in steps {
            let ps = self.truth.noise.around(mean_ps, &mut self.random);
            self.one_sided.compute(ps);
        }
    }

    /// Returns the steps of an empty message.
    fn message(&self) -> [u64; 3] {
        [self.truth.o_s_ps, self.truth.l_ps, self.truth.o_r_ps]
    }

    /// Reports that operations are in epochs that open and close.
    fn has_epochs(&self) -> bool {
        matches!(self.synchronisation, Some(Synchronisation::Fence | Synchronisation::Post))
    }

    /// Closes the epoch. Returns once the initiator's part of it is over.
    fn close(&mut self) -> Result<(), LayerError> {
        self.is_open = false;
        match self.synchronisation {
            Some(Synchronisation::Fence) => {
                self.one_sided.flush().map_err(stuck)?;
                self.pass(&[self.message(), self.message()].concat());
                Ok(())
            }
            _ => {
                self.one_sided.wait_local().map_err(stuck)?;
                self.pass(&[self.truth.o_s_ps]);
                Ok(())
            }
        }
    }
}

fn stuck(_: Stuck) -> LayerError {
    LayerError::new("nothing is under way")
}

impl Time for AttendedInitiator {
    fn now(&mut self) -> u64 {
        self.now_ps()
    }

    fn tick_ns(&self) -> f64 {
        1e-3
    }

    fn work(&self, d_ns: f64) -> Work {
        Work((d_ns * 1e3).round() as u64)
    }

    fn compute(&mut self, work: Work) {
        if self.notifies() { self.notifying.compute(work.0) } else { self.one_sided.compute(work.0) }
    }

    fn is_virtual(&self) -> bool {
        true
    }
}

impl Initiator for AttendedInitiator {
    fn operations(&self) -> &[Operation] {
        if self.has_epochs() { &IN_EPOCHS } else { &WITHOUT_EPOCHS }
    }

    fn largest(&self) -> usize {
        LARGEST
    }

    fn choose(&mut self, operation: Operation, bytes: usize) -> Result<(), LayerError> {
        if self.is_open || !self.operations().contains(&operation) {
            return Err(LayerError(format!("{operation:?} cannot be chosen now")));
        }
        self.meet();
        (self.operation, self.bytes) = (operation, bytes);
        self.notifying.set_sizes(bytes, 1);
        Ok(())
    }

    fn synchronisation(&self) -> Option<Synchronisation> {
        self.synchronisation
    }

    fn open_epoch(&mut self) -> Result<(), LayerError> {
        if !self.has_epochs() {
            return Ok(());
        }
        if self.is_open {
            return Err(LayerError::new("the epoch is open already"));
        }
        self.pass(&self.message());
        self.is_open = true;
        Ok(())
    }

    fn window(&self) -> usize {
        self.truth.window
    }

    fn start(&mut self) -> Result<(), LayerError> {
        if self.has_epochs() && !self.is_open {
            return Err(LayerError::new("no epoch is open"));
        }
        let access = match self.operation {
            Operation::Put => Access::Put,
            Operation::Get => Access::Get,
            Operation::FetchAdd => Access::FetchAdd,
            Operation::PutNotify => {
                while !self.notifying.issue() {
                    self.notifying.wait().map_err(stuck)?;
                }
                let data_ps = self.truth.data_of(self.bytes);
                self.left_ps = self.now_ps().max(self.stage_ps) + data_ps;
                self.stage_ps = self.left_ps + self.truth.g_ps;
                return Ok(());
            }
        };
        self.one_sided.start(access, self.bytes);
        Ok(())
    }

    fn wait_local(&mut self) -> Result<(), LayerError> {
        if self.notifies() {
            self.notifying.pass(self.left_ps.saturating_sub(self.now_ps()));
            return Ok(());
        }
        if self.has_epochs() { self.close() } else { self.one_sided.wait_local().map_err(stuck) }
    }

    fn flush(&mut self) -> Result<(), LayerError> {
        if self.notifies() {
            while self.notifying.in_flight() > 0 {
                self.notifying.wait().map_err(stuck)?;
            }
            return Ok(());
        }
        if self.is_open {
            self.close()?;
        }
        match self.synchronisation {
            // The closing fence has said that all operations are complete.
            Some(Synchronisation::Fence) => Ok(()),
            Some(Synchronisation::Post) => {
                self.one_sided.flush().map_err(stuck)?;
                self.pass(&[self.truth.l_ps, self.truth.o_r_ps]);
                Ok(())
            }
            Some(Synchronisation::Lock) | None => self.one_sided.flush().map_err(stuck),
        }
    }
}
