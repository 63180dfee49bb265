//! What the two ends of a ring, a lane, a stage or a sleep agree by. Atomics enter these files here alone, so that
//! loom can replace them: `./check` builds the models with `--cfg loom`.

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU64, fence};
pub use std::sync::atomic::Ordering;
#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicU64, fence};

/// Stands for bytes that one end writes and the other one then reads. Under loom an access that is not handed over
/// fails the model; otherwise there is nothing of it.
#[cfg(not(loom))]
#[derive(Default)]
pub(crate) struct Tracked;

#[cfg(not(loom))]
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
