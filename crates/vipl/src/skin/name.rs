//! Host names.
#![allow(non_snake_case, reason = "the names are those of the interface")]

use super::answer;
use crate::abi::{Given, NetAddress};
use crate::handle::Opaque;
use crate::names;
use crate::nic;
use crate::nic::id::NicId;
use netdyno_stack::vi::{ReturnCode, WireKind};
use std::ffi::{CStr, c_char, c_ulong};

#[unsafe(no_mangle)]
extern "C" fn VipNSInit(nic: Opaque, _: Opaque) -> ReturnCode {
    answer(|| set_names(nic, true).map(drop))
}

#[unsafe(no_mangle)]
extern "C" fn VipNSShutdown(nic: Opaque) -> ReturnCode {
    answer(|| if set_names(nic, false)? { Ok(()) } else { Err(ReturnCode::ErrorNameService) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipNSGetHostByName(
    nic: Opaque,
    name: *mut c_char,
    out: *mut NetAddress,
    index: c_ulong,
) -> ReturnCode {
    answer(|| {
        let (own, way) = own_host(nic)?;
        let (name, out) = (Given::new(name)?, Given::new(out)?);
        // SAFETY: the program passes a string.
        let name = unsafe { CStr::from_ptr(name.pointer()) }.to_string_lossy();
        // No lock is held during the lookup, because it may take long.
        let found = names::hosts_of(&name, own, way).into_iter().nth(index as usize);
        // SAFETY: the program has room for an address there.
        unsafe { out.put_host(&found.ok_or(ReturnCode::ErrorNameService)?) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipNSGetHostByAddr(
    nic: Opaque,
    address: *mut NetAddress,
    name: *mut c_char,
    name_len: *mut c_ulong,
) -> ReturnCode {
    answer(|| {
        let (own, way) = own_host(nic)?;
        let (address, name, len) = (Given::new(address)?, Given::new(name)?, Given::new(name_len)?);
        // SAFETY: the program has an address there.
        let host = nic::call(NicId::take(nic)?, |nic| unsafe { address.remote_host(nic) })?;
        let found = names::name_of(&host, own, way).ok_or(ReturnCode::ErrorNameService)?;
        // SAFETY: the program has written the size of its buffer there.
        let room = unsafe { len.get() };
        // SAFETY: the program has room for a number there.
        unsafe { len.put(found.len() as c_ulong) };
        // The string needs a zero at its end.
        if found.len() as c_ulong >= room {
            return Err(ReturnCode::InvalidParameter);
        }
        let name = name.pointer().cast::<u8>();
        // SAFETY: there is room for so many bytes and the zero.
        unsafe {
            name.copy_from(found.as_ptr(), found.len());
            name.add(found.len()).write(0);
        }
        Ok(())
    })
}

/// Turns the name service on or off. Returns whether it was on.
fn set_names(nic: Opaque, has_names: bool) -> Result<bool, ReturnCode> {
    nic::call(NicId::take(nic)?, |nic| Ok(std::mem::replace(&mut nic.has_names, has_names)))
}

/// Returns this host's address and its wire, if the name service is on.
fn own_host(nic: Opaque) -> Result<(&'static [u8], WireKind), ReturnCode> {
    nic::call(NicId::take(nic)?, |nic| {
        if nic.has_names { Ok((nic.address, nic.way)) } else { Err(ReturnCode::ErrorNameService) }
    })
}
