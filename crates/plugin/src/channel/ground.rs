//! The ground: memory that is registered and deregistered as a whole, to see what that costs. Nothing
//! is copied to it or from it.

use super::Channel;
use crate::PluginError;
use crate::abi::RawRegion;
use crate::memory::Memory;
use crate::plugin::Registers;

/// Memory, and its registrations in their order.
pub(super) struct Ground {
    memory: Memory,
    registrations: Vec<*mut RawRegion>,
}

/// Registrations that the ground has room for before it needs memory itself, which would take time.
const REGISTRATIONS: usize = 8;

impl Channel {
    /// Other memory of `bytes` bytes, which nothing has touched. What was there before is not registered
    /// any more, and given back.
    ///
    /// # Errors
    /// The layer fails to deregister, or the system has no memory.
    pub fn renew_ground(&mut self, bytes: usize) -> Result<(), PluginError> {
        while self.held.ground.as_ref().is_some_and(|ground| !ground.registrations.is_empty()) {
            self.deregister_ground()?;
        }
        self.held.ground = None;
        let (memory, registrations) = (Memory::untouched(bytes)?, Vec::with_capacity(REGISTRATIONS));
        self.held.ground = Some(Ground { memory, registrations });
        Ok(())
    }

    /// Writes to every page of the ground.
    pub fn touch_ground(&mut self) {
        if let Some(ground) = &mut self.held.ground {
            ground.memory.touch();
        }
    }

    /// Registers the ground, once more where it is registered.
    ///
    /// # Errors
    /// There is none, or the layer fails.
    #[inline(always)]
    pub fn register_ground(&mut self) -> Result<(), PluginError> {
        let Registers { register, .. } = self.registers()?;
        let Some(ground) = &mut self.held.ground else { return Err(no_ground()) };
        let memory = &ground.memory;
        // SAFETY: the channel is open; the memory stays until it is deregistered, or the channel is
        // closed.
        let raw = unsafe { register(self.raw, memory.start().as_ptr().cast(), memory.bytes()) };
        if raw.is_null() {
            // Whatever came of it, the layer may have a hold on the memory.
            std::mem::forget(self.held.ground.take());
            return Err(self.failed());
        }
        ground.registrations.push(raw);
        Ok(())
    }

    /// Takes the latest registration of the ground back.
    ///
    /// # Errors
    /// There is none, or the layer fails.
    #[inline(always)]
    pub fn deregister_ground(&mut self) -> Result<(), PluginError> {
        let Registers { deregister, .. } = self.registers()?;
        let Some(ground) = &mut self.held.ground else { return Err(no_ground()) };
        let raw = ground.registrations.pop();
        let raw = raw.ok_or_else(|| PluginError::new("the ground is not registered"))?;
        // SAFETY: the channel is open, and the region registered; nobody else has heard of it.
        let returned = unsafe { deregister(self.raw, raw) };
        if returned != 0 {
            std::mem::forget(self.held.ground.take());
        }
        self.truth(returned, "deregister_memory").map(drop)
    }
}

impl Ground {
    /// All registrations, which this forgets.
    pub(super) fn take_registrations(&mut self) -> Vec<*mut RawRegion> {
        std::mem::take(&mut self.registrations)
    }
}

#[cold]
fn no_ground() -> PluginError {
    PluginError::new("there is no ground to register")
}
