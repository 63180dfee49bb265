//! Counters of sends, writes and reads: an operation is not counted before its dialled completion time.

use crate::abi::{self, Cntr, CntrOps, Fid, Ops};
use crate::guard::{Provider, entries};
use crate::hook::Hook;
use crate::patch::{self, call};
use crate::replace;
use core::ffi::c_int;
use netdyno_clock::ticks;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The hook's state of a counter.
pub struct Counter {
    hook: &'static Hook,
    fid_ops: *mut Ops,
    ops: *mut CntrOps,
    /// Whether an operation was ever held back.
    holds: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// When the operations that are held back may count.
    ends: BinaryHeap<Reverse<u64>>,
    /// The highest value shown to the program: a counter never goes back.
    shown: u64,
}

impl State {
    /// Returns the value to show, given the provider's count. The provider does not say which operations
    /// it has counted, so the held operations are assumed to be among them.
    fn show(&mut self, count: u64, now: u64) -> u64 {
        while self.ends.peek().is_some_and(|&Reverse(end)| end <= now) {
            self.ends.pop();
        }
        self.shown = self.shown.max(count.saturating_sub(self.ends.len() as u64));
        self.shown
    }
}

impl Counter {
    /// Puts a hook on a new counter.
    ///
    /// # Safety
    /// The counter is a live one of libfabric's, and nothing else uses it yet.
    pub unsafe fn install(hook: &'static Hook, cntr: *mut Cntr) {
        // SAFETY: the caller says that the counter is live, so that its tables are. The state lives until
        // the counter is closed.
        unsafe {
            let state = NonNull::from(Box::leak(Box::new(Self {
                hook,
                fid_ops: (*cntr).fid.ops,
                ops: (*cntr).ops,
                holds: AtomicBool::new(false),
                state: Mutex::default(),
            })));
            (*cntr).fid.ops =
                patch::copy((*cntr).fid.ops, state, |ops: &mut Ops| replace!(ops, close => close));
            (*cntr).ops = patch::copy((*cntr).ops, state, |ops: &mut CntrOps| {
                replace!(ops, read => read, add => add, set => set, wait => wait);
            });
        }
    }

    /// Returns the hook's state of a counter, if the counter has a hook.
    ///
    /// # Safety
    /// The counter is live.
    pub unsafe fn of(cntr: *mut Cntr) -> Option<NonNull<Self>> {
        // SAFETY: the caller says that the counter is live. A table of ours leads to the state.
        unsafe { patch::is_ours((*cntr).ops).then(|| patch::state((*cntr).ops)) }
    }

    /// Holds one operation back: it counts from `at` on.
    pub fn not_before(&self, at: u64) {
        self.holds.store(true, Relaxed);
        self.state().ends.push(Reverse(at));
    }

