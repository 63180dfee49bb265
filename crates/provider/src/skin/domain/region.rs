//! Registered memory (fi_mr(3)). The program chooses the keys, and peers name bytes by their offset.

use super::shared;
use crate::abi::{self, Fid, IoVec, Mr, MrAttr, Opaque, Ops};
use crate::engine::{Access, Region};
use crate::memory::Memory;
use crate::skin::counter::CounterObject;
use crate::skin::guard::{Errno, entries};
use crate::skin::object::{self, Object};
use crate::skin::segments::{one, several};
use crate::skin::state::Shared;
use core::ffi::{c_int, c_void};
use std::collections::hash_map::Entry;
use std::sync::Arc;

#[repr(C)]
struct RegionObject {
    header: Mr,
    shared: Arc<Shared>,
}

// SAFETY: the object begins with a `fid_mr`.
unsafe impl Object for RegionObject {
    type Header = Mr;
}

static OPS: Ops = Ops { bind: Some(bind), control: Some(control), ..object::ops(close) };

fn insert(
    shared: Arc<Shared>,
    memory: Memory,
    access: u64,
    key: u64,
    context: Opaque,
) -> Result<*mut Mr, Errno> {
    let access = Access {
        can_be_read: access & abi::REMOTE_READ != 0,
        can_be_written: access & abi::REMOTE_WRITE != 0,
    };
    match shared.lock().engine.regions.entry(key) {
        Entry::Occupied(_) => return Err(Errno(abi::ENOKEY)),
        Entry::Vacant(place) => drop(place.insert(Region { memory, access, counters: [None; 2] })),
    }
    let fid = object::fid(abi::CLASS_MR, context, &OPS);
    Ok(RegionObject { header: Mr { fid, mem_desc: std::ptr::null_mut(), key }, shared }.give())
}

entries! {
    fn close(fid: *mut Fid) -> c_int {
        let region = RegionObject::take(fid);
        let mut state = region.shared.lock();
        state.engine.withdraw(region.header.key);
        state.wake();
        Ok(0)
    }

    /// Binds a region to a counter of peers' accesses. It may be bound to an endpoint as well, which has no effect here.
    fn bind(fid: *mut Fid, to: *mut Fid, flags: u64) -> c_int {
        let RegionObject { header, shared } = RegionObject::of(fid)?;
        let class = to.as_ref().ok_or(Errno(abi::EINVAL))?.fclass;
        if class != abi::CLASS_CNTR {
            return if class == abi::CLASS_EP { Ok(0) } else { Err(Errno(abi::EINVAL)) };
        }
        let number = CounterObject::of(to)?.number;
        let mut state = shared.lock();
        let region = state.engine.regions.get_mut(&header.key).ok_or(Errno(abi::EBADF))?;
        for (counter, flag) in region.counters.iter_mut().zip([abi::REMOTE_READ, abi::REMOTE_WRITE]) {
            if flags & flag != 0 {
                *counter = Some(number);
            }
        }
        Ok(0)
    }

    fn control(_fid: *mut Fid, command: c_int, _arg: Opaque) -> c_int {
        if command == abi::ENABLE { Ok(0) } else { Err(Errno(abi::ENOSYS)) }
    }

    fn register(
        fid: *mut Fid,
        buf: *const c_void,
        len: usize,
        access: u64,
        _offset: u64,
        requested_key: u64,
        _flags: u64,
        mr: *mut *mut Mr,
        context: Opaque,
    ) -> c_int {
        *mr = insert(shared(fid)?, one(buf, len), access, requested_key, context)?;
        Ok(0)
    }

    fn register_segments(
        fid: *mut Fid,
        iov: *const IoVec,
        count: usize,
        access: u64,
        _offset: u64,
        requested_key: u64,
        _flags: u64,
        mr: *mut *mut Mr,
        context: Opaque,
    ) -> c_int {
        let memory = several(iov, count)?;
        *mr = insert(shared(fid)?, memory, access, requested_key, context)?;
        Ok(0)
    }

    fn register_attributes(fid: *mut Fid, attr: *const MrAttr, _flags: u64, mr: *mut *mut Mr) -> c_int {
        let attr = attr.as_ref().ok_or(Errno(abi::EINVAL))?;
        let memory = several(attr.mr_iov, attr.iov_count)?;
        *mr = insert(shared(fid)?, memory, attr.access, attr.requested_key, attr.context)?;
        Ok(0)
    }
}
