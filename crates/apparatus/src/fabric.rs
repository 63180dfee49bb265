//! From the library's entry to the endpoints: each object gives out the next.

use crate::abi::{
    self, Cntr, Context, Cq, CqAttr, Domain, DomainOps, Ep, Fabric, FabricAttr, FabricOps, Fid, Info, Opaque,
    Provider,
};
use crate::account::Word;
use crate::counter::Counter;
use crate::hook::{Hook, hook, load};
use crate::queue::Queue;
use crate::{endpoint, patch, replace};
use core::ffi::c_int;
use std::ptr;

/// Endpoints that can only do other things (collective operations of their own) are left alone.
const TRANSPORT: u64 = abi::MSG | abi::TAGGED | abi::RMA | abi::ATOMIC;

/// `FI_VERSION(1, 17)`: the oldest that was tried.
const FI_VERSION: u32 = 1 << 16 | 17;

/// What the hook knows of a fabric or a domain: the provider's table.
struct Known<T> {
    hook: &'static Hook,
    ops: *const T,
}

/// libfabric's entry to the library. Without the command's page it does nothing.
///
/// # Safety
/// libfabric calls it, once for each copy of itself that a program has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fi_prov_ini() -> *mut Provider {
    load();
    // libfabric writes into it, and keeps it as long as the process lives.
    Box::into_raw(Box::new(Provider {
        version: 1,
        fi_version: FI_VERSION,
        context: Context { internal: [ptr::null_mut(); 4] },
        name: c"ofi_hook_netdyno".as_ptr(),
        getinfo: None,
        fabric: Some(fabric),
        cleanup: None,
    }))
}

/// Is given a fabric that was opened, and gives it back.
unsafe extern "C" fn fabric(attr: *mut FabricAttr, out: *mut *mut Fabric, _provider: Opaque) -> c_int {
    // SAFETY: libfabric hands over a live fabric in the attributes.
    unsafe {
        let fabric = (*attr).fabric;
        *out = fabric;
        if let Some(hook) = hook().filter(|_| !fabric.is_null() && !patch::is_ours((*fabric).ops)) {
            let known = Box::into_raw(Box::new(Known { hook, ops: (*fabric).ops }));
            (*fabric).ops = patch::copy((*fabric).ops, known, |ops: &mut FabricOps| {
                replace!(ops, domain => domain, domain2 => domain2, trywait => trywait);
            });
        }
        0
    }
}

unsafe extern "C" fn domain(
    fabric: *mut Fabric,
    info: *mut Info,
    out: *mut *mut Domain,
    context: Opaque,
) -> c_int {
    // SAFETY: reached through a table of ours; the arguments are the program's.
    unsafe {
        let known: &Known<FabricOps> = patch::state((*fabric).ops);
        let Some(theirs) = (*known.ops).domain else { return -(abi::ENOSYS as c_int) };
        let result = theirs(fabric, info, out, context);
        if result == 0 {
            install(known.hook, *out);
        }
        result
    }
}

unsafe extern "C" fn domain2(
    fabric: *mut Fabric,
    info: *mut Info,
    out: *mut *mut Domain,
    flags: u64,
    context: Opaque,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        let known: &Known<FabricOps> = patch::state((*fabric).ops);
        let Some(theirs) = (*known.ops).domain2 else { return -(abi::ENOSYS as c_int) };
        let result = theirs(fabric, info, out, flags, context);
        if result == 0 {
            install(known.hook, *out);
        }
        result
    }
}

/// A program that would sleep until something arrives is told to look, while something is held.
unsafe extern "C" fn trywait(fabric: *mut Fabric, fids: *mut *mut Fid, count: c_int) -> c_int {
    // SAFETY: as above; there are `count` objects.
    unsafe {
        let known: &Known<FabricOps> = patch::state((*fabric).ops);
        for &fid in std::slice::from_raw_parts(fids, count.max(0) as usize) {
            let is_queue = !fid.is_null() && (*fid).fclass == abi::CLASS_CQ;
            if is_queue && Queue::of(fid.cast::<Cq>()).is_some_and(Queue::holds) {
                return -(abi::EAGAIN as c_int);
            }
        }
        (*known.ops).trywait.map_or(-(abi::ENOSYS as c_int), |theirs| theirs(fabric, fids, count))
    }
}

