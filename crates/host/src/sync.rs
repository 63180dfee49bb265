//! Synchronization primitives of rings, lanes, stages and the wake-up protocol. These files import atomics
//! only from here, so that loom can replace them: `./check` builds the models with `--cfg loom`.

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU64, fence};
pub use std::sync::atomic::Ordering;
#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicU64, fence};

/// A marker for bytes that one end writes and the other end then reads. An access without a happens-before
/// order fails the model under loom, and is a data race under ThreadSanitizer. In other builds the marker
/// costs nothing. It is needed because the bytes themselves are copied as atomics, in which the sanitizer
/// finds no race.
#[cfg(not(any(loom, netdyno_tsan)))]
#[derive(Default)]
pub(crate) struct Tracked;

#[cfg(not(any(loom, netdyno_tsan)))]
impl Tracked {
    /// Reads the marked bytes.
    #[inline(always)]
    pub(crate) fn read<T>(&self, access: impl FnOnce() -> T) -> T {
        access()
    }

    /// Writes the marked bytes.
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
        // SAFETY: the other end published the word together with the bytes. If it did not, the sanitizer ends
        // the test.
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
