//! RDMA of an endpoint (fi_rma(3)).

use super::{EndpointObject, data_of, or_progress, wants};
use crate::abi::{self, Ep, IoVec, Opaque, RmaMsg, RmaOps};
use crate::engine::Place;
use crate::memory::Memory;
use crate::skin::guard::{Errno, entries};
use crate::skin::object::Object;
use crate::skin::segments::{one, several};
use core::ffi::c_void;
use std::ptr;

pub static RMA_OPS: RmaOps = RmaOps {
    size: size_of::<RmaOps>(),
    read: Some(read),
    readv: Some(readv),
    readmsg: Some(readmsg),
    write: Some(write),
    writev: Some(writev),
    writemsg: Some(writemsg),
    inject: Some(inject),
    writedata: Some(writedata),
    injectdata: Some(injectdata),
};
/// An access to memory of a peer, as the functions of libfabric describe it.
struct Remote {
    peer: u64,
    place: Place,
    memory: Memory,
    data: Option<u64>,
    context: Opaque,
    flags: Option<u64>,
    is_silent: bool,
}

impl Remote {
    fn new(memory: Memory, peer: u64, offset: u64, key: u64, context: Opaque) -> Self {
        let place = Place { key, offset };
        Self { peer, place, memory, data: None, context, flags: None, is_silent: false }
    }

    fn injected(memory: Memory, peer: u64, offset: u64, key: u64) -> Self {
        Self { is_silent: true, ..Self::new(memory, peer, offset, key, ptr::null_mut()) }
    }

    /// Returns the access of a message, which names one piece of the peer's memory.
    ///
    /// # Safety
    /// The message must be as the manual prescribes.
    unsafe fn of(msg: *const RmaMsg, flags: u64) -> Result<Self, Errno> {
        // SAFETY: as the caller has promised.
        unsafe {
            let msg = msg.as_ref().ok_or(Errno(abi::EINVAL))?;
            let there = msg.rma_iov.as_ref().filter(|_| msg.rma_iov_count == 1).ok_or(Errno(abi::EINVAL))?;
            let memory = several(msg.msg_iov, msg.iov_count)?;
            if memory.len() != there.len {
                return Err(Errno(abi::EINVAL));
            }
            let remote = Self::new(memory, msg.addr, there.addr, there.key, msg.context);
            Ok(Self { data: data_of(flags, msg.data), flags: Some(flags), ..remote })
        }
    }
}

impl EndpointObject {
    fn read(&self, remote: Remote) -> Result<isize, Errno> {
        let Remote { peer, place, memory, context, flags, .. } = remote;
        let mut state = self.shared.lock();
        let used = state.used(self.number)?;
        let target = state.target(&used, peer)?;
        let is_reported = wants(&used, flags, false).is_reported;
        let operation = (context.expose_provenance(), is_reported);
        let begun = state.engine.read(self.number, target, place, memory, operation);
        or_progress(&mut state, begun)?;
        state.wake();
        Ok(0)
    }

    fn write(&self, remote: Remote) -> Result<isize, Errno> {
        let Remote { peer, place, memory, data, context, flags, is_silent } = remote;
        let mut state = self.shared.lock();
        let used = state.used(self.number)?;
        let target = state.target(&used, peer)?;
        let operation = (context.expose_provenance(), wants(&used, flags, is_silent));
        let begun = state.engine.write(self.number, target, place, memory, data, operation);
        or_progress(&mut state, begun)?;
        state.wake();
        Ok(0)
    }
}

entries! {
    fn read(
        ep: *mut Ep,
        buf: *mut c_void,
        len: usize,
        _desc: Opaque,
        from: u64,
        addr: u64,
        key: u64,
        context: Opaque,
    ) -> isize {
        EndpointObject::of(ep)?.read(Remote::new(one(buf, len), from, addr, key, context))
    }

    fn readv(
        ep: *mut Ep,
        iov: *const IoVec,
        _desc: *mut Opaque,
        count: usize,
        from: u64,
        addr: u64,
        key: u64,
        context: Opaque,
    ) -> isize {
        EndpointObject::of(ep)?.read(Remote::new(several(iov, count)?, from, addr, key, context))
    }

    fn readmsg(ep: *mut Ep, msg: *const RmaMsg, flags: u64) -> isize {
        EndpointObject::of(ep)?.read(Remote::of(msg, flags)?)
    }

    fn write(
        ep: *mut Ep,
        buf: *const c_void,
        len: usize,
        _desc: Opaque,
        to: u64,
        addr: u64,
        key: u64,
        context: Opaque,
    ) -> isize {
        EndpointObject::of(ep)?.write(Remote::new(one(buf, len), to, addr, key, context))
    }

    fn writev(
        ep: *mut Ep,
        iov: *const IoVec,
        _desc: *mut Opaque,
        count: usize,
        to: u64,
        addr: u64,
        key: u64,
        context: Opaque,
    ) -> isize {
        EndpointObject::of(ep)?.write(Remote::new(several(iov, count)?, to, addr, key, context))
    }

    fn writemsg(ep: *mut Ep, msg: *const RmaMsg, flags: u64) -> isize {
        EndpointObject::of(ep)?.write(Remote::of(msg, flags)?)
    }

    fn inject(ep: *mut Ep, buf: *const c_void, len: usize, to: u64, addr: u64, key: u64) -> isize {
        EndpointObject::of(ep)?.write(Remote::injected(one(buf, len), to, addr, key))
    }

    fn writedata(
        ep: *mut Ep,
        buf: *const c_void,
        len: usize,
        _desc: Opaque,
        data: u64,
        to: u64,
        addr: u64,
        key: u64,
        context: Opaque,
    ) -> isize {
        let remote = Remote::new(one(buf, len), to, addr, key, context);
        EndpointObject::of(ep)?.write(Remote { data: Some(data), ..remote })
    }

    fn injectdata(
        ep: *mut Ep,
        buf: *const c_void,
        len: usize,
        data: u64,
        to: u64,
        addr: u64,
        key: u64,
    ) -> isize {
        let remote = Remote::injected(one(buf, len), to, addr, key);
        EndpointObject::of(ep)?.write(Remote { data: Some(data), ..remote })
    }
}
