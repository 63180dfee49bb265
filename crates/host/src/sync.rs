//! What the two ends of a ring, a lane, a stage or a sleep agree by. Atomics enter these files here alone, so that
//! loom can replace them: `./check` builds the models with `--cfg loom`.

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU64, fence};
pub use std::sync::atomic::Ordering;
#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicU64, fence};

/// Stands for bytes that one end writes and the other one then reads. Under loom an access that is not handed over
/// fails the model, and under ThreadSanitizer it is a data race; otherwise there is nothing of it. The bytes
/// themselves are copied as atomics, in which the sanitizer finds no race.
#[cfg(not(any(loom, netdyno_tsan)))]
#[derive(Default)]
pub(crate) struct Tracked;

#[cfg(not(any(loom, netdyno_tsan)))]
impl Tracked {
    /// Reads the bytes.
    #[inline(always)]
    pub(crate) fn read<T>(&self, access: impl FnOnce() -> T) -> T {
        access()
    }

    /// Writes the bytes.
    #[inline(always)]
    pub(crate) fn write<T>(&self, access: impl FnOnce() -> T) -> T {
        access()
    }
}

#[cfg(netdyno_tsan)]
#[derive(Default)]
pub(crate) struct Tracked(std::cell::UnsafeCell<u64>);

#[cfg(netdyno_tsan)]
impl Tracked {
    pub(crate) fn read<T>(&self, access: impl FnOnce() -> T) -> T {
        // SAFETY: the word was handed over with the bytes. Where it was not, the sanitizer ends the test.
        unsafe { self.0.get().read_volatile() };
        access()
    }

    pub(crate) fn write<T>(&self, access: impl FnOnce() -> T) -> T {
        // SAFETY: as in `read`.
        unsafe { self.0.get().write_volatile(1) };
        access()
    }
}

#[cfg(loom)]
#[derive(Default)]
pub(crate) struct Tracked(loom::cell::UnsafeCell<()>);

#[cfg(loom)]
impl Tracked {
    pub(crate) fn read<T>(&self, access: impl FnOnce() -> T) -> T {
        self.0.with(|_| access())
    }

    pub(crate) fn write<T>(&self, access: impl FnOnce() -> T) -> T {
        self.0.with_mut(|_| access())
    }
}
