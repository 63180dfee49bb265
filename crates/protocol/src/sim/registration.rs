//! Memory that is registered in virtual time, with the costs of [`memory`](super::memory).

use super::memory::{MemoryTruth, pages};
use super::noise::Noise;
use super::truth::Truth;
use super::values::Ps;
use crate::random::Random;

/// One range of memory, and the process that owns it.
#[derive(Clone, Debug)]
pub struct Memory {
    truth: MemoryTruth,
    noise: Noise,
    random: Random,
    now_ps: Ps,
    bytes: usize,
    is_there: bool,
    registrations: usize,
    is_cached: bool,
}

impl Memory {
    /// Creates an empty range. `seed` seeds the noise.
    pub fn new(truth: &Truth, seed: u64) -> Self {
        Self {
            truth: truth.memory,
            noise: truth.noise,
            random: Random::new(seed),
            now_ps: 0,
            bytes: 0,
            is_there: false,
            registrations: 0,
            is_cached: false,
        }
    }

    /// Returns the virtual time, ps.
    pub fn now_ps(&self) -> Ps {
        self.now_ps
    }

    /// Computes for `ps`.
    pub fn compute(&mut self, ps: Ps) {
        self.now_ps += ps;
    }

    /// Replaces the memory by `bytes` of untouched memory.
    pub fn renew(&mut self, bytes: usize) {
        (self.bytes, self.is_there, self.registrations, self.is_cached) = (bytes, false, 0, false);
    }

    /// Touches all pages.
    pub fn touch(&mut self) {
        let faults = self.faults();
        self.spend(faults);
    }

    /// Registers the memory.
    pub fn register(&mut self) {
        let is_known = self.is_cached || self.registrations > 0;
        let cost = match self.truth.cached_ps.filter(|_| is_known) {
            Some(cached_ps) => cached_ps,
            None => self.truth.register.unwrap_or_default().of(self.bytes) + self.faults(),
        };
        self.registrations += 1;
        self.spend(cost);
    }

    /// Removes one registration. Returns `false` if there is none.
    pub fn deregister(&mut self) -> bool {
        let Some(left) = self.registrations.checked_sub(1) else { return false };
        self.is_cached |= self.truth.kept == Some(true);
        let stays = self.is_cached || left > 0;
        let cost = self.truth.cached_ps.filter(|_| stays);
        self.registrations = left;
        self.spend(cost.unwrap_or_else(|| self.truth.deregister.unwrap_or_default().of(self.bytes)));
        true
    }

    /// Locks the memory. Returns `false` if it is longer than the limit.
    pub fn lock(&mut self) -> bool {
        if self.truth.lock_limit_bytes.is_some_and(|limit| self.bytes > limit) {
            return false;
        }
        let cost = self.truth.lock.unwrap_or_default().of(self.bytes) + self.faults();
        self.spend(cost);
        true
    }

    /// Unlocks the memory.
    pub fn unlock(&mut self) {
        self.spend(self.truth.unlock.unwrap_or_default().of(self.bytes));
    }

    /// Creates the objects that transfers need besides memory.
    pub fn create(&mut self) {
        self.spend(self.truth.create_ps.unwrap_or_default());
    }

    /// Creates the missing pages and returns their cost.
    fn faults(&mut self) -> Ps {
        let missing = if self.is_there { 0 } else { pages(self.bytes) };
        self.is_there = true;
        missing * self.truth.fault_ps.unwrap_or_default()
    }

    /// Advances the time by a duration with noise.
    fn spend(&mut self, mean_ps: Ps) {
        self.now_ps += self.noise.around(mean_ps, &mut self.random);
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory::PAGE;
    use super::*;
    use alloc::format;

    fn memory(rest: &str) -> Memory {
        let truth: Truth = format!("o_s=1us,o_r=1us,g=1us,L=1us,{rest}").parse().unwrap();
        Memory::new(&truth, 1)
    }

    /// Returns the time that a call takes.
    fn took(memory: &mut Memory, call: impl FnOnce(&mut Memory)) -> Ps {
        let before = memory.now_ps();
        call(memory);
        memory.now_ps() - before
    }

    fn register(memory: &mut Memory) -> Ps {
        took(memory, Memory::register)
    }

    fn deregister(memory: &mut Memory) -> Ps {
        took(memory, |memory| assert!(memory.deregister()))
    }

    #[test]
    fn pages_are_made_once_by_whoever_comes_first() {
        let mut memory = memory("register=1us+50ns/page,fault=250ns,lock=2us,unlock=3ns/page");
        memory.renew(PAGE + 1);
        assert_eq!((register(&mut memory), register(&mut memory)), (1_600_000, 1_100_000));
        memory.renew(1);
        assert_eq!((took(&mut memory, Memory::touch), took(&mut memory, Memory::touch)), (250_000, 0));
        assert_eq!(took(&mut memory, |memory| assert!(memory.lock())), 2_000_000);
        assert_eq!(took(&mut memory, Memory::unlock), 3_000);
    }

    #[test]
    fn a_cache_knows_what_is_registered_and_what_is_kept() {
        let mut plain = memory("register=1us,cached=100ns,deregister=500ns");
        plain.renew(1);
        assert_eq!((register(&mut plain), register(&mut plain)), (1_000_000, 100_000));
        assert_eq!((deregister(&mut plain), deregister(&mut plain)), (100_000, 500_000));
        assert_eq!(register(&mut plain), 1_000_000);
        let mut kept = memory("register=1us,cached=100ns,deregister=500ns,kept=on");
        kept.renew(1);
        register(&mut kept);
        assert_eq!((deregister(&mut kept), register(&mut kept)), (100_000, 100_000));
        kept.renew(1);
        assert_eq!(register(&mut kept), 1_000_000);
        kept.deregister();
        assert!(!kept.deregister());
    }

    #[test]
    fn what_is_beyond_the_limit_is_not_locked() {
        let mut memory = memory("lock=1us,lock_limit=8KiB,create=5us");
        memory.renew(8 << 10);
        assert!(memory.lock());
        memory.renew((8 << 10) + 1);
        assert!(!memory.lock());
        assert_eq!(took(&mut memory, Memory::create), 5_000_000);
    }

    #[test]
    fn each_mistake_is_named() {
        for (text, names) in [
            ("register=1us+2us", "a part twice"),
            ("register=1ns/page+1ns/page", "a part twice"),
            ("register=1", "unit"),
            ("unlock=1us+", "unit"),
            ("fault=1ns/page", "unit"),
            ("kept=yes", "kept=on"),
            ("lock_limit=0", "2B to"),
            ("create=1us,create=1us", "twice"),
        ] {
            let message = format!("{}", text.parse::<Truth>().unwrap_err());
            assert!(message.contains(names), "{text}: {message}");
        }
    }
}
