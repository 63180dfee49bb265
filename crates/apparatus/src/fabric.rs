//! Hooks on fabrics, on their domains and on the objects that domains open.

use crate::abi::{
    self, Cntr, CntrAttr, Context, Cq, CqAttr, Domain, DomainOps, Ep, Fabric, FabricAttr, FabricOps, Fid,
    Info, Opaque, Provider,
};
use crate::account::Word;
use crate::counter::Counter;
use crate::guard::{self, entries};
use crate::hook::{Hook, hook, load};
use crate::patch::{self, call};
use crate::queue::Queue;
use crate::{endpoint, replace};
use core::ffi::c_int;
use std::ptr::{self, NonNull};

/// The capabilities of endpoints that are dialled. Endpoints without any of them, such as those for
/// collective operations alone, are left alone.
const TRANSPORT: u64 = abi::MSG | abi::TAGGED | abi::RMA | abi::ATOMIC;

/// `FI_VERSION(1, 17)`: the oldest version of libfabric that was tested.
const FI_VERSION: u32 = 1 << 16 | 17;

/// The hook's state of a fabric or a domain.
pub struct Known<T> {
    hook: &'static Hook,
    ops: *mut T,
}

/// The entry point that libfabric calls when it loads the library. Without the command's control block
/// the hook does nothing.
///
/// # Safety
/// libfabric calls it, once for each copy of libfabric in the program.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fi_prov_ini() -> *mut Provider {
    // Without a statistics file there is no hook: nothing is dialled, and the command reports that.
    guard::enter_first(load, || ());
    // libfabric writes to the structure and keeps it as long as the process lives.
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

/// Receives each fabric that the program opens, and returns it to libfabric.
unsafe extern "C" fn fabric(attr: *mut FabricAttr, out: *mut *mut Fabric, _provider: Opaque) -> c_int {
    // SAFETY: libfabric passes attributes with a live fabric or none, and room for a pointer to it.
    guard::enter_first(|| unsafe { give_back(attr, out) }, || 0)
}

/// Returns the fabric, with a hook on it unless it has one. The fabric is returned first, so that a
/// failure of the hook does not affect it.
///
/// # Safety
/// The fabric is live, and nothing else uses it yet. There is room for a pointer to it.
unsafe fn give_back(attr: *mut FabricAttr, out: *mut *mut Fabric) -> c_int {
    // SAFETY: the caller says that the fabric is live, so that its table is one of libfabric's.
    unsafe {
        let fabric = (*attr).fabric;
        *out = fabric;
        if let Some(hook) = hook().filter(|_| !fabric.is_null() && !patch::is_ours((*fabric).ops)) {
            hook_fabric(hook, fabric);
        }
    }
    0
}

/// Puts a hook on a fabric that has none.
///
/// # Safety
/// The fabric is live, and nothing else uses it yet.
pub unsafe fn hook_fabric(hook: &'static Hook, fabric: *mut Fabric) {
    // SAFETY: the caller says that the fabric is live, so that its table is one of libfabric's.
    unsafe {
        let known = Known::keep(hook, (*fabric).ops);
        (*fabric).ops = patch::copy((*fabric).ops, known, |ops: &mut FabricOps| {
            replace!(ops, domain => domain, domain2 => domain2, trywait => trywait);
        });
    }
}

impl<T> Known<T> {
    /// Allocates the state for the life of the process. Fabrics and domains are few, and their closing is
    /// not hooked.
    fn keep(hook: &'static Hook, ops: *mut T) -> NonNull<Self> {
        NonNull::from(Box::leak(Box::new(Self { hook, ops })))
    }
}

/// Returns the hook's state of a fabric or a domain by its table.
///
/// # Safety
/// The table is a copy of a table of that type.
unsafe fn known<T>(table: *const T) -> &'static Known<T> {
    // SAFETY: a table of ours leads to the state, which lives as long as the process.
    unsafe { patch::state::<_, Known<T>>(table).as_ref() }
}

/// Defines replacements of functions that open an object. Each puts a hook on the opened object.
macro_rules! opens {
    ($(
        $name:ident($parent:ty, $attr:ident: $attributes:ty $(, $flags:ident)?) -> $child:ty {
            |$hook:ident, $opened:ident| $then:expr
        }
    )*) => { entries! {$(
        fn $name(parent: *mut $parent, $attr: $attributes, out: *mut *mut $child, $($flags: u64,)? context: Opaque) -> c_int, Open {
            let known = known((*parent).ops);
            hook: known.hook,
            pass: { let theirs = known.ops; call!(theirs.$name(parent, $attr, out, $($flags,)? context)) },
            |provider| {
                let theirs = known.ops;
                let result = provider.call(|| call!(theirs.$name(parent, $attr, out, $($flags,)? context)));
                if result == 0 {
                    let ($hook, $opened) = (known.hook, *out);
                    $then;
                }
                result
            },
        }
    )*} };
}