    /// Returns whether an operation is held back, or was until now and the program has not read the counter since: the
    /// provider would not wake it for that.
    pub fn holds(&self) -> bool {
        !self.hook.has_failed() && !self.state().ends.is_empty()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the value to show, given the provider's count.
    fn show(&self, count: u64) -> u64 {
        if !self.holds.load(Relaxed) || self.hook.has_failed() {
            return count;
        }
        self.state().show(count, ticks::glance())
    }

    /// Resets the highest value shown, because the counter is set, or set back.
    fn forget_shown(&self) {
        self.state().shown = 0;
    }

    /// Returns the provider's count.
    ///
    /// # Safety
    /// The counter is live, and `self` is its state.
    unsafe fn count(&self, cntr: *mut Cntr) -> u64 {
        let theirs = self.ops;
        // SAFETY: the caller says that the counter is live, and so is the provider's table.
        unsafe { call!(theirs.read(cntr)) }
    }

    /// Waits until the provider has counted up to the threshold, and then until no operation among these
    /// is held back. The timeout is in milliseconds; a negative one means no timeout.
    ///
    /// # Safety
    /// The counter is live, and `self` is its state.
    unsafe fn wait(
        &self,
        cntr: *mut Cntr,
        threshold: u64,
        timeout: c_int,
        provider: &Provider<'_, c_int>,
    ) -> c_int {
        let (theirs, end) = (self.ops, end_of(timeout));
        // SAFETY: the caller says that the counter is live, and so is the provider's table.
        let result = provider.call(|| unsafe { call!(theirs.wait(cntr, threshold, timeout)) });
        // SAFETY: the caller says that the counter is live.
        while result == 0 && self.show(unsafe { self.count(cntr) }) < threshold {
            if end.is_some_and(|end| Instant::now() >= end) {
                return -(abi::ETIMEDOUT as c_int);
            }
            // The wait is short, because a latency is shorter than the time to wake a thread.
            thread::yield_now();
        }
        result
    }
}

/// Returns when a timeout in milliseconds ends, or `None` for a negative one.
fn end_of(timeout: c_int) -> Option<Instant> {
    u64::try_from(timeout).ok().map(|ms| Instant::now() + Duration::from_millis(ms))
}

/// Returns the hook's state of a counter.
///
/// # Safety
/// The counter is live and has a table of ours.
unsafe fn of<'a>(cntr: *mut Cntr) -> &'a Counter {
    // SAFETY: a table of ours leads to the state, which lives until the counter is closed.
    unsafe { patch::state::<_, Counter>((*cntr).ops).as_ref() }
}

entries! {
    fn read(cntr: *mut Cntr) -> u64, Counter {
        let counter = of(cntr);
        hook: counter.hook,
        pass: counter.count(cntr),
        |provider| counter.show(provider.call(|| counter.count(cntr))),
    }

    fn add(cntr: *mut Cntr, value: u64) -> c_int, Counter {
        let counter = of(cntr);
        hook: counter.hook,
        pass: { let theirs = counter.ops; call!(theirs.add(cntr, value)) },
        |provider| {
            // Providers count by this function too, which does not set a counter back.
            if value.cast_signed() < 0 {
                counter.forget_shown();
            }
            let theirs = counter.ops;
            provider.call(|| call!(theirs.add(cntr, value)))
        },
    }

    fn set(cntr: *mut Cntr, value: u64) -> c_int, Counter {
        let counter = of(cntr);
        hook: counter.hook,
        pass: { let theirs = counter.ops; call!(theirs.set(cntr, value)) },
        |provider| {
            counter.forget_shown();
            let theirs = counter.ops;
            provider.call(|| call!(theirs.set(cntr, value)))
        },
    }

    fn wait(cntr: *mut Cntr, threshold: u64, timeout: c_int) -> c_int, Counter {
        let counter = of(cntr);
        hook: counter.hook,
        pass: { let theirs = counter.ops; call!(theirs.wait(cntr, threshold, timeout)) },
        |provider| counter.wait(cntr, threshold, timeout, provider),
    }

    fn close(fid: *mut Fid) -> c_int, Close {
        let state = patch::state::<_, Counter>((*fid).ops);
        hook: (*state.as_ptr()).hook,
        pass: close_theirs(fid.cast(), state.as_ref()),
        |provider| close_and_free(fid.cast(), state, provider),
    }
}

/// Restores the provider's tables, because the provider may look at them, and closes the counter.
///
/// # Safety
/// The counter is live, and `state` is its state.
unsafe fn close_theirs(cntr: *mut Cntr, state: &Counter) -> c_int {
    // SAFETY: the caller says that the counter is live.
    unsafe {
        (*cntr).fid.ops = state.fid_ops;
        if patch::is_ours((*cntr).ops) {
            (*cntr).ops = state.ops;
        }
        let theirs = state.fid_ops;
        call!(theirs.close(&raw mut (*cntr).fid))
    }
}

/// Closes a counter. Frees the hook's state if the provider has closed it.
///
/// # Safety
/// The counter is live, and `state` is its state. Neither is used afterwards if the counter is closed.
unsafe fn close_and_free(cntr: *mut Cntr, state: NonNull<Counter>, provider: &Provider<'_, c_int>) -> c_int {
    // SAFETY: the caller says that the counter is live. Once it is closed, nothing leads to its tables
    // and its state any more. The state came from `Box::leak`.
    unsafe {
        let (fid_ops, ops) = ((*cntr).fid.ops, (*cntr).ops);
        let result = provider.call(|| close_theirs(cntr, state.as_ref()));
        if result == 0 {
            patch::free(fid_ops);
            patch::free(ops);
            drop(Box::from_raw(state.as_ptr()));
        } else {
            ((*cntr).fid.ops, (*cntr).ops) = (fid_ops, ops);
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_over_does_not_count_and_nothing_goes_back() {
        let mut state = State::default();
        assert_eq!(state.show(2, 0), 2);
        state.ends.extend([Reverse(100), Reverse(50)]);
        assert_eq!(
            [(2, 10), (4, 10), (4, 50), (4, 99), (4, 100)].map(|(count, now)| state.show(count, now)),
            [2, 2, 3, 3, 4]
        );
        // The time of the held operation comes before the provider has counted it.
        state.ends.push(Reverse(200));
        assert_eq!([(4, 150), (4, 300), (5, 301)].map(|(count, now)| state.show(count, now)), [4, 4, 5]);
    }
}
