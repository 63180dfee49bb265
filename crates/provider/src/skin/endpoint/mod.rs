//! An endpoint (fi_endpoint(3)), and what it is bound to.

mod atomic;
mod messages;
mod onesided;

use super::addresses::AvObject;
use super::counter::CounterObject;
use super::guard::{Errno, entries, missing};
use super::object::{self, Object};
use super::queue::CqObject;
use super::state::{Shared, Side, State, Use};
use crate::abi::{self, CmOps, Ep, EpOps, Fid, Info, Opaque, Ops};
use crate::engine::{self, Endpoint, Op, Reports, Until, Wants};
use crate::links::{NAME_LEN, Name};
use atomic::ATOMIC_OPS;
pub use atomic::query_atomic;
use core::ffi::{c_int, c_void};
use messages::{MSG_OPS, TAGGED_OPS};
use onesided::RMA_OPS;
use std::ptr;
use std::sync::Arc;

#[repr(C)]
pub struct EndpointObject {
    header: Ep,
    pub shared: Arc<Shared>,
    pub number: u16,
}

// SAFETY: the object begins with a `fid_ep`.
unsafe impl Object for EndpointObject {
    type Header = Ep;
}

static OPS: Ops = Ops { bind: Some(bind), control: Some(control), ..object::ops(close) };
static EP_OPS: EpOps = EpOps {
    size: size_of::<EpOps>(),
    cancel: Some(cancel),
    getopt: Some(getopt),
    setopt: Some(setopt),
    tx_ctx: Some(no_transmit_context),
    rx_ctx: Some(no_receive_context),
    rx_size_left: Some(no_size_left),
    tx_size_left: Some(no_size_left),
};
static CM_OPS: CmOps = CmOps {
    size: size_of::<CmOps>(),
    setname: Some(no_setname),
    getname: Some(getname),
    getpeer: Some(no_getpeer),
    connect: Some(no_connect),
    listen: Some(no_listen),
    accept: Some(no_accept),
    reject: Some(no_reject),
    shutdown: Some(no_shutdown),
    join: Some(no_join),
};

missing! {
    fn no_transmit_context(*mut Ep, c_int, *mut abi::TxAttr, *mut *mut Ep, Opaque) -> c_int;
    fn no_receive_context(*mut Ep, c_int, *mut abi::RxAttr, *mut *mut Ep, Opaque) -> c_int;
    fn no_size_left(*mut Ep) -> isize;
    fn no_setname(*mut Fid, Opaque, usize) -> c_int;
    fn no_getpeer(*mut Ep, Opaque, *mut usize) -> c_int;
    fn no_connect(*mut Ep, *const c_void, *const c_void, usize) -> c_int;
    fn no_listen(*mut abi::PassiveEp) -> c_int;
    fn no_accept(*mut Ep, *const c_void, usize) -> c_int;
    fn no_reject(*mut abi::PassiveEp, *mut Fid, *const c_void, usize) -> c_int;
    fn no_shutdown(*mut Ep, u64) -> c_int;
    fn no_join(*mut Ep, *const c_void, u64, *mut *mut c_void, Opaque) -> c_int;
}

/// Opens an endpoint.
pub fn open(shared: Arc<Shared>, info: Option<&Info>, context: Opaque) -> Result<*mut Ep, Errno> {
    let info = info.ok_or(Errno(abi::EINVAL))?;
    // SAFETY: libfabric passes a description whose members lead to structures, or to nothing.
    let flags = unsafe {
        let transmit = info.tx_attr.as_ref().map_or(0, |attr| attr.op_flags);
        [transmit, info.rx_attr.as_ref().map_or(0, |attr| attr.op_flags)]
    };
    let is_name = info.src_addrlen == NAME_LEN && !info.src_addr.is_null();
    // SAFETY: libfabric passes an address of that length.
    let address = is_name.then(|| unsafe { &*info.src_addr.cast::<[u8; NAME_LEN]>() });
    let address = address.and_then(|bytes| Name::parse(bytes));
    let served = address.and_then(|name| name.process.service_address());
    let mut state = shared.lock();
    if let Some(served) = served {
        state.engine.links.serve(served).map_err(|_| Errno(abi::EADDRINUSE))?;
    }
    state.begin_flush_anew();
    let number = state.engine.endpoints.insert(Endpoint::default()).ok_or(Errno(abi::EMFILE))?;
    if state.uses.len() <= number.into() {
        state.uses.resize(usize::from(number) + 1, None);
    }
    let is_directed = info.caps & abi::DIRECTED_RECV != 0;
    state.uses[usize::from(number)] = Some(Use { flags, is_directed, ..Use::default() });
    drop(state);
    let header = Ep {
        fid: object::fid(abi::CLASS_EP, context, &OPS),
        ops: object::table(&EP_OPS),
        cm: object::table(&CM_OPS),
        msg: object::table(&MSG_OPS),
        rma: object::table(&RMA_OPS),
        tagged: object::table(&TAGGED_OPS),
        atomic: object::table(&ATOMIC_OPS),
        collective: ptr::null_mut(),
    };
    Ok(EndpointObject { header, shared, number }.give())
}

