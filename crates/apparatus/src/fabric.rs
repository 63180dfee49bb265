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

/// Functions of the provider's that open an object: what they have opened is given a hook. SAFETY, for
/// all of them: they are reached through a table of ours, which leads to what is known; the arguments
/// are the program's.
macro_rules! opens {
    ($(
        $name:ident($table:ident of $parent:ty, $attr:ident: $attributes:ty $(, $flags:ident)?) -> $child:ty {
            |$hook:ident, $opened:ident| $then:expr
        }
    )*) => {$(
        unsafe extern "C" fn $name(
            parent: *mut $parent,
            $attr: $attributes,
            out: *mut *mut $child,
            $($flags: u64,)?
            context: Opaque,
        ) -> c_int {
            // SAFETY: see above.
            unsafe {
                let known: &Known<$table> = patch::state((*parent).ops);
                let Some(theirs) = (*known.ops).$name else { return -(abi::ENOSYS as c_int) };
                let result = theirs(parent, $attr, out, $($flags,)? context);
                if result == 0 {
                    let ($hook, $opened) = (known.hook, *out);
                    $then;
                }
                result
            }
        }
    )*};
}

opens! {
    domain(FabricOps of Fabric, info: *mut Info) -> Domain { |hook, domain| install(hook, domain) }
    domain2(FabricOps of Fabric, info: *mut Info, flags) -> Domain { |hook, domain| install(hook, domain) }
    endpoint(DomainOps of Domain, info: *mut Info) -> Ep { |hook, ep| made(hook, info, ep) }
    endpoint2(DomainOps of Domain, info: *mut Info, flags) -> Ep { |hook, ep| made(hook, info, ep) }
    cq_open(DomainOps of Domain, attr: *mut CqAttr) -> Cq {
        // A queue that one provider lends another is seen at the one that the program reads.
        |hook, cq| if (*attr).flags & abi::PEER == 0 { Queue::install(hook, cq, (*attr).format) }
    }
    cntr_open(DomainOps of Domain, attr: Opaque) -> Cntr {
        |hook, cntr| if hook.ever_dials() { Counter::install(hook, cntr) }
    }
}

/// A program that would sleep until something arrives is told to look, while something is held.
unsafe extern "C" fn trywait(fabric: *mut Fabric, fids: *mut *mut Fid, count: c_int) -> c_int {
    // SAFETY: as above; there are `count` objects.
    unsafe {
        let known: &Known<FabricOps> = patch::state((*fabric).ops);
        for &fid in std::slice::from_raw_parts(fids, count.max(0) as usize) {
            let holds = match fid.as_ref().map(|fid| fid.fclass) {
                Some(abi::CLASS_CQ) => Queue::of(fid.cast::<Cq>()).is_some_and(Queue::holds),
                Some(abi::CLASS_CNTR) => Counter::of(fid.cast::<Cntr>()).is_some_and(Counter::holds),
                _ => false,
            };
            if holds {
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
