//! Connecting and disconnecting VIs.
#![allow(non_snake_case, reason = "the names are those of the interface")]

use super::answer;
use crate::abi::{CViAttributes, Given, NetAddress};
use crate::handle::{Handled, Opaque};
use crate::nic;
use crate::nic::id::NicId;
use crate::waiting::{self, timeout};
use netdyno_stack::vi::{ConnHandle, Offer, ReturnCode, ViHandle};
use std::ffi::c_ulong;

#[unsafe(no_mangle)]
unsafe extern "C" fn VipConnectWait(
    nic: Opaque,
    local: *mut NetAddress,
    timeout_ms: c_ulong,
    remote: *mut NetAddress,
    attributes: *mut CViAttributes,
    out: *mut Opaque,
) -> ReturnCode {
    answer(|| {
        let id = NicId::take(nic)?;
        let (local, remote) = (Given::new(local)?, Given::new(remote)?);
        let (attributes, out) = (Given::new(attributes)?, Given::new(out)?);
        waiting::prepare()?;
        let waiting = nic::call(id, |nic| {
            // SAFETY: the program has an address there.
            let local = unsafe { local.address(nic) }?;
            Ok(nic.provider.wait(&local.discriminator, timeout(timeout_ms))?)
        })?;
        // The provider keeps the timeout.
        let conn = waiting::wait(id, None, |nic| Ok(nic.provider.waited(waiting)?))?;
        let request = nic::call(id, |nic| Ok(nic.provider.request(conn)?.clone()))?;
        // SAFETY: the program has room for all of these.
        unsafe {
            remote.put_address(&request.from);
            attributes.put(CViAttributes::of_peer(&request.offer));
            out.put(conn.give(id));
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn VipConnectAccept(conn: Opaque, vi: Opaque) -> ReturnCode {
    answer(|| {
        let (id, conn) = ConnHandle::take(conn)?;
        nic::call(id, |nic| Ok(nic.provider.accept(conn, ViHandle::take_of(id, vi)?)?))
    })
}

#[unsafe(no_mangle)]
extern "C" fn VipConnectReject(conn: Opaque) -> ReturnCode {
    answer(|| {
        let (id, conn) = ConnHandle::take(conn)?;
        nic::call(id, |nic| Ok(nic.provider.reject(conn)?))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipConnectRequest(
    vi: Opaque,
    local: *mut NetAddress,
    remote: *mut NetAddress,
    timeout_ms: c_ulong,
    attributes: *mut CViAttributes,
) -> ReturnCode {
    answer(|| {
        let attributes = Given::new(attributes)?;
        // Nothing may fail once the request is on its way.
        waiting::prepare()?;
        // SAFETY: the program has two addresses there.
        unsafe { ask(vi, local, remote, timeout_ms, false) }?;
        // SAFETY: the program has room for attributes there.
        unsafe { await_answer(vi, &attributes) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn VipDisconnect(vi: Opaque) -> ReturnCode {
    answer(|| {
        let (id, vi) = ViHandle::take(vi)?;
        nic::call(id, |nic| Ok(nic.provider.disconnect(vi)?))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipConnectPeerRequest(
    vi: Opaque,
    local: *mut NetAddress,
    remote: *mut NetAddress,
    timeout_ms: c_ulong,
) -> ReturnCode {
    // SAFETY: the program has two addresses there.
    answer(|| unsafe { ask(vi, local, remote, timeout_ms, true) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipConnectPeerDone(vi: Opaque, attributes: *mut CViAttributes) -> ReturnCode {
    answer(|| {
        let (id, vi) = ViHandle::take(vi)?;
        let attributes = Given::new(attributes)?;
        let offer = nic::call(id, |nic| Ok(nic.provider.answer(vi)?))?.ok_or(ReturnCode::NotDone)?;
        // SAFETY: the program has room for attributes there.
        unsafe { attributes.put(CViAttributes::of_peer(&offer)) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipConnectPeerWait(vi: Opaque, attributes: *mut CViAttributes) -> ReturnCode {
    answer(|| {
        let attributes = Given::new(attributes)?;
        // SAFETY: the program has room for attributes there.
        unsafe { await_answer(vi, &attributes) }
    })
}

/// Sends a connection request of a VI. A timeout of 0 is refused, because no answer could come in time.
///
/// # Safety
/// Each address is NULL, or can be read.
unsafe fn ask(
    vi: Opaque,
    local: *mut NetAddress,
    remote: *mut NetAddress,
    timeout_ms: c_ulong,
    is_of_peer: bool,
) -> Result<(), ReturnCode> {
    let (id, vi) = ViHandle::take(vi)?;
    let (local, remote) = (Given::new(local)?, Given::new(remote)?);
    if timeout_ms == 0 {
        return Err(ReturnCode::InvalidParameter);
    }
    nic::call(id, |nic| {
        // SAFETY: the caller says that two addresses can be read there.
        let (local, remote) = unsafe { (local.address(nic)?, remote.remote_address(nic)?) };
        Ok(nic.provider.ask(vi, &local.discriminator, remote, is_of_peer, timeout(timeout_ms))?)
    })
}

/// Waits for the answer to the request. The provider keeps the timeout.
///
/// # Safety
/// There is room for attributes.
unsafe fn await_answer(vi: Opaque, attributes: &Given<CViAttributes>) -> Result<(), ReturnCode> {
    let (id, vi) = ViHandle::take(vi)?;
    let offer: Offer = waiting::wait(id, None, |nic| Ok(nic.provider.answer(vi)?))?;
    // SAFETY: the caller says that there is room for attributes.
    unsafe { attributes.put(CViAttributes::of_peer(&offer)) };
    Ok(())
}
