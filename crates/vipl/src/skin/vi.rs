//! Virtual Interfaces.
#![allow(non_snake_case, reason = "the names are those of the interface")]

use super::answer;
use crate::abi::{CViAttributes, Given};
use crate::handle::{Handled, Opaque};
use crate::nic;
use crate::nic::callbacks::Kind;
use crate::nic::id::NicId;
use netdyno_stack::vi::{CqHandle, ReturnCode, ViHandle};
use std::ffi::c_int;

#[unsafe(no_mangle)]
unsafe extern "C" fn VipCreateVi(
    nic: Opaque,
    attributes: *mut CViAttributes,
    send_cq: Opaque,
    receive_cq: Opaque,
    out: *mut Opaque,
) -> ReturnCode {
    answer(|| {
        let id = NicId::take(nic)?;
        let (attributes, out) = (Given::new(attributes)?, Given::new(out)?);
        // SAFETY: the program has attributes there.
        let attributes = unsafe { attributes.get() };
        let vi = nic::call(id, |nic| {
            let send_cq = CqHandle::take_any_of(id, send_cq)?;
            let receive_cq = CqHandle::take_any_of(id, receive_cq)?;
            let attributes = attributes.read(nic)?;
            nic.ensure_progress_thread()?;
            Ok(nic.provider.create_vi(attributes, send_cq, receive_cq)?)
        })?;
        // SAFETY: the program has room for a handle there.
        unsafe { out.put(vi.give(id)) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn VipDestroyVi(vi: Opaque) -> ReturnCode {
    answer(|| {
        let (id, vi) = ViHandle::take(vi)?;
        nic::call(id, |nic| {
            nic.provider.destroy_vi(vi)?;
            nic.callbacks.forget_vi(vi);
            Ok(())
        })?;
        nic::await_handler(id, Kind::Vi(vi));
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipQueryVi(
    vi: Opaque,
    state: *mut u32,
    attributes: *mut CViAttributes,
    is_send_empty: *mut c_int,
    is_receive_empty: *mut c_int,
) -> ReturnCode {
    answer(|| {
        let (id, vi) = ViHandle::take(vi)?;
        let (state, attributes) = (Given::new(state)?, Given::new(attributes)?);
        let (is_send_empty, is_receive_empty) = (Given::new(is_send_empty)?, Given::new(is_receive_empty)?);
        let query = nic::call(id, |nic| Ok(nic.provider.query_vi(vi)?))?;
        // SAFETY: the program has room for all of these.
        unsafe {
            state.put(query.state as u32);
            attributes.put(CViAttributes::of(id, &query.attributes));
            is_send_empty.put(query.is_send_empty.into());
            is_receive_empty.put(query.is_receive_empty.into());
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipSetViAttributes(vi: Opaque, attributes: *mut CViAttributes) -> ReturnCode {
    answer(|| {
        let (id, vi) = ViHandle::take(vi)?;
        // SAFETY: the program has attributes there.
        let attributes = unsafe { Given::new(attributes)?.get() };
        nic::call(id, |nic| {
            let attributes = attributes.read(nic)?;
            Ok(nic.provider.set_vi(vi, attributes)?)
        })
    })
}
