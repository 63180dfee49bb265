//! Grounds: memory that is registered and deregistered as a whole, to see what that costs. Nothing is
//! copied to them or from them.

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

/// Grounds of a channel at most.
pub(super) const GROUNDS: usize = 2;
/// Registrations that a ground has room for before it needs memory itself, which would take time.
const REGISTRATIONS: usize = 8;

impl Channel {
    /// Other memory of `bytes` bytes, which nothing has touched. What was there before is not registered
    /// any more, and given back.
    ///
    /// # Errors
    /// The layer fails to deregister, or the system has no memory.
    pub fn renew_ground(&mut self, nth: usize, bytes: usize) -> Result<(), PluginError> {
        while self.ground(nth).is_ok_and(|ground| !ground.registrations.is_empty()) {
            self.deregister_ground(nth)?;
        }
        let place = self.held.grounds.get_mut(nth).ok_or_else(no_ground)?;
        // Given back first, so that there are never both.
        *place = None;
        let (memory, registrations) = (Memory::untouched(bytes)?, Vec::with_capacity(REGISTRATIONS));
        *place = Some(Ground { memory, registrations });
        Ok(())
    }

    /// Writes to every page of a ground.
    pub fn touch_ground(&mut self, nth: usize) {
        if let Ok(ground) = self.ground(nth) {
            ground.memory.touch();
        }
    }

    #[inline(always)]
    fn ground(&mut self, nth: usize) -> Result<&mut Ground, PluginError> {
        self.held.grounds.get_mut(nth).and_then(Option::as_mut).ok_or_else(no_ground)
    }

    /// Of a ground the layer may have a hold on, whatever it says: it stays until the process ends.
    #[cold]
    fn give_up_ground(&mut self, nth: usize) {
        std::mem::forget(self.held.grounds[nth].take());
    }

    /// Registers a ground, once more where it is registered.
    ///
    /// # Errors
    /// There is none, or the layer fails.
    #[inline(always)]
    pub fn register_ground(&mut self, nth: usize) -> Result<(), PluginError> {
        let Registers { register, .. } = self.registers()?;
        let raw_channel = self.raw;
        let ground = self.ground(nth)?;
        let memory = &ground.memory;
        // SAFETY: the channel is open; the memory stays until it is deregistered, or the channel is
        // closed.
        let raw = unsafe { register(raw_channel, memory.start().as_ptr().cast(), memory.bytes()) };
        if raw.is_null() {
            self.give_up_ground(nth);
            return Err(self.failed());
        }
        ground.registrations.push(raw);
        Ok(())
    }

    /// Takes the latest registration of a ground back.
    ///
    /// # Errors
    /// There is none, or the layer fails.
    #[inline(always)]
    pub fn deregister_ground(&mut self, nth: usize) -> Result<(), PluginError> {
        let Registers { deregister, .. } = self.registers()?;
        let raw = self.ground(nth)?.registrations.pop();
        let raw = raw.ok_or_else(|| PluginError::new("the ground is not registered"))?;
        // SAFETY: the channel is open, and the region registered; nobody else has heard of it.
        let returned = unsafe { deregister(self.raw, raw) };
        if returned != 0 {
            self.give_up_ground(nth);
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
