//! A simulated interface of known parameters, in virtual time. The patterns see only
//! the face of a layer, never the truth.

use netdyno_measure::layer::{LayerError, Requester, SizedRequester, Time, Work};
use netdyno_protocol::sim::{Interface, Truth};

const PS_PER_NS: f64 = 1e3;

/// The requester's side of a simulated interface. A tick is a picosecond.
pub struct SimRequester {
    interface: Interface,
    max_window: usize,
}

impl SimRequester {
    /// An idle interface; `seed` seeds its noise.
    pub fn new(truth: Truth, seed: u64) -> Self {
        Self { interface: Interface::new(truth, seed), max_window: truth.window }
    }
}

impl Time for SimRequester {
    fn now(&mut self) -> u64 {
        self.interface.now_ps()
    }

    fn tick_ns(&self) -> f64 {
        1.0 / PS_PER_NS
    }

    fn work(&self, d_ns: f64) -> Work {
        Work((d_ns * PS_PER_NS).round() as u64)
    }

    fn compute(&mut self, work: Work) {
        self.interface.compute(work.0);
    }
}

impl Requester for SimRequester {
    fn issue(&mut self) -> Result<bool, LayerError> {
        Ok(self.interface.issue())
    }

    fn poll(&mut self) -> Result<bool, LayerError> {
        Ok(self.interface.poll())
    }

    fn wait(&mut self) -> Result<(), LayerError> {
        self.interface.wait().map_err(|_| LayerError::new("the simulated interface has nothing under way"))
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
}
