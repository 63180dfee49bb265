//! Requests and replies over a simulated interface.

use super::time::in_virtual_time;
use super::{LATEST_PS, stuck};
use netdyno_measure::layer::{LayerError, Requester, SizedRequester};
use netdyno_protocol::sim::{Interface, Truth};

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
        if self.interface.now_ps() > LATEST_PS {
            return Err(LayerError::new(
                "virtual time is over, after 53 days: choose smaller messages or shorter times in --truth",
            ));
        }
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
}
