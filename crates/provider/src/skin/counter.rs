//! A counter of complete operations (fi_cntr(3)).

use super::deadline::Deadline;
use super::guard::{Errno, entries};
use super::object::{self, Object};
use super::state::Shared;
use crate::abi::{self, Cntr, CntrAttr, CntrOps, Fid, Opaque, Ops};
use crate::engine::Counter;
use core::ffi::c_int;
use std::sync::Arc;
use std::thread;

#[repr(C)]
pub struct CounterObject {
    header: Cntr,
    shared: Arc<Shared>,
    pub number: usize,
}

// SAFETY: the object begins with a `fid_cntr`.
unsafe impl Object for CounterObject {
    type Header = Cntr;
}

static OPS: Ops = object::ops(close);
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
    if attr.is_some_and(|attr| attr.events != abi::CNTR_EVENTS_COMP || attr.flags != 0) {
        return Err(Errno(abi::ENOSYS));
    }
    let number = shared.lock().engine.completions.counters.insert(Counter::default());
    let header = Cntr { fid: object::fid(abi::CLASS_CNTR, context, &OPS), ops: object::table(&COUNTER_OPS) };
    Ok(CounterObject { header, shared, number }.give())
}

impl CounterObject {
    /// Makes progress and returns the counter.
    fn now(&self) -> Result<Counter, Errno> {
        let mut state = self.shared.lock();
        state.engine.progress();
        state.engine.completions.counters.get(self.number).copied().ok_or(Errno(abi::EBADF))
    }

    fn change(&self, change: impl FnOnce(&mut Counter)) -> Result<c_int, Errno> {
        let mut state = self.shared.lock();
        state.engine.completions.counters.get_mut(self.number).map(change).ok_or(Errno(abi::EBADF))?;
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

    fn read(cntr: *mut Cntr) -> u64 {
        Ok(CounterObject::of(cntr)?.now()?.value)
    }

    fn read_errors(cntr: *mut Cntr) -> u64 {
        Ok(CounterObject::of(cntr)?.now()?.errors)
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
        let before = counter.now()?.errors;
        let deadline = Deadline::after(timeout);
        loop {
            let now = counter.now()?;
            if now.value >= threshold {
                return Ok(0);
            }
            if now.errors != before {
                return Err(Errno(abi::EAVAIL));
            }
            if deadline.is_past() {
                return Err(Errno(abi::ETIMEDOUT));
            }
            thread::yield_now();
        }
    }
}
