//! Counters of what a program has sent, written and read: an operation does not count before it may
//! end.

use crate::abi::{self, Cntr, CntrOps, Fid, Ops};
use crate::hook::Hook;
use crate::patch;
use crate::replace;
use core::ffi::c_int;
use netdyno_clock::ticks;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// What the hook knows of a counter.
pub struct Counter {
    hook: &'static Hook,
    fid_ops: *const Ops,
    ops: *const CntrOps,
    /// Something was ever held back.
    holds: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// When operations that are not over may count.
    ends: BinaryHeap<Reverse<u64>>,
    /// The most that was shown: a counter does not go back.
    shown: u64,
}

impl State {
    /// What is shown of a count of the provider's. It does not say whose ends it has counted: those that
    /// may not count yet are taken to be among them.
    fn show(&mut self, count: u64, now: u64) -> u64 {
        while self.ends.peek().is_some_and(|&Reverse(end)| end <= now) {
            self.ends.pop();
        }
        self.shown = self.shown.max(count.saturating_sub(self.ends.len() as u64));
        self.shown
    }
}

impl Counter {
    /// Puts a hook on a counter that has just been made.
    ///
    /// # Safety
    /// The counter is a live one of libfabric's, and nobody else uses it yet.
    pub unsafe fn install(hook: &'static Hook, cntr: *mut Cntr) {
        // SAFETY: as the caller says; the state lives until the counter is closed.
        unsafe {
            let state = Box::into_raw(Box::new(Self {
                hook,
                fid_ops: (*cntr).fid.ops,
                ops: (*cntr).ops,
                holds: AtomicBool::new(false),
                state: Mutex::default(),
            }));
            (*cntr).fid.ops =
                patch::copy((*cntr).fid.ops, state, |ops: &mut Ops| replace!(ops, close => close));
            (*cntr).ops = patch::copy((*cntr).ops, state, |ops: &mut CntrOps| {
                replace!(ops, read => read, add => add, set => set, wait => wait);
            });
        }
    }

    /// What the hook knows of a counter, if it has one there.
    ///
    /// # Safety
    /// The counter is live.
    pub unsafe fn of<'a>(cntr: *mut Cntr) -> Option<&'a Self> {
        // SAFETY: a table of ours leads to the state.
        unsafe { patch::is_ours((*cntr).ops).then(|| patch::state((*cntr).ops)) }
    }

    /// An operation does not count earlier.
    pub fn not_before(&self, at: u64) {
        self.holds.store(true, Relaxed);
        self.state().ends.push(Reverse(at));
    }

    /// Whether something does not count yet.
    pub fn holds(&self) -> bool {
        let now = ticks::glance();
        self.state().ends.iter().any(|&Reverse(end)| end > now)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show(&self, count: u64) -> u64 {
        if !self.holds.load(Relaxed) || self.hook.has_failed() {
            return count;
        }
        self.hook.guarded(|| self.state().show(count, ticks::glance())).unwrap_or(count)
    }

    /// The program counts for itself from here.
    fn forget_shown(&self) {
        self.hook.guarded(|| self.state().shown = 0);
    }
}

// Each of the following stands in for the provider's function of that name. SAFETY, for all of them:
// they are reached through a table of ours, which leads to the state; the arguments are those that
// the program gave.

unsafe extern "C" fn read(cntr: *mut Cntr) -> u64 {
    // SAFETY: see above.
    unsafe {
        let counter: &Counter = patch::state((*cntr).ops);
        (*counter.ops).read.map_or(0, |theirs| counter.show(theirs(cntr)))
    }
}

unsafe extern "C" fn add(cntr: *mut Cntr, value: u64) -> c_int {
    // SAFETY: see above.
    unsafe {
        let counter: &Counter = patch::state((*cntr).ops);
        counter.forget_shown();
        (*counter.ops).add.map_or(-(abi::ENOSYS as c_int), |theirs| theirs(cntr, value))
    }
}

unsafe extern "C" fn set(cntr: *mut Cntr, value: u64) -> c_int {
    // SAFETY: see above.
    unsafe {
        let counter: &Counter = patch::state((*cntr).ops);
        counter.forget_shown();
        (*counter.ops).set.map_or(-(abi::ENOSYS as c_int), |theirs| theirs(cntr, value))
    }
}

/// Waits for the provider first, and then for the time. A negative timeout has no end.
unsafe extern "C" fn wait(cntr: *mut Cntr, threshold: u64, timeout: c_int) -> c_int {
    // SAFETY: see above.
    unsafe {
        let counter: &Counter = patch::state((*cntr).ops);
        let Some(theirs) = (*counter.ops).wait else { return -(abi::ENOSYS as c_int) };
        let end = u64::try_from(timeout).ok().map(|ms| Instant::now() + Duration::from_millis(ms));
        let result = theirs(cntr, threshold, timeout);
        while result == 0 && read(cntr) < threshold {
            if end.is_some_and(|end| Instant::now() >= end) {
                return -(abi::ETIMEDOUT as c_int);
            }
            // It is not for long: a latency is less than what it takes to be woken.
            thread::yield_now();
        }
        result
    }
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    // SAFETY: libfabric closes what it opened; the tables are put back first.
    unsafe {
        let cntr = fid.cast::<Cntr>();
        let state = ptr::from_ref::<Counter>(patch::state((*fid).ops)).cast_mut();
        let (fid_ops, ops) = ((*fid).ops, (*cntr).ops);
        (*fid).ops = (*state).fid_ops;
        if patch::is_ours(ops) {
            (*cntr).ops = (*state).ops;
        }
        let result = (*(*state).fid_ops).close.map_or(0, |theirs| theirs(fid));
        if result == 0 {
            patch::free(fid_ops);
            patch::free(ops);
            drop(Box::from_raw(state));
        } else {
            ((*fid).ops, (*cntr).ops) = (fid_ops, ops);
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
        // An operation that the provider has not counted when its time has come.
        state.ends.push(Reverse(200));
        assert_eq!([(4, 150), (4, 300), (5, 301)].map(|(count, now)| state.show(count, now)), [4, 4, 5]);
    }
}
