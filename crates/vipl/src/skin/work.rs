//! Posting descriptors and reading their completions.
#![allow(non_snake_case, reason = "the names are those of the interface")]

use super::answer;
use crate::abi::{Descriptor, Given, ViCallback};
use crate::handle::{Handled, Opaque};
use crate::nic::callbacks::{Context, descriptor_at};
use crate::nic::{self, Nic};
use crate::waiting::{self, timeout};
use netdyno_stack::vi::{Completed, DescriptorAt, ReturnCode, Side, ViHandle};
use std::ffi::c_ulong;
use std::{mem, ptr};

#[unsafe(no_mangle)]
unsafe extern "C" fn VipPostSend(vi: Opaque, descriptor: *mut Descriptor, handle: u32) -> ReturnCode {
    // SAFETY: memory that the program has registered stays valid until the program deregisters it.
    answer(|| unsafe { post(vi, Side::Send, descriptor, handle) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipPostRecv(vi: Opaque, descriptor: *mut Descriptor, handle: u32) -> ReturnCode {
    // SAFETY: memory that the program has registered stays valid until the program deregisters it.
    answer(|| unsafe { post(vi, Side::Receive, descriptor, handle) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipSendDone(vi: Opaque, out: *mut *mut Descriptor) -> ReturnCode {
    // SAFETY: the program has room for a pointer there.
    answer(|| unsafe { done(vi, Side::Send, out) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipRecvDone(vi: Opaque, out: *mut *mut Descriptor) -> ReturnCode {
    // SAFETY: the program has room for a pointer there.
    answer(|| unsafe { done(vi, Side::Receive, out) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipSendWait(vi: Opaque, timeout_ms: c_ulong, out: *mut *mut Descriptor) -> ReturnCode {
    // SAFETY: the program has room for a pointer there.
    answer(|| unsafe { wait(vi, Side::Send, timeout_ms, out) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipRecvWait(vi: Opaque, timeout_ms: c_ulong, out: *mut *mut Descriptor) -> ReturnCode {
    // SAFETY: the program has room for a pointer there.
    answer(|| unsafe { wait(vi, Side::Receive, timeout_ms, out) })
}

#[unsafe(no_mangle)]
extern "C" fn VipSendNotify(vi: Opaque, context: Opaque, handler: Option<ViCallback>) -> ReturnCode {
    answer(|| notify(vi, Side::Send, context, handler))
}

#[unsafe(no_mangle)]
extern "C" fn VipRecvNotify(vi: Opaque, context: Opaque, handler: Option<ViCallback>) -> ReturnCode {
    answer(|| notify(vi, Side::Receive, context, handler))
}

/// # Safety
/// Memory that the program has registered stays valid until the program deregisters it.
#[inline]
unsafe fn post(vi: Opaque, side: Side, descriptor: *mut Descriptor, handle: u32) -> Result<(), ReturnCode> {
    let (id, vi) = ViHandle::take(vi)?;
    let at = DescriptorAt { address: Given::new(descriptor)?.pointer().expose_provenance() as u64, handle };
    // SAFETY: the caller says so of registered memory.
    nic::call(id, |nic| Ok(unsafe { nic.provider.post(vi, side, at) }?))
}

/// # Safety
/// `out` is null, or there is room for a pointer.
#[inline]
unsafe fn done(vi: Opaque, side: Side, out: *mut *mut Descriptor) -> Result<(), ReturnCode> {
    let (id, vi) = ViHandle::take(vi)?;
    let out = Given::new(out)?;
    let completed = nic::call(id, |nic| match nic.provider.done(vi, side)? {
        Some(completed) => Ok(completed),
        None => Err(ReturnCode::NotDone),
    });
    // SAFETY: the caller says that there is room for a pointer there.
    unsafe { tell(&out, completed) }
}

/// # Safety
/// `out` is null, or there is room for a pointer.
unsafe fn wait(
    vi: Opaque,
    side: Side,
    timeout_ms: c_ulong,
    out: *mut *mut Descriptor,
) -> Result<(), ReturnCode> {
    let (id, vi) = ViHandle::take(vi)?;
    let out = Given::new(out)?;
    let mut is_checked = false;
    let completed = waiting::wait(id, timeout(timeout_ms), |nic| {
        if !mem::replace(&mut is_checked, true) {
            refuse_elsewhere(nic, vi, side)?;
        }
        Ok(nic.provider.done(vi, side)?)
    });
    // SAFETY: the caller says that there is room for a pointer there.
    unsafe { tell(&out, completed) }
}

fn notify(vi: Opaque, side: Side, context: Opaque, handler: Option<ViCallback>) -> Result<(), ReturnCode> {
    let (id, vi) = ViHandle::take(vi)?;
    let handler = handler.ok_or(ReturnCode::InvalidParameter)?;
    nic::call(id, |nic| {
        refuse_elsewhere(nic, vi, side)?;
        nic.provider.notify(vi, side)?;
        nic.callbacks.await_vi(vi, side, handler, Context(context));
        Ok(())
    })
}

/// Refuses to wait on a queue of a VI that completes on a completion queue. Its completions are waited
/// for there.
fn refuse_elsewhere(nic: &Nic, vi: ViHandle, side: Side) -> Result<(), ReturnCode> {
    if nic.provider.completes_elsewhere(vi, side)? { Err(ReturnCode::InvalidParameter) } else { Ok(()) }
}

/// Writes the completed descriptor, or NULL.
///
/// # Safety
/// There is room for a pointer.
#[inline]
unsafe fn tell(
    out: &Given<*mut Descriptor>,
    completed: Result<Completed, ReturnCode>,
) -> Result<(), ReturnCode> {
    let descriptor = completed.as_ref().map_or(ptr::null_mut(), |completed| descriptor_at(completed.at));
    // SAFETY: the caller says that there is room for a pointer there.
    unsafe { out.put(descriptor) };
    if completed?.completion.status.is_error() { Err(ReturnCode::DescriptorError) } else { Ok(()) }
}
