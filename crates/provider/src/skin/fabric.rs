//! The provider, and a fabric.

use super::counter::CounterObject;
use super::domain;
use super::events;
use super::guard::{Errno, entries, missing};
use super::info;
use super::object::{self, Object};
use super::queue::CqObject;
use crate::abi::{self, Domain, Eq, EqAttr, Fabric, FabricAttr, FabricOps, Fid, Info, Opaque, Ops, Provider};
use core::ffi::{c_int, c_void};
use std::cell::UnsafeCell;
use std::slice;

/// The version of libfabric's interface.
const FI_VERSION: u32 = 2 << 16 | 5;

struct Exported(UnsafeCell<Provider>);

// SAFETY: only libfabric writes there, and the program ensures that it does so in one thread.
unsafe impl Sync for Exported {}

static PROVIDER: Exported = Exported(UnsafeCell::new(Provider {
    version: info::VERSION,
    fi_version: FI_VERSION,
    context: abi::Context { internal: [std::ptr::null_mut(); 4] },
    name: info::NAME.as_ptr(),
    getinfo: Some(info::get_info),
    fabric: Some(open),
    cleanup: Some(clean_up),
}));

/// Returns the provider. libfabric calls this function when it loads the library.
#[unsafe(no_mangle)]
pub extern "C" fn fi_prov_ini() -> *mut c_void {
    PROVIDER.0.get().cast()
}

#[repr(C)]
struct FabricObject {
    header: Fabric,
}

// SAFETY: the object begins with a `fid_fabric`.
unsafe impl Object for FabricObject {
    type Header = Fabric;
}

static OPS: Ops = object::ops(close);
static FABRIC_OPS: FabricOps = FabricOps {
    size: size_of::<FabricOps>(),
    domain: Some(open_domain),
    passive_ep: Some(no_passive),
    eq_open: Some(open_event_queue),
    wait_open: Some(no_wait_set),
    trywait: Some(try_wait),
    domain2: Some(open_domain_2),
};

/// An object at whose descriptor a program may sleep.
enum Awaited<'a> {
    Queue(&'a CqObject),
    Counter(&'a CounterObject),
    /// Its descriptor is readable while it has an event.
    Events,
}

impl Awaited<'_> {
    /// # Safety
    /// The pointer is NULL or leads to a live object of this provider.
    unsafe fn of(fid: *mut Fid) -> Result<Self, Errno> {
        // SAFETY: the caller says so, and the class says what the object is.
        unsafe {
            match fid.as_ref().ok_or(Errno(abi::EINVAL))?.fclass {
                abi::CLASS_CQ => Ok(Self::Queue(CqObject::of(fid)?)),
                abi::CLASS_CNTR => Ok(Self::Counter(CounterObject::of(fid)?)),
                abi::CLASS_EQ => Ok(Self::Events),
                _ => Err(Errno(abi::EINVAL)),
            }
        }
    }

    fn has_no_news(&self) -> bool {
        match self {
            Self::Queue(queue) => queue.has_none(),
            Self::Counter(counter) => counter.is_unchanged(),
            Self::Events => true,
        }
    }

    fn prepare_sleep(&self) -> bool {
        match self {
            Self::Queue(queue) => queue.prepare_sleep(),
            Self::Counter(counter) => counter.prepare_sleep(),
            Self::Events => true,
        }
    }
}

missing! {
    fn no_passive(*mut Fabric, *mut Info, *mut *mut c_void, Opaque) -> c_int;
    fn no_wait_set(*mut Fabric, *mut c_void, *mut *mut c_void) -> c_int;
}

entries! {
    fn clean_up() -> () {
        Ok(())
    }

    fn open(_attr: *mut FabricAttr, fabric: *mut *mut Fabric, context: Opaque) -> c_int {
        let header = Fabric {
            fid: object::fid(abi::CLASS_FABRIC, context, &OPS),
            ops: object::table(&FABRIC_OPS),
            api_version: FI_VERSION,
        };
        *fabric = FabricObject { header }.give();
        Ok(0)
    }

    fn close(fid: *mut Fid) -> c_int {
        drop(FabricObject::take(fid));
        Ok(0)
    }

    fn open_domain(fabric: *mut Fabric, info: *mut Info, domain: *mut *mut Domain, context: Opaque) -> c_int {
        Ok(open_domain_2(fabric, info, domain, 0, context))
    }

    fn open_domain_2(
        _fabric: *mut Fabric,
        _info: *mut Info,
        domain: *mut *mut Domain,
        flags: u64,
        context: Opaque,
    ) -> c_int {
        if flags != 0 {
            return Err(Errno(abi::EINVAL));
        }
        *domain = domain::open(context)?;
        Ok(0)
    }

    fn open_event_queue(_fabric: *mut Fabric, attr: *mut EqAttr, eq: *mut *mut Eq, context: Opaque) -> c_int {
        *eq = events::open(attr.as_ref(), context)?;
        Ok(0)
    }

    fn try_wait(_fabric: *mut Fabric, fids: *mut *mut Fid, count: c_int) -> c_int {
        let count = usize::try_from(count).map_err(|_| Errno(abi::EINVAL))?;
        let fids = if count == 0 { &[][..] } else { slice::from_raw_parts(fids, count) };
        let awaited = fids.iter().map(|&fid| Awaited::of(fid)).collect::<Result<Vec<_>, _>>()?;
        let may_sleep = awaited.iter().all(|one| one.has_no_news() && one.prepare_sleep())
            // Meanwhile another thread may have completed something, whose signal a later preparation has taken.
            && awaited.iter().all(Awaited::has_no_news);
        if may_sleep { Ok(0) } else { Err(Errno(abi::EAGAIN)) }
    }
}