/// Binds an object's number to the operations of an endpoint that the flags name.
fn bind_reports(all: &mut [Option<usize>], number: usize, flags: u64) {
    let operations = [
        (abi::SEND, Op::Send),
        (abi::RECV, Op::Receive),
        (abi::READ, Op::Read),
        (abi::WRITE, Op::Write),
        (abi::REMOTE_READ, Op::RemoteRead),
        (abi::REMOTE_WRITE, Op::RemoteWrite),
    ];
    for (flag, op) in operations {
        if flags & flag != 0 {
            all[op as usize] = Some(number);
        }
    }
}

entries! {
    fn close(fid: *mut Fid) -> c_int {
        let endpoint = EndpointObject::take(fid);
        endpoint.shared.flush();
        let mut state = endpoint.shared.lock();
        state.uses[usize::from(endpoint.number)] = None;
        state.engine.close(endpoint.number);
        state.wake();
        Ok(0)
    }

    fn bind(fid: *mut Fid, to: *mut Fid, flags: u64) -> c_int {
        let endpoint = EndpointObject::of(fid)?;
        let class = to.as_ref().ok_or(Errno(abi::EINVAL))?.fclass;
        let mut state = endpoint.shared.lock();
        let State { engine, uses, .. } = &mut *state;
        let used = uses.get_mut(usize::from(endpoint.number)).and_then(Option::as_mut).ok_or(Errno(abi::EBADF))?;
        let Reports { queues, counters } =
            &mut engine.endpoints.get_mut(endpoint.number).ok_or(Errno(abi::EBADF))?.reports;
        match class {
            abi::CLASS_AV => used.addresses = Some(AvObject::of(to)?.number),
            abi::CLASS_CQ => {
                let queue = CqObject::of(to)?.number;
                let is_selective = flags & abi::SELECTIVE_COMPLETION != 0;
                if flags & abi::TRANSMIT != 0 {
                    bind_reports(queues, queue, abi::SEND | abi::READ | abi::WRITE);
                    used.is_selective[Side::Transmit as usize] = is_selective;
                }
                if flags & abi::RECV != 0 {
                    bind_reports(queues, queue, abi::RECV | abi::REMOTE_WRITE);
                    used.is_selective[Side::Receive as usize] = is_selective;
                }
            }
            abi::CLASS_CNTR => bind_reports(counters, CounterObject::of(to)?.number, flags),
            abi::CLASS_EQ => {}
            _ => return Err(Errno(abi::EINVAL)),
        }
        Ok(0)
    }

    fn control(fid: *mut Fid, command: c_int, arg: Opaque) -> c_int {
        let endpoint = EndpointObject::of(fid)?;
        let mut state = endpoint.shared.lock();
        let used = state.uses.get_mut(usize::from(endpoint.number)).and_then(Option::as_mut);
        let used = used.ok_or(Errno(abi::EBADF))?;
        if command == abi::ENABLE {
            if used.addresses.is_none() {
                return Err(Errno(abi::ENOAV));
            }
            let reports = state.engine.endpoints.get(endpoint.number).map(|endpoint| &endpoint.reports);
            let has_reports = reports.is_some_and(|all| all.queues.iter().chain(&all.counters).any(Option::is_some));
            return if has_reports { Ok(0) } else { Err(Errno(abi::ENOCQ)) };
        }
        let flags = arg.cast::<u64>().as_mut().ok_or(Errno(abi::EINVAL))?;
        match command {
            abi::GETOPSFLAG | abi::SETOPSFLAG => {
                let side = match *flags & (abi::TRANSMIT | abi::RECV) {
                    abi::TRANSMIT => Side::Transmit,
                    abi::RECV => Side::Receive,
                    _ => return Err(Errno(abi::EINVAL)),
                };
                if command == abi::GETOPSFLAG {
                    *flags = used.flags[side as usize];
                } else {
                    used.flags[side as usize] = *flags & !(abi::TRANSMIT | abi::RECV);
                }
                Ok(0)
            }
            _ => Err(Errno(abi::ENOSYS)),
        }
    }

    fn cancel(fid: *mut Fid, context: Opaque) -> isize {
        let endpoint = EndpointObject::of(fid)?;
        let mut state = endpoint.shared.lock();
        if !state.engine.cancel(endpoint.number, context.expose_provenance()) {
            return Err(Errno(abi::ENOENT));
        }
        state.wake();
        Ok(0)
    }

    fn getopt(fid: *mut Fid, level: c_int, name: c_int, value: Opaque, len: *mut usize) -> c_int {
        let endpoint = EndpointObject::of(fid)?;
        if level != abi::OPT_ENDPOINT || name != abi::OPT_MIN_MULTI_RECV {
            return Err(Errno(abi::ENOPROTOOPT));
        }
        let mut state = endpoint.shared.lock();
        let bytes = state.engine.endpoints.get_mut(endpoint.number).ok_or(Errno(abi::EBADF))?.least_room;
        if *len < size_of::<usize>() {
            return Err(Errno(abi::ETOOSMALL));
        }
        value.cast::<usize>().write_unaligned(bytes);
        *len = size_of::<usize>();
        Ok(0)
    }

    fn setopt(fid: *mut Fid, level: c_int, name: c_int, value: *const c_void, len: usize) -> c_int {
        let endpoint = EndpointObject::of(fid)?;
        if level != abi::OPT_ENDPOINT || name != abi::OPT_MIN_MULTI_RECV {
            return Err(Errno(abi::ENOPROTOOPT));
        }
        if len != size_of::<usize>() {
            return Err(Errno(abi::EINVAL));
        }
        let mut state = endpoint.shared.lock();
        state.engine.endpoints.get_mut(endpoint.number).ok_or(Errno(abi::EBADF))?.least_room =
            value.cast::<usize>().read_unaligned();
        Ok(0)
    }

    fn getname(fid: *mut Fid, addr: Opaque, addrlen: *mut usize) -> c_int {
        let endpoint = EndpointObject::of(fid)?;
        let process = *endpoint.shared.lock().engine.links.process();
        let bytes = Name { process, endpoint: endpoint.number }.encode();
        let room = std::mem::replace(&mut *addrlen, NAME_LEN);
        ptr::copy_nonoverlapping(bytes.as_ptr(), addr.cast(), room.min(NAME_LEN));
        if room < NAME_LEN { Err(Errno(abi::ETOOSMALL)) } else { Ok(0) }
    }
}

