//! One-sided operations over simulated interfaces.

use super::time::in_virtual_time;
use super::{LARGEST_MESSAGE, check_time, stuck};
use netdyno_measure::layer::{Initiator, LayerError};
use netdyno_measure::onesided::data::Operation;
use netdyno_protocol::sim::{Access, OneSided, Truth};

/// The operations of a simulated interface. Its target has no process that could be notified.
const OPERATIONS: [Operation; 3] = [Operation::Put, Operation::Get, Operation::FetchAdd];

/// The initiator of one-sided operations over a simulated interface.
pub struct SimInitiator {
    one_sided: OneSided,
    window: usize,
    access: Access,
    bytes: usize,
}

impl SimInitiator {
    /// Returns an idle initiator. `seed` seeds its noise.
    pub fn new(truth: Truth, seed: u64) -> Self {
        Self { one_sided: OneSided::new(truth, seed), window: truth.window, access: Access::Put, bytes: 1 }
    }
}

in_virtual_time!(SimInitiator, one_sided);

impl Initiator for SimInitiator {
    fn operations(&self) -> &[Operation] {
        &OPERATIONS
    }

    fn largest(&self) -> usize {
        LARGEST_MESSAGE
    }

    fn choose(&mut self, operation: Operation, bytes: usize) -> Result<(), LayerError> {
        self.access = match operation {
            Operation::Put => Access::Put,
            Operation::Get => Access::Get,
            Operation::FetchAdd => Access::FetchAdd,
            Operation::PutNotify => {
                return Err(LayerError::new("the simulated target has no process to notify"));
            }
        };
        self.bytes = bytes;
        Ok(())
    }

    fn window(&self) -> usize {
        self.window
    }

    fn start(&mut self) -> Result<(), LayerError> {
        check_time(self.one_sided.now_ps())?;
        self.one_sided.start(self.access, self.bytes);
        Ok(())
    }

    fn wait_local(&mut self) -> Result<(), LayerError> {
        self.one_sided.wait_local().map_err(stuck)
    }

    fn flush(&mut self) -> Result<(), LayerError> {
        self.one_sided.flush().map_err(stuck)
    }
}
