//! A counter of complete operations (fi_cntr(3)).

use super::guard::{Errno, entries};
use super::object::{self, Object};
use super::state::{Shared, State};
use super::wait::{Wait, check_wait, control_wait};
use crate::abi::{self, Cntr, CntrAttr, CntrOps, Fid, Opaque, Ops};
use crate::engine::Counter;
use core::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[repr(C)]
pub struct CounterObject {
    header: Cntr,
    shared: Arc<Shared>,
    pub number: usize,
    /// What the program has read last.
    seen_value: AtomicU64,
    seen_errors: AtomicU64,
}

// SAFETY: the object begins with a `fid_cntr`.
unsafe impl Object for CounterObject {
    type Header = Cntr;
}

static OPS: Ops = Ops { control: Some(control), ..object::ops(close) };
static COUNTER_OPS: CntrOps = CntrOps {
    size: size_of::<CntrOps>(),
    read: Some(read),
    readerr: Some(read_errors),
    add: Some(add),
    set: Some(set),
    wait: Some(wait),
    adderr: Some(add_errors),
    seterr: Some(set_errors),
};

/// Opens a counter.
pub fn open(shared: Arc<Shared>, attr: Option<&CntrAttr>, context: Opaque) -> Result<*mut Cntr, Errno> {
    if let Some(attr) = attr {
        if attr.events != abi::CNTR_EVENTS_COMP || attr.flags != 0 {
            return Err(Errno(abi::ENOSYS));
        }
        check_wait(attr.wait_obj)?;
    }
    let number = shared.lock().engine.completions.counters.insert(Counter::default());
    let header = Cntr { fid: object::fid(abi::CLASS_CNTR, context, &OPS), ops: object::table(&COUNTER_OPS) };
    let (seen_value, seen_errors) = (AtomicU64::new(0), AtomicU64::new(0));
    Ok(CounterObject { header, shared, number, seen_value, seen_errors }.give())
}

impl CounterObject {
    /// Makes progress and returns the counter.
    fn now(&self) -> Result<Counter, Errno> {
        let mut state = self.shared.lock();
        self.shared.progress_of_caller(&mut state);
        self.current(&state)
    }

    /// Returns the counter.
    fn current(&self, state: &State) -> Result<Counter, Errno> {
        state.engine.completions.counters.get(self.number).copied().ok_or(Errno(abi::EBADF))
    }

    /// Notes that the program knows these. A program may never ask for errors.
    fn note(&self, counter: Counter) -> Counter {
        self.seen_value.store(counter.value, Ordering::Relaxed);
        self.seen_errors.store(counter.errors, Ordering::Relaxed);
        counter
    }

    /// Returns the number of operations that have ended.
    fn value(&self, state: &State) -> u64 {
        state.engine.completions.counters.get(self.number).map_or(0, Counter::ended)
    }

    /// Makes progress, and returns the number of operations that have ended.
    pub fn ended(&self) -> Result<u64, Errno> {
        self.now().map(|counter| counter.ended())
    }

    /// Reports whether the counter is as the program has last seen it.
    pub fn is_unchanged(&self) -> bool {
        let state = self.shared.lock();
        state.engine.completions.counters.get(self.number).is_none_or(|counter| self.is_seen(counter))
    }

    fn is_seen(&self, counter: &Counter) -> bool {
        counter.value == self.seen_value.load(Ordering::Relaxed)
            && counter.errors == self.seen_errors.load(Ordering::Relaxed)
    }

    /// Prepares for a sleep until the counter changes. Returns false if the program must look again instead.
    pub fn prepare_sleep(&self) -> bool {
        self.shared.lock().prepare_sleep()
    }

    fn change(&self, change: impl FnOnce(&mut Counter)) -> Result<c_int, Errno> {
        let mut state = self.shared.lock();
        let counter = state.engine.completions.counters.get_mut(self.number).ok_or(Errno(abi::EBADF))?;
        let is_seen = self.is_seen(counter);
        change(counter);
        if is_seen {
            self.note(*counter);
        }
        state.wake();
        Ok(0)
    }
}

entries! {
    fn close(fid: *mut Fid) -> c_int {
        let CounterObject { shared, number, .. } = CounterObject::of(fid)?;
        let mut state = shared.lock();
        state.check_counter(*number)?;
        state.engine.completions.counters.try_remove(*number);
        drop(state);
        drop(CounterObject::take(fid));
        Ok(0)
    }

    fn control(fid: *mut Fid, command: c_int, arg: Opaque) -> c_int {
        control_wait(&CounterObject::of(fid)?.shared, command, arg)
    }

    fn read(cntr: *mut Cntr) -> u64 {
        let counter = CounterObject::of(cntr)?;
        Ok(counter.note(counter.now()?).value)
    }

    fn read_errors(cntr: *mut Cntr) -> u64 {
        let counter = CounterObject::of(cntr)?;
        let errors = counter.now()?.errors;
        counter.seen_errors.store(errors, Ordering::Relaxed);
        Ok(errors)
    }

    fn add(cntr: *mut Cntr, value: u64) -> c_int {
        CounterObject::of(cntr)?.change(|counter| counter.value = counter.value.wrapping_add(value))
    }

    fn set(cntr: *mut Cntr, value: u64) -> c_int {
        CounterObject::of(cntr)?.change(|counter| counter.value = value)
    }

    fn add_errors(cntr: *mut Cntr, value: u64) -> c_int {
        CounterObject::of(cntr)?.change(|counter| counter.errors = counter.errors.wrapping_add(value))
    }

    fn set_errors(cntr: *mut Cntr, value: u64) -> c_int {
        CounterObject::of(cntr)?.change(|counter| counter.errors = value)
    }

    fn wait(cntr: *mut Cntr, threshold: u64, timeout: c_int) -> c_int {
        let counter = CounterObject::of(cntr)?;
        // An error that the first progress finds ends the wait.
        let before = counter.current(&counter.shared.lock())?.errors;
        let mut wait = Wait::new(timeout);
        loop {
            let now = counter.note(counter.now()?);
            if now.value >= threshold {
                return Ok(0);
            }
            if now.errors != before {
                return Err(Errno(abi::EAVAIL));
            }
            if !wait.go_on(&counter.shared, |state| counter.value(state) == now.ended()) {
                return Err(Errno(abi::ETIMEDOUT));
            }
        }
    }
}
