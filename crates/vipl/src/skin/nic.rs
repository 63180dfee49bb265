//! Opening, closing and querying a NIC.
#![allow(non_snake_case, reason = "the names are those of the interface")]

use super::answer;
use crate::abi::{CNicAttributes, ErrorHandler, Given};
use crate::handle::Opaque;
use crate::nic::callbacks::{Context, Kind};
use crate::nic::id::NicId;
use crate::nic::{self, Nic};
use crate::process;
use crate::settings;
use netdyno_stack::vi::{Config, Provider, ReturnCode, WireKind};
use std::ffi::{CStr, c_char, c_ulong};
use std::fmt::Display;
use std::io::Write;

/// `VIP_SMI_AUTODISCOVERY`.
const AUTODISCOVERY: c_ulong = 1;

#[unsafe(no_mangle)]
unsafe extern "C" fn VipOpenNic(device: *const c_char, out: *mut Opaque) -> ReturnCode {
    answer(|| {
        let out = Given::new(out)?;
        let device = Given::new(device.cast_mut()).map(|_| {
            // SAFETY: the program passes a string.
            unsafe { CStr::from_ptr(device) }
        })?;
        let device = device.to_string_lossy();
        let mut wire = settings::wire(&device).map_err(complain)?;
        process::watch_forks()?;
        if let WireKind::Udp(_) = wire
            && let Some(address) = nic::shared_address(&device)
        {
            wire = settings::udp(Some(address));
        }
        let provider = Provider::open(Config::new(wire)).map_err(complain)?;
        let id = nic::open(&device, provider, wire)?;
        if let WireKind::Udp(_) = wire {
            // Peers ask this NIC for other NICs at its address. The progress thread answers while the
            // program does not call.
            nic::call(id, Nic::ensure_progress_thread).inspect_err(|_| {
                let _ = nic::close(id);
            })?;
        }
        // SAFETY: the program has room for a handle there.
        unsafe { out.put(id.give()) };
        Ok(())
    })
}

/// Writes the error to stderr, because the return code does not tell the reason.
fn complain(error: impl Display) -> ReturnCode {
    // An error of the write cannot be reported.
    let _ = writeln!(std::io::stderr(), "libvipl: {error}");
    ReturnCode::ErrorResource
}

#[unsafe(no_mangle)]
extern "C" fn VipCloseNic(nic: Opaque) -> ReturnCode {
    answer(|| nic::close(NicId::take(nic)?))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn VipQueryNic(nic: Opaque, out: *mut CNicAttributes) -> ReturnCode {
    answer(|| {
        let attributes = nic::call(NicId::take(nic)?, |nic| Ok(CNicAttributes::of(nic)))?;
        let out = Given::new(out)?;
        // SAFETY: the program has room for attributes there.
        unsafe { out.put(attributes) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn VipErrorCallback(nic: Opaque, context: Opaque, handler: Option<ErrorHandler>) -> ReturnCode {
    answer(|| {
        let id = NicId::take(nic)?;
        nic::call(id, |nic| {
            nic.callbacks.set_error(handler, Context(context));
            Ok(())
        })?;
        nic::await_handler(id, Kind::Error);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn VipQuerySystemManagementInfo(nic: Opaque, what: c_ulong, out: Opaque) -> ReturnCode {
    answer(|| {
        nic::call(NicId::take(nic)?, |_| Ok(()))?;
        Given::new(out)?;
        // There is no list of providers.
        Err(if what == AUTODISCOVERY { ReturnCode::ErrorNotSupported } else { ReturnCode::InvalidParameter })
    })
}