/// Puts a hook on a domain that has just been opened.
unsafe fn install(hook: &'static Hook, domain: *mut Domain) {
    // SAFETY: it is live, and nobody else uses it yet.
    unsafe {
        if patch::is_ours((*domain).ops) {
            return;
        }
        let known = Box::into_raw(Box::new(Known { hook, ops: (*domain).ops }));
        (*domain).ops = patch::copy((*domain).ops, known, |ops: &mut DomainOps| {
            replace!(ops, endpoint => endpoint, endpoint2 => endpoint2, cq_open => cq_open, cntr_open => cntr_open, scalable_ep => scalable_ep);
        });
    }
}

unsafe extern "C" fn endpoint(
    domain: *mut Domain,
    info: *mut Info,
    out: *mut *mut Ep,
    context: Opaque,
) -> c_int {
    // SAFETY: reached through a table of ours; the arguments are the program's.
    unsafe {
        let known: &Known<DomainOps> = patch::state((*domain).ops);
        let Some(theirs) = (*known.ops).endpoint else { return -(abi::ENOSYS as c_int) };
        let result = theirs(domain, info, out, context);
        if result == 0 {
            made(known.hook, info, *out);
        }
        result
    }
}

unsafe extern "C" fn endpoint2(
    domain: *mut Domain,
    info: *mut Info,
    out: *mut *mut Ep,
    flags: u64,
    context: Opaque,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        let known: &Known<DomainOps> = patch::state((*domain).ops);
        let Some(theirs) = (*known.ops).endpoint2 else { return -(abi::ENOSYS as c_int) };
        let result = theirs(domain, info, out, flags, context);
        if result == 0 {
            made(known.hook, info, *out);
        }
        result
    }
}

/// An endpoint was made: those that any peer can be reached through are dialled. What they are made
/// of, one connection each (as in `tcp;ofi_rxm`), is not: it would be dialled twice.
unsafe fn made(hook: &'static Hook, info: *const Info, ep: *mut Ep) {
    // SAFETY: libfabric filled the information that it was made by; absent parts are null.
    unsafe {
        let Some(info) = info.as_ref() else { return };
        let is_rdm = info.ep_attr.as_ref().is_some_and(|attr| attr.kind == abi::EP_RDM);
        if !is_rdm || info.caps & TRANSPORT == 0 {
            return;
        }
        let has_data = info.domain_attr.as_ref().is_some_and(|attr| attr.cq_data_size >= 8);
        let delivers = info.tx_attr.as_ref().is_some_and(|attr| attr.op_flags & abi::DELIVERY_COMPLETE != 0);
        endpoint::install(hook, ep, has_data, delivers);
    }
}

unsafe extern "C" fn scalable_ep(
    domain: *mut Domain,
    info: *mut Info,
    out: *mut *mut Ep,
    context: Opaque,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        let known: &Known<DomainOps> = patch::state((*domain).ops);
        known.hook.count(Word::OtherEndpoints, 1);
        (*known.ops).scalable_ep.map_or(-(abi::ENOSYS as c_int), |theirs| theirs(domain, info, out, context))
    }
}

unsafe extern "C" fn cq_open(
    domain: *mut Domain,
    attr: *mut CqAttr,
    out: *mut *mut Cq,
    context: Opaque,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        let known: &Known<DomainOps> = patch::state((*domain).ops);
        let Some(theirs) = (*known.ops).cq_open else { return -(abi::ENOSYS as c_int) };
        let result = theirs(domain, attr, out, context);
        // A queue that one provider lends another is seen at the one that the program reads.
        if result == 0 && (*attr).flags & abi::PEER == 0 {
            Queue::install(known.hook, *out, (*attr).format);
        }
        result
    }
}

unsafe extern "C" fn cntr_open(
    domain: *mut Domain,
    attr: Opaque,
    out: *mut *mut Cntr,
    context: Opaque,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        let known: &Known<DomainOps> = patch::state((*domain).ops);
        let Some(theirs) = (*known.ops).cntr_open else { return -(abi::ENOSYS as c_int) };
        let result = theirs(domain, attr, out, context);
        if result == 0 && known.hook.ever_dials() {
            Counter::install(known.hook, *out);
        }
        result
    }
}
