//! Grounds: memory that is registered and deregistered only to measure the cost of registration. No data is
//! copied to or from it.

use super::Channel;
use crate::PluginError;
use crate::abi::RawRegion;
use crate::memory::Memory;
use crate::plugin::Registers;

/// Memory, with its registrations in order of creation.
pub(super) struct Ground {
    memory: Memory,
    registrations: Vec<*mut RawRegion>,
}

/// Number of grounds of a channel.
pub(super) const GROUNDS: usize = 2;
/// Reserved capacity for registrations. Growing the vector would disturb the measurement.
const REGISTRATIONS: usize = 8;

impl Channel {
    /// Replaces ground `nth` by `bytes` bytes of untouched memory. The old ground is deregistered and freed.
    ///
    /// # Errors
    /// Returns `PluginError` if there is no ground `nth`, if the layer fails to deregister, or if the system
    /// has no memory.
    pub fn renew_ground(&mut self, nth: usize, bytes: usize) -> Result<(), PluginError> {
        while self.ground(nth).is_ok_and(|ground| !ground.registrations.is_empty()) {
            self.deregister_ground(nth)?;
        }
        let place = self.held.grounds.get_mut(nth).ok_or_else(no_ground)?;
        // Frees the old memory first, so that both never exist at once.
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

    /// Leaks a ground after a failed call, because the layer may still use its memory. It stays until the
    /// process ends.
    #[cold]
    fn give_up_ground(&mut self, nth: usize) {
        std::mem::forget(self.held.grounds[nth].take());
    }

    /// Registers a ground. A ground may be registered several times.
    ///
    /// # Errors
    /// Returns `PluginError` if there is no such ground or the layer fails.
    #[inline(always)]
    pub fn register_ground(&mut self, nth: usize) -> Result<(), PluginError> {
        let Registers { register, .. } = self.registers()?;
        let raw_channel = self.raw;
        let ground = self.ground(nth)?;
        let memory = &ground.memory;
        // SAFETY: the channel is open. The memory stays valid until it is deregistered or the channel is
        // closed.
        let raw = unsafe { register(raw_channel, memory.start().as_ptr().cast(), memory.bytes()) };
        if raw.is_null() {
            self.give_up_ground(nth);
            return Err(self.failed());
        }
        ground.registrations.push(raw);
        Ok(())
    }

    /// Deregisters the latest registration of a ground.
    ///
    /// # Errors
    /// Returns `PluginError` if the ground is not registered or the layer fails.
    #[inline(always)]
    pub fn deregister_ground(&mut self, nth: usize) -> Result<(), PluginError> {
        let Registers { deregister, .. } = self.registers()?;
        let raw = self.ground(nth)?.registrations.pop();
        let raw = raw.ok_or_else(|| PluginError::new("the ground is not registered"))?;
        // SAFETY: the channel is open, the region registered, and no other process has its key.
        let returned = unsafe { deregister(self.raw, raw) };
        if returned != 0 {
            self.give_up_ground(nth);
        }
        self.truth(returned, "deregister_memory").map(drop)
    }
}

impl Ground {
    /// Removes and returns all registrations.
    pub(super) fn take_registrations(&mut self) -> Vec<*mut RawRegion> {
        std::mem::take(&mut self.registrations)
    }
}

#[cold]
fn no_ground() -> PluginError {
    PluginError::new("there is no ground to register")
}
