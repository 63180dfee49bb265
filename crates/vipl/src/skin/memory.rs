//! Protection tags and registered memory.
#![allow(non_snake_case, reason = "the names are those of the interface")]

use super::answer;
use crate::abi::{CMemAttributes, Given};
use crate::handle::{Handled, Opaque};
use crate::nic::id::NicId;
use crate::nic::{self, Nic};
use crate::settings;
use netdyno_stack::vi::{MemHandle, ReturnCode};
use std::ffi::c_ulong;

#[unsafe(no_mangle)]
unsafe extern "C" fn VipCreatePtag(nic: Opaque, out: *mut Opaque) -> ReturnCode {
    answer(|| {
        let id = NicId::take(nic)?;
        let out = Given::new(out)?;
        let tag = nic::call(id, Nic::create_tag)?;
        // SAFETY: the program has room for a handle there.
        unsafe { out.put(tag.give(id)) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn VipDestroyPtag(nic: Opaque, tag: Opaque) -> ReturnCode {
    answer(|| {
        let id = NicId::take(nic)?;
        nic::call(id, |nic| nic.destroy_tag(tag))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipRegisterMem(
    nic: Opaque,
    base: Opaque,
    len: c_ulong,
    attributes: *mut CMemAttributes,
    out: *mut u32,
) -> ReturnCode {
    answer(|| {
        let id = NicId::take(nic)?;
        let (base, out) = (Given::new(base)?, Given::new(out)?);
        let attributes = if attributes.is_null() && !settings::is_strict() {
            CMemAttributes::NONE
        } else {
            // SAFETY: the program has attributes there.
            unsafe { Given::new(attributes)?.get() }
        };
        let handle = nic::call(id, |nic| {
            let attributes = attributes.read(nic)?;
            // SAFETY: memory that the program registers stays valid until the program deregisters it.
            Ok(unsafe { nic.provider.register(base.pointer().cast(), len as usize, attributes) }?)
        })?;
        // SAFETY: the program has room for a handle there.
        unsafe { out.put(handle.0) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn VipDeregisterMem(nic: Opaque, base: Opaque, handle: u32) -> ReturnCode {
    answer(|| {
        nic::call(NicId::take(nic)?, |nic| Ok(nic.provider.deregister(base.cast(), MemHandle(handle))?))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipQueryMem(
    nic: Opaque,
    base: Opaque,
    handle: u32,
    out: *mut CMemAttributes,
) -> ReturnCode {
    answer(|| {
        let id = NicId::take(nic)?;
        let out = Given::new(out)?;
        let attributes =
            nic::call(id, |nic| Ok(nic.provider.query_memory(base.cast(), MemHandle(handle))?.attributes))?;
        // SAFETY: the program has room for attributes there.
        unsafe { out.put(CMemAttributes::of(id, &attributes)) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipSetMemAttributes(
    nic: Opaque,
    base: Opaque,
    handle: u32,
    attributes: *mut CMemAttributes,
) -> ReturnCode {
    answer(|| {
        let id = NicId::take(nic)?;
        // SAFETY: the program has attributes there.
        let attributes = unsafe { Given::new(attributes)?.get() };
        nic::call(id, |nic| {
            let attributes = attributes.read(nic)?;
            Ok(nic.provider.set_memory(base.cast(), MemHandle(handle), attributes)?)
        })
    })
}