/// Returns what the program wants to know of an operation.
pub fn wants(used: &Use, flags: Option<u64>, is_silent: bool) -> Wants {
    let side = Side::Transmit as usize;
    let flags = flags.unwrap_or(used.flags[side]);
    let until = if is_silent {
        Until::Sent
    } else if flags & abi::MATCH_COMPLETE != 0 {
        Until::Matched
    } else if flags & abi::DELIVERY_COMPLETE != 0 {
        Until::Delivered
    } else if flags & abi::TRANSMIT_COMPLETE != 0 {
        Until::Transmitted
    } else {
        Until::Sent
    };
    Wants {
        is_reported: !is_silent && (!used.is_selective[side] || flags & abi::COMPLETION != 0),
        until,
        is_injected: is_silent || flags & abi::INJECT != 0,
    }
}

/// Makes progress where an operation has found no room, so that there is some the next time.
pub fn or_progress<R>(state: &mut State, done: Result<R, engine::Refused>) -> Result<R, Errno> {
    done.map_err(|refused| {
        if refused == engine::Refused::Again {
            state.progress();
        }
        refused.into()
    })
}

/// Returns the remote completion data of an operation with flags.
pub fn data_of(flags: u64, data: u64) -> Option<u64> {
    (flags & abi::REMOTE_CQ_DATA != 0).then_some(data)
}
