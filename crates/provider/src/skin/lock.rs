//! The lock around the state of a domain.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

/// Lets one thread at a time use a value.
///
/// A program may promise to do that itself (`FI_THREAD_DOMAIN`, fi_domain(3)). Then this lock exchanges nothing in one
/// step, which takes 10 ns each time. It still waits while it sees another thread.
pub struct Lock<T> {
    value: UnsafeCell<T>,
    /// `None` if the program has promised one thread at a time.
    mutex: Option<Mutex<()>>,
    /// Whether a thread uses the value, if there is no mutex.
    is_held: AtomicBool,
}

// SAFETY: one thread at a time uses the value: because of the mutex, or because the program has promised it
// ([`Lock::promised`]).
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    pub fn new(value: T) -> Self {
        Self { value: UnsafeCell::new(value), mutex: Some(Mutex::new(())), is_held: AtomicBool::new(false) }
    }

    /// Returns a lock that relies on the program.
    ///
    /// # Safety
    /// No two threads may hold the lock at the same time.
    pub unsafe fn promised(value: T) -> Self {
        Self { mutex: None, ..Self::new(value) }
    }

    /// Waits until no other thread uses the value.
    #[inline]
    pub fn hold(&self) -> Guard<'_, T> {
        let guard = match &self.mutex {
            // A panic inside has become an error number. The value is used further.
            Some(mutex) => Some(mutex.lock().unwrap_or_else(PoisonError::into_inner)),
            None => {
                while self.is_held.load(Ordering::Acquire) {
                    thread::yield_now();
                }
                self.is_held.store(true, Ordering::Relaxed);
                None
            }
        };
        Guard { lock: self, _guard: guard }
    }
}

/// The value, while no other thread uses it.
pub struct Guard<'a, T> {
    lock: &'a Lock<T>,
    _guard: Option<MutexGuard<'a, ()>>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: no other thread uses the value while this exists.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.lock.mutex.is_none() {
            self.lock.is_held.store(false, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: u32 = 10_000;

    fn count(lock: &Lock<u32>) {
        for _ in 0..TIMES {
            *lock.hold() += 1;
        }
    }

    #[test]
    fn one_thread_at_a_time_uses_the_value() {
        let lock = Lock::new(0);
        thread::scope(|scope| {
            scope.spawn(|| count(&lock));
            count(&lock);
        });
        assert_eq!(*lock.hold(), 2 * TIMES);
    }

    #[test]
    fn a_promised_lock_hands_the_value_from_thread_to_thread() {
        // SAFETY: each thread ends before the next one begins.
        let lock = unsafe { Lock::promised(0) };
        for _ in 0..2 {
            thread::scope(|scope| drop(scope.spawn(|| count(&lock))));
        }
        assert_eq!(*lock.hold(), 2 * TIMES);
    }
}
