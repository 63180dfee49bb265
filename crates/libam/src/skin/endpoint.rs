//! Endpoints: allocation, tags, segments and handlers.
#![allow(non_snake_case, reason = "the names are those of the interface")]

use crate::calling::Function;
use crate::code::Code;
use crate::guard::{Out, answer, check_initialized};
use crate::name::Name;
use crate::objects::{Bundle, Endpoint, HANDLERS, Segment};
use crate::refusal::{Refusal, refuse};
use crate::settings;
use std::ffi::{c_int, c_void};
use std::net::Ipv4Addr;

/// Ranks on this host are not known to an endpoint outside of a job.
const ALONE: usize = 1;

#[unsafe(no_mangle)]
unsafe extern "C" fn AM_AllocateEndpoint(
    bundle: *const Bundle,
    endpoint: *mut *const Endpoint,
    name: *mut Name,
) -> c_int {
    answer("AM_AllocateEndpoint", || {
        check_initialized()?;
        // SAFETY: the program passes a handle of this library.
        let bundle = unsafe { Bundle::of(bundle) }?;
        let (endpoint, name) = (Out::new(endpoint)?, Out::new(name)?);
        let _held = bundle.hold()?;
        // Another thread may have freed it while this one waited for the lock.
        // SAFETY: as above.
        unsafe { Bundle::of(bundle) }?;
        let allocated = Endpoint::allocate(bundle, ALONE)?;
        // SAFETY: the program has room for a handle and a name there.
        unsafe {
            endpoint.put(allocated);
            name.put(allocated.name);
        }
        Ok(())
    })
}

/// Runs `work` on an endpoint that the program names by a handle of this library, under the lock of its bundle.
#[inline]
pub fn answer_with(
    call: &str,
    endpoint: *const Endpoint,
    work: impl FnOnce(&'static Endpoint) -> Result<(), Refusal>,
) -> c_int {
    answer(call, || {
        check_initialized()?;
        // SAFETY: the program passes a handle of this library.
        let endpoint = unsafe { Endpoint::of(endpoint) }?;
        let held = endpoint.hold()?;
        if held.is_some() {
            // Another thread may have freed it while this one waited for the lock.
            // SAFETY: as above.
            unsafe { Endpoint::of(endpoint) }?;
        }
        work(endpoint)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn AM_FreeEndpoint(endpoint: *const Endpoint) -> c_int {
    answer_with("AM_FreeEndpoint", endpoint, Endpoint::free)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn AM_MoveEndpoint(
    endpoint: *const Endpoint,
    from: *const Bundle,
    to: *const Bundle,
) -> c_int {
    answer("AM_MoveEndpoint", || {
        check_initialized()?;
        // SAFETY: the program passes handles of this library.
        let (endpoint, from, to) = unsafe { (Endpoint::of(endpoint)?, Bundle::of(from)?, Bundle::of(to)?) };
        endpoint.change_bundle(from, to)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn AM_GetSeg(
    endpoint: *const Endpoint,
    address: *mut *mut c_void,
    len: *mut usize,
) -> c_int {
    answer_with("AM_GetSeg", endpoint, |endpoint| {
        let (address, len) = (Out::new(address)?, Out::new(len)?);
        let segment = endpoint.segment.get();
        // SAFETY: the program has room for both there.
        unsafe {
            address.put(segment.address.cast());
            len.put(segment.len);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn AM_SetSeg(endpoint: *const Endpoint, address: *mut c_void, len: usize) -> c_int {
    answer_with("AM_SetSeg", endpoint, |endpoint| {
        if address.addr().checked_add(len).is_none() {
            return Err(refuse(Code::BadArg, "the segment goes beyond the end of memory"));
        }
        endpoint.segment.set(Segment { address: address.cast(), len });
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn AM_MaxSegLength(len: *mut usize) -> c_int {
    answer("AM_MaxSegLength", || {
        check_initialized()?;
        // SAFETY: the program has room for a number there.
        unsafe { Out::new(len)?.put(usize::MAX) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn AM_GetTag(endpoint: *const Endpoint, tag: *mut u64) -> c_int {
    answer_with("AM_GetTag", endpoint, |endpoint| {
        // SAFETY: the program has room for a tag there.
        unsafe { Out::new(tag)?.put(endpoint.tag.get()) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn AM_SetTag(endpoint: *const Endpoint, tag: u64) -> c_int {
    answer_with("AM_SetTag", endpoint, |endpoint| {
        endpoint.tag.set(tag);
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn AM_SetExpectedResources(
    endpoint: *const Endpoint,
    _: c_int,
    outstanding: c_int,
) -> c_int {
    answer_with("AM_SetExpectedResources", endpoint, |endpoint| {
        if outstanding <= 0 {
            return Err(refuse(Code::BadArg, "the number of requests is not above 0"));
        }
        endpoint.open()
    })
}

/// The functions of this name are macros of the headers, which cast the handler.
#[unsafe(no_mangle)]
unsafe extern "C" fn AMX_SetHandler(
    endpoint: *const Endpoint,
    index: u8,
    function: Option<Function>,
) -> c_int {
    answer_with("AM_SetHandler", endpoint, |endpoint| {
        let function = function.ok_or_else(|| refuse(Code::BadArg, "the handler is NULL"))?;
        endpoint.handlers[usize::from(index)].set(Some(function));
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn AMX_SetHandlerAny(
    endpoint: *const Endpoint,
    index: *mut u8,
    function: Option<Function>,
) -> c_int {
    answer_with("AM_SetHandlerAny", endpoint, |endpoint| {
        let index = Out::new(index)?;
        let function = function.ok_or_else(|| refuse(Code::BadArg, "the handler is NULL"))?;
        let free = (1..HANDLERS).find(|at| endpoint.handlers[*at].get().is_none());
        let free = free.ok_or_else(|| refuse(Code::Resource, "all handlers are in use"))?;
        endpoint.handlers[free].set(Some(function));
        // SAFETY: the program has room for an index there.
        unsafe { index.put(free as u8) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn AM_GetNumHandlers(endpoint: *const Endpoint, number: *mut c_int) -> c_int {
    answer_with("AM_GetNumHandlers", endpoint, |_| {
        // SAFETY: the program has room for a number there.
        unsafe { Out::new(number)?.put(HANDLERS as c_int) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn AM_SetNumHandlers(endpoint: *const Endpoint, number: c_int) -> c_int {
    answer_with("AM_SetNumHandlers", endpoint, |_| {
        if number == HANDLERS as c_int {
            Ok(())
        } else {
            Err(refuse(Code::Resource, "an endpoint has 256 handlers"))
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn AMX_SetHandlerCallbacks(
    endpoint: *const Endpoint,
    before: Option<Function>,
    after: Option<Function>,
) -> c_int {
    answer_with("AMX_SetHandlerCallbacks", endpoint, |endpoint| {
        endpoint.callbacks.set((before.is_some() || after.is_some()).then_some([before, after]));
        Ok(())
    })
}

/// Sets the address at which endpoints listen, in network byte order.
#[unsafe(no_mangle)]
extern "C" fn AMUDP_SetUDPInterface(address: u32) -> c_int {
    answer("AMUDP_SetUDPInterface", || {
        settings::set_address(Ipv4Addr::from(address.to_ne_bytes()));
        Ok(())
    })
}

/// Every endpoint reaches every other one, so that a communicator of MPI makes no difference.
#[unsafe(no_mangle)]
extern "C" fn AMMPI_SetEndpointCommunicator(_: *const c_void) -> c_int {
    answer("AMMPI_SetEndpointCommunicator", || Ok(()))
}
