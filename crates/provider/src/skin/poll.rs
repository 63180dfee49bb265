//! A poll set (fi_poll(3)): queues and counters that the program looks at in one call.

use super::counter::CounterObject;
use super::guard::{Errno, entries};
use super::object::{self, Object};
use super::queue::CqObject;
use crate::abi::{self, Fid, Opaque, Ops, Poll, PollAttr, PollOps};
use core::ffi::{c_int, c_void};
use std::sync::{Mutex, PoisonError};

/// A queue, or a counter with its value at the last look.
struct Member {
    fid: *mut Fid,
    value: u64,
}

#[repr(C)]
struct PollObject {
    header: Poll,
    members: Mutex<Vec<Member>>,
}

// SAFETY: the object begins with a `fid_poll`.
unsafe impl Object for PollObject {
    type Header = Poll;
}

static OPS: Ops = object::ops(close);
static POLL_OPS: PollOps =
    PollOps { size: size_of::<PollOps>(), poll: Some(poll), poll_add: Some(add), poll_del: Some(remove) };

/// Opens a poll set.
pub fn open(attr: Option<&PollAttr>) -> Result<*mut Poll, Errno> {
    if attr.is_some_and(|attr| attr.flags != 0) {
        return Err(Errno(abi::EINVAL));
    }
    let fid = object::fid(abi::CLASS_POLL, std::ptr::null_mut(), &OPS);
    let header = Poll { fid, ops: object::table(&POLL_OPS) };
    Ok(PollObject { header, members: Mutex::default() }.give())
}

impl Member {
    /// Returns the context of the member if it has something for the program.
    unsafe fn look(&mut self) -> Result<Option<Opaque>, Errno> {
        // SAFETY: the program removes an object from the set before it closes it.
        unsafe {
            let fid = self.fid.as_ref().ok_or(Errno(abi::EINVAL))?;
            let is_ready = if fid.fclass == abi::CLASS_CQ {
                CqObject::of(self.fid)?.is_ready()
            } else {
                let value = CounterObject::of(self.fid)?.ended()?;
                std::mem::replace(&mut self.value, value) != value
            };
            Ok(is_ready.then_some(fid.context))
        }
    }
}

entries! {
    fn close(fid: *mut Fid) -> c_int {
        drop(PollObject::take(fid));
        Ok(0)
    }

    fn poll(set: *mut Poll, context: *mut *mut c_void, count: c_int) -> c_int {
        let mut members = PollObject::of(set)?.members.lock().unwrap_or_else(PoisonError::into_inner);
        let count = usize::try_from(count).map_err(|_| Errno(abi::EINVAL))?;
        let mut found = 0;
        for member in members.iter_mut() {
            if found < count
                && let Some(of_member) = member.look()?
            {
                *context.add(found) = of_member;
                found += 1;
            }
        }
        Ok(found as c_int)
    }

    fn add(set: *mut Poll, fid: *mut Fid, _flags: u64) -> c_int {
        let class = fid.as_ref().ok_or(Errno(abi::EINVAL))?.fclass;
        let value = match class {
            abi::CLASS_CQ => 0,
            abi::CLASS_CNTR => CounterObject::of(fid)?.ended()?,
            _ => return Err(Errno(abi::EINVAL)),
        };
        let mut members = PollObject::of(set)?.members.lock().unwrap_or_else(PoisonError::into_inner);
        members.push(Member { fid, value });
        Ok(0)
    }

    fn remove(set: *mut Poll, fid: *mut Fid, _flags: u64) -> c_int {
        let mut members = PollObject::of(set)?.members.lock().unwrap_or_else(PoisonError::into_inner);
        let before = members.len();
        members.retain(|member| member.fid != fid);
        if members.len() < before { Ok(0) } else { Err(Errno(abi::EINVAL)) }
    }
}
