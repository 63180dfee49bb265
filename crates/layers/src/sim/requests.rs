//! Requests and replies over a simulated interface.

use super::time::{PS_PER_NS, in_virtual_time};
use super::{check_time, stuck};
use netdyno_measure::layer::{LayerError, Requester, SizedRequester};
use netdyno_measure::processor_time::{Accounts, CpuTimes, MachineAccount, ProcessTimes, SideAccount};
use netdyno_protocol::sim::{Interface, ProcessorTime, Truth};

/// The requester's side of a simulated interface.
pub struct SimRequester {
    interface: Interface,
    max_window: usize,
}

impl SimRequester {
    /// Returns an idle interface. `seed` seeds its noise.
    pub fn new(truth: Truth, seed: u64) -> Self {
        Self { interface: Interface::new(truth, seed), max_window: truth.window }
    }
}

in_virtual_time!(SimRequester, interface);

impl Requester for SimRequester {
    fn issue(&mut self) -> Result<bool, LayerError> {
        check_time(self.interface.now_ps())?;
        Ok(self.interface.issue())
    }

    fn poll(&mut self) -> Result<bool, LayerError> {
        Ok(self.interface.poll())
    }

    fn wait(&mut self) -> Result<(), LayerError> {
        self.interface.wait().map_err(stuck)
    }

    fn in_flight(&self) -> usize {
        self.interface.in_flight()
    }

    fn max_window(&self) -> usize {
        self.max_window
    }

    fn set_window(&mut self, window: usize) {
        self.interface.set_window(window);
    }
}

impl SizedRequester for SimRequester {
    fn largest(&self) -> usize {
        usize::MAX
    }

    fn set_sizes(&mut self, request_bytes: usize, reply_bytes: usize) -> Result<(), LayerError> {
        self.interface.set_sizes(request_bytes, reply_bytes);
        Ok(())
    }

    fn accounts(&mut self) -> Result<Accounts, LayerError> {
        let ProcessorTime { local_ps, remote_ps, softirq_ps } = self.interface.processor_time();
        let elapsed_ns = self.interface.now_ps() as f64 / PS_PER_NS;
        let [local_ns, remote_ns, softirq_ns] = [local_ps, remote_ps, softirq_ps].map(|ps| ps / PS_PER_NS);
        let cpu = |user_ns, softirq_ns| CpuTimes {
            user_ns,
            softirq_ns,
            idle_ns: elapsed_ns - user_ns - softirq_ns,
            ..CpuTimes::default()
        };
        let cpus = vec![(0, cpu(local_ns, 0.0)), (1, cpu(remote_ns, 0.0)), (2, cpu(0.0, softirq_ns))];
        let machine = MachineAccount { elapsed_ns, tick_ns: 0.0, cpus };
        // All time of simulated calls is outside of the kernel, and no process has another thread.
        let side = |number, user_ns| SideAccount {
            process: ProcessTimes { elapsed_ns, user_ns, ..ProcessTimes::default() },
            cpu: Some(number),
            machine: Some(machine.clone()),
            ..SideAccount::default()
        };
        Ok(Accounts { requester: side(0, local_ns), replier: side(1, remote_ns), one_machine: true })
    }

    fn sleep(&mut self, d_ns: f64) {
        self.interface.pass((d_ns * PS_PER_NS) as u64);
    }
}
