//! A simulated requester whose machine also runs other programs, on a processor of their own.

use netdyno_layers::sim::SimRequester;
use netdyno_measure::layer::{LayerError, Requester, SizedRequester, Time, Work};
use netdyno_measure::processor_time::{Accounts, MachineAccount};
use netdyno_protocol::sim::Truth;

/// The processor of other programs. No communicating thread runs there.
const PROCESSOR: usize = 2;

/// Shares of a processor that other programs take.
#[derive(Clone, Copy, Debug)]
pub struct Others {
    /// While the requester sleeps.
    pub asleep: f64,
    /// The rest of the time.
    pub awake: f64,
}

/// A requester beside other programs.
pub struct AmongOthers {
    requester: SimRequester,
    others: Others,
    slept_ns: f64,
}

impl AmongOthers {
    /// Returns an idle requester. `seed` seeds its noise.
    pub fn new(truth: Truth, others: Others, seed: u64) -> Self {
        Self { requester: SimRequester::new(truth, seed), others, slept_ns: 0.0 }
    }

    /// Adds the time of the other programs to the account of a machine.
    fn add_others(&self, machine: &mut MachineAccount) {
        let awake_ns = machine.elapsed_ns - self.slept_ns;
        let taken_ns = self.others.asleep * self.slept_ns + self.others.awake * awake_ns;
        for (_, times) in machine.cpus.iter_mut().filter(|(number, _)| *number == PROCESSOR) {
            times.user_ns += taken_ns;
            times.idle_ns -= taken_ns;
        }
    }
}

impl Time for AmongOthers {
    fn now(&mut self) -> u64 {
        self.requester.now()
    }

    fn tick_ns(&self) -> f64 {
        self.requester.tick_ns()
    }

    fn work(&self, d_ns: f64) -> Work {
        self.requester.work(d_ns)
    }

    fn compute(&mut self, work: Work) {
        self.requester.compute(work);
    }

    fn is_virtual(&self) -> bool {
        true
    }
}

impl Requester for AmongOthers {
    fn issue(&mut self) -> Result<bool, LayerError> {
        self.requester.issue()
    }

    fn poll(&mut self) -> Result<bool, LayerError> {
        self.requester.poll()
    }

    fn wait(&mut self) -> Result<(), LayerError> {
        self.requester.wait()
    }

    fn in_flight(&self) -> usize {
        self.requester.in_flight()
    }

    fn max_window(&self) -> usize {
        self.requester.max_window()
    }

    fn set_window(&mut self, window: usize) {
        self.requester.set_window(window);
    }
}

impl SizedRequester for AmongOthers {
    fn largest(&self) -> usize {
        self.requester.largest()
    }

    fn set_sizes(&mut self, request_bytes: usize, reply_bytes: usize) -> Result<(), LayerError> {
        self.requester.set_sizes(request_bytes, reply_bytes)
    }

    fn accounts(&mut self) -> Result<Accounts, LayerError> {
        let mut accounts = self.requester.accounts()?;
        let sides = [&mut accounts.requester, &mut accounts.replier];
        sides
            .into_iter()
            .filter_map(|side| side.machine.as_mut())
            .for_each(|machine| self.add_others(machine));
        Ok(accounts)
    }

    fn sleep(&mut self, d_ns: f64) {
        self.slept_ns += d_ns;
        self.requester.sleep(d_ns);
    }
}
