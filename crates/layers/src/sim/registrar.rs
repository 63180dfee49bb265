//! Registration of simulated memory.

use super::time::in_virtual_time;
use netdyno_measure::layer::{LayerError, Purpose, Registrar};
use netdyno_measure::registration::data::MemorySystem;
use netdyno_protocol::sim::Memory;
use netdyno_protocol::sim::Truth;
use netdyno_protocol::sim::memory::PAGE;

/// The names of costs that do not depend on the size of a region, if the model parameters have them.
const FIXED: [&str; 1] = ["create"];

/// A process with simulated memory.
pub struct SimRegistrar {
    memory: Memory,
    lock_limit_bytes: Option<u64>,
    fixed: &'static [&'static str],
}

impl SimRegistrar {
    /// Returns a process without memory. `seed` seeds its noise.
    pub fn new(truth: Truth, seed: u64) -> Self {
        Self {
            memory: Memory::new(&truth, seed),
            lock_limit_bytes: truth.memory.lock_limit_bytes.map(|bytes| bytes as u64),
            fixed: if truth.memory.create_ps.is_some() { &FIXED } else { &[] },
        }
    }
}

in_virtual_time!(SimRegistrar, memory);

impl Registrar for SimRegistrar {
    fn system(&self) -> MemorySystem {
        MemorySystem { page_bytes: PAGE, lock_limit_bytes: self.lock_limit_bytes, huge_pages: None }
    }

    fn renew(&mut self, _: Purpose, bytes: usize) -> Result<(), LayerError> {
        self.memory.renew(bytes);
        Ok(())
    }

    fn touch(&mut self) {
        self.memory.touch();
    }

    /// Does nothing, because simulated memory has no caches.
    fn warm_up(&mut self) -> Result<(), LayerError> {
        Ok(())
    }

    fn register(&mut self) -> Result<(), LayerError> {
        self.memory.register();
        Ok(())
    }

    fn deregister(&mut self) -> Result<(), LayerError> {
        let was_registered = self.memory.deregister();
        was_registered.then_some(()).ok_or_else(|| LayerError::new("the memory is not registered"))
    }

    fn lock(&mut self) -> Result<bool, LayerError> {
        Ok(self.memory.lock())
    }

    fn unlock(&mut self) -> Result<(), LayerError> {
        self.memory.unlock();
        Ok(())
    }

    fn fixed(&self) -> &[&'static str] {
        self.fixed
    }

    fn perform(&mut self, _: usize) -> Result<u64, LayerError> {
        let before = self.memory.now_ps();
        self.memory.create();
        Ok(self.memory.now_ps() - before)
    }
}
