//! Completion queues.
#![allow(non_snake_case, reason = "the names are those of the interface")]

use super::answer;
use crate::abi::{CqCallback, Given};
use crate::handle::{Handled, Opaque};
use crate::nic;
use crate::nic::callbacks::{Context, Kind};
use crate::nic::id::NicId;
use crate::waiting::{self, timeout};
use netdyno_stack::vi::{CqHandle, Done, ReturnCode, Side};
use std::ffi::{c_int, c_ulong};

#[unsafe(no_mangle)]
unsafe extern "C" fn VipCreateCQ(nic: Opaque, entries: c_ulong, out: *mut Opaque) -> ReturnCode {
    answer(|| {
        let id = NicId::take(nic)?;
        let out = Given::new(out)?;
        let cq = nic::call(id, |nic| Ok(nic.provider.create_cq(count(entries)?)?))?;
        // SAFETY: the program has room for a handle there.
        unsafe { out.put(cq.give(id)) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn VipDestroyCQ(cq: Opaque) -> ReturnCode {
    answer(|| {
        let (id, cq) = CqHandle::take(cq)?;
        nic::call(id, |nic| {
            nic.provider.destroy_cq(cq)?;
            nic.callbacks.forget_cq(cq);
            Ok(())
        })?;
        nic::await_handler(id, Kind::Cq(cq));
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn VipResizeCQ(cq: Opaque, entries: c_ulong) -> ReturnCode {
    answer(|| {
        let (id, cq) = CqHandle::take(cq)?;
        nic::call(id, |nic| Ok(nic.provider.resize_cq(cq, count(entries)?)?))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipCQDone(cq: Opaque, vi: *mut Opaque, is_receive: *mut c_int) -> ReturnCode {
    answer(|| {
        let (id, cq) = CqHandle::take(cq)?;
        let (vi, is_receive) = (Given::new(vi)?, Given::new(is_receive)?);
        let done = nic::call(id, |nic| Ok(nic.provider.cq_done(cq)?))?.ok_or(ReturnCode::NotDone)?;
        // SAFETY: the program has room for both.
        unsafe { tell(id, done, &vi, &is_receive) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipCQWait(
    cq: Opaque,
    timeout_ms: c_ulong,
    vi: *mut Opaque,
    is_receive: *mut c_int,
) -> ReturnCode {
    answer(|| {
        let (id, cq) = CqHandle::take(cq)?;
        let (vi, is_receive) = (Given::new(vi)?, Given::new(is_receive)?);
        let done = waiting::wait(id, timeout(timeout_ms), |nic| Ok(nic.provider.cq_done(cq)?))?;
        // SAFETY: the program has room for both.
        unsafe { tell(id, done, &vi, &is_receive) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn VipCQNotify(cq: Opaque, context: Opaque, handler: Option<CqCallback>) -> ReturnCode {
    answer(|| {
        let (id, cq) = CqHandle::take(cq)?;
        let handler = handler.ok_or(ReturnCode::InvalidParameter)?;
        nic::call(id, |nic| {
            nic.provider.notify_cq(cq)?;
            nic.callbacks.await_cq(cq, handler, Context(context));
            Ok(())
        })
    })
}

/// Converts a number of entries. A larger number than a `u32` can hold is not valid.
fn count(entries: c_ulong) -> Result<u32, ReturnCode> {
    entries.try_into().map_err(|_| ReturnCode::InvalidParameter)
}

/// Writes the VI of a completion, and whether it is of the receive queue.
///
/// # Safety
/// There is room for a handle and a number.
#[inline]
unsafe fn tell(id: NicId, done: Done, vi: &Given<Opaque>, is_receive: &Given<c_int>) {
    // SAFETY: the caller says that there is room for both.
    unsafe {
        vi.put(done.vi.give(id));
        is_receive.put((done.side == Side::Receive).into());
    }
}
