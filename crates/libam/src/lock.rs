//! The lock of a bundle that several threads use. A thread that holds it may take it again: a handler, which runs
//! while its thread holds the lock, calls functions that take it.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Locks a mutex. No thread panics while it holds one.
pub fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// No thread.
pub const NONE: u64 = 0;

/// Returns the number of this thread: the address of its control block. No other thread of the process that lives has it.
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn this_thread() -> u64 {
    let thread;
    // SAFETY: on Linux the first word of the control block, to which FS points, is its own address (System V ABI,
    // thread-local storage). In a shared library, a thread-local variable would be a call.
    unsafe {
        std::arch::asm!("mov {}, fs:0", out(reg) thread, options(pure, readonly, nostack, preserves_flags));
    }
    thread
}

/// Returns the number of this thread: the address of a variable of its own. No other thread of the process that lives
/// has it.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub fn this_thread() -> u64 {
    thread_local! {
        static THREAD: u8 = const { 0 };
    }
    THREAD.with(|thread| std::ptr::from_ref(thread).addr() as u64)
}

thread_local! {
    /// The locks that this thread holds.
    static HELD: Cell<u32> = const { Cell::new(0) };
}

/// A lock that its holder may take again.
#[derive(Debug, Default)]
pub struct Lock {
    /// The thread that holds it.
    holder: AtomicU64,
    is_taken: Mutex<bool>,
    is_free: Condvar,
    /// The number of times that the holder has taken it. Only the holder accesses it.
    depth: Cell<u32>,
}

/// The lock is held until this is dropped.
pub struct Held<'a>(&'a Lock);

impl Lock {
    /// Takes the lock.
    #[inline(never)]
    pub fn take(&self) -> Held<'_> {
        let thread = this_thread();
        // Only this thread writes its own number here, so that a relaxed load finds it if and only if it holds the lock.
        if self.holder.load(Ordering::Relaxed) != thread {
            let mut is_taken = held(&self.is_taken);
            while *is_taken {
                is_taken = self.is_free.wait(is_taken).unwrap_or_else(PoisonError::into_inner);
            }
            *is_taken = true;
            self.begin(thread);
        }
        self.deepen()
    }

    /// Reports whether this thread holds the lock.
    pub fn is_held_by_this_thread(&self) -> bool {
        self.holder.load(Ordering::Relaxed) == this_thread()
    }

    /// Reports whether this thread can take the lock and never waits for a thread that waits for it: it holds this lock, or
    /// none at all.
    pub fn is_safe_to_take(&self) -> bool {
        self.is_held_by_this_thread() || HELD.get() == 0
    }

    /// Takes the lock, unless another thread holds it.
    pub fn try_take(&self) -> Option<Held<'_>> {
        let thread = this_thread();
        if self.holder.load(Ordering::Relaxed) != thread {
            let mut is_taken = held(&self.is_taken);
            if *is_taken {
                return None;
            }
            *is_taken = true;
            self.begin(thread);
        }
        Some(self.deepen())
    }

    /// Notes that this thread has become the holder.
    fn begin(&self, thread: u64) {
        self.holder.store(thread, Ordering::Relaxed);
        HELD.set(HELD.get() + 1);
    }

    /// Counts one more time that the holder has taken the lock.
    fn deepen(&self) -> Held<'_> {
        self.depth.set(self.depth.get() + 1);
        Held(self)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let Lock { holder, is_taken, is_free, depth } = self.0;
        depth.set(depth.get() - 1);
        if depth.get() == 0 {
            HELD.set(HELD.get() - 1);
            holder.store(NONE, Ordering::Relaxed);
            *held(is_taken) = false;
            is_free.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    struct Shared(Lock, Cell<u64>);
    // SAFETY: the test accesses the cell under the lock alone.
    unsafe impl Sync for Shared {}

    #[test]
    fn one_thread_at_a_time_holds_it() {
        let shared = &Shared(Lock::default(), Cell::new(0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        let (_outer, _inner) = (shared.0.take(), shared.0.take());
                        let before = shared.1.get();
                        thread::yield_now();
                        shared.1.set(before + 1);
                    }
                });
            }
        });
        assert_eq!(shared.1.get(), 4000);
    }

    #[test]
    fn a_thread_that_holds_another_lock_does_not_take_it() {
        let [one, other] = [Lock::default(), Lock::default()];
        let held = (one.take(), one.take());
        assert!(one.is_safe_to_take() && !other.is_safe_to_take());
        drop(held);
        assert!(one.is_safe_to_take() && other.is_safe_to_take());
    }

    #[test]
    fn only_its_holder_takes_it_without_waiting() {
        let shared = &Shared(Lock::default(), Cell::new(0));
        let is_free_for_another =
            || thread::scope(|scope| scope.spawn(|| shared.0.try_take().is_some()).join().unwrap());
        let held = shared.0.try_take().unwrap();
        drop(shared.0.try_take().unwrap());
        assert!(!is_free_for_another());
        drop(held);
        assert!(is_free_for_another());
    }
}