opens! {
    domain(Fabric, info: *mut Info) -> Domain { |hook, domain| install(hook, domain) }
    domain2(Fabric, info: *mut Info, flags) -> Domain { |hook, domain| install(hook, domain) }
    endpoint(Domain, info: *mut Info) -> Ep { |hook, ep| made(hook, info, ep) }
    endpoint2(Domain, info: *mut Info, flags) -> Ep { |hook, ep| made(hook, info, ep) }
    scalable_ep(Domain, info: *mut Info) -> Ep { |hook, _ep| hook.count(Word::OtherEndpoints, 1) }
    cq_open(Domain, attr: *mut CqAttr) -> Cq {
        // A provider opens a peer queue (`FI_PEER`) for another provider. The queue that the program
        // reads is hooked instead.
        |hook, cq| if (*attr).flags & abi::PEER == 0 { Queue::install(hook, cq, (*attr).format) }
    }
    cntr_open(Domain, attr: *mut CntrAttr) -> Cntr {
        |hook, cntr| if hook.ever_dials() { Counter::install(hook, cntr) }
    }
}

entries! {
    /// Returns `FI_EAGAIN` while a completion is held, so that the program polls instead of blocking.
    fn trywait(fabric: *mut Fabric, fids: *mut *mut Fid, count: c_int) -> c_int, Wait {
        let known = known((*fabric).ops);
        hook: known.hook,
        pass: { let theirs = known.ops; call!(theirs.trywait(fabric, fids, count)) },
        |provider| {
            let is_held = |nth| holds(*fids.add(nth));
            if (0..count.max(0) as usize).any(is_held) {
                return -(abi::EAGAIN as c_int);
            }
            let theirs = known.ops;
            provider.call(|| call!(theirs.trywait(fabric, fids, count)))
        },
    }
}

/// Returns whether the hook holds completions of a queue or operations of a counter.
///
/// # Safety
/// The object is live, or the pointer is null.
unsafe fn holds(fid: *mut Fid) -> bool {
    // SAFETY: the caller says that the object is live. Its class tells its type.
    unsafe {
        match fid.as_ref().map(|fid| fid.fclass) {
            Some(abi::CLASS_CQ) => Queue::of(fid.cast::<Cq>()).is_some_and(|queue| queue.as_ref().holds()),
            Some(abi::CLASS_CNTR) => {
                Counter::of(fid.cast::<Cntr>()).is_some_and(|counter| counter.as_ref().holds())
            }
            _ => false,
        }
    }
}

/// Puts a hook on a new domain.
///
/// # Safety
/// The domain is live, and nothing else uses it yet.
unsafe fn install(hook: &'static Hook, domain: *mut Domain) {
    // SAFETY: the caller says that the domain is live, so that its table is one of libfabric's.
    unsafe {
        if patch::is_ours((*domain).ops) {
            return;
        }
        let known = Known::keep(hook, (*domain).ops);
        (*domain).ops = patch::copy((*domain).ops, known, |ops: &mut DomainOps| {
            replace!(ops, endpoint => endpoint, endpoint2 => endpoint2, cq_open => cq_open, cntr_open => cntr_open, scalable_ep => scalable_ep);
        });
    }
}

/// Puts a hook on a new endpoint, if it is a reliable datagram endpoint (`FI_EP_RDM`). The connected
/// endpoints below such an endpoint, as in `tcp;ofi_rxm`, have no hook, because their messages would be
/// dialled twice.
///
/// # Safety
/// The endpoint is live, nothing else uses it yet, and it was opened with `info`.
unsafe fn made(hook: &'static Hook, info: *const Info, ep: *mut Ep) {
    // SAFETY: libfabric filled the `info` of the endpoint; absent parts are null.
    unsafe {
        let Some(info) = info.as_ref() else { return };
        let is_rdm = info.ep_attr.as_ref().is_some_and(|attr| attr.type_ == abi::EP_RDM);
        if !is_rdm || info.caps & TRANSPORT == 0 {
            return;
        }
        let has_data = info.domain_attr.as_ref().is_some_and(|attr| attr.cq_data_size >= 8);
        let delivers = info.tx_attr.as_ref().is_some_and(|attr| attr.op_flags & abi::DELIVERY_COMPLETE != 0);
        endpoint::install(hook, ep, has_data, delivers);
    }
}
