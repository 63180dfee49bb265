//! An endpoint (fi_endpoint(3)): what it is bound to, and its messages, with tags (fi_tagged(3)) and without
//! (fi_msg(3)).

use super::addresses::AvObject;
use super::counter::CounterObject;
use super::guard::{Errno, entries, missing};
use super::info::LONGEST_MESSAGE;
use super::object::{self, Object};
use super::onesided::{ATOMIC_OPS, RMA_OPS};
use super::queue::CqObject;
use super::region::segments;
use super::state::{Shared, Side, State, Use};
use crate::abi::{self, CmOps, Ep, EpOps, Fid, Info, IoVec, Msg, MsgOps, Opaque, Ops, TaggedMsg, TaggedOps};
use crate::engine::{self, Completion, Endpoint, Failure, Op, Posting, Reports, Send, Wants};
use crate::frame::MOST_SEGMENTS;
use crate::links::{NAME_LEN, Name};
use crate::matching::Wanted;
use crate::memory::{Memory, Segment};
use core::ffi::{c_int, c_void};
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
static MSG_OPS: MsgOps = MsgOps {
    size: size_of::<MsgOps>(),
    recv: Some(recv),
    recvv: Some(recvv),
    recvmsg: Some(recvmsg),
    send: Some(send),
    sendv: Some(sendv),
    sendmsg: Some(sendmsg),
    inject: Some(inject),
    senddata: Some(senddata),
    injectdata: Some(injectdata),
};
static TAGGED_OPS: TaggedOps = TaggedOps {
    size: size_of::<TaggedOps>(),
    recv: Some(trecv),
    recvv: Some(trecvv),
    recvmsg: Some(trecvmsg),
    send: Some(tsend),
    sendv: Some(tsendv),
    sendmsg: Some(tsendmsg),
    inject: Some(tinject),
    senddata: Some(tsenddata),
    injectdata: Some(tinjectdata),
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
    let mut state = shared.lock();
    let number = state.engine.endpoints.insert(Endpoint::default());
    let Ok(number) = u16::try_from(number) else {
        state.engine.endpoints.remove(number);
        return Err(Errno(abi::EMFILE));
    };
    state.uses.insert(number, Use { flags, ..Use::default() });
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
        let mut state = endpoint.shared.lock();
        state.uses.remove(&endpoint.number);
        state.engine.close(endpoint.number);
        Ok(0)
    }

    fn bind(fid: *mut Fid, to: *mut Fid, flags: u64) -> c_int {
        let endpoint = EndpointObject::of(fid)?;
        let class = to.as_ref().ok_or(Errno(abi::EINVAL))?.fclass;
        let mut state = endpoint.shared.lock();
        let State { engine, uses, .. } = &mut *state;
        let used = uses.get_mut(&endpoint.number).ok_or(Errno(abi::EBADF))?;
        let Reports { queues, counters } =
            &mut engine.endpoints.get_mut(endpoint.number.into()).ok_or(Errno(abi::EBADF))?.reports;
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
        let used = state.uses.get_mut(&endpoint.number).ok_or(Errno(abi::EBADF))?;
        if command == abi::ENABLE {
            return if used.addresses.is_some() { Ok(0) } else { Err(Errno(abi::ENOAV)) };
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
        if state.engine.cancel(endpoint.number, context.expose_provenance()) { Ok(0) } else { Err(Errno(abi::ENOENT)) }
    }

    fn getopt(fid: *mut Fid, level: c_int, name: c_int, value: Opaque, len: *mut usize) -> c_int {
        let endpoint = EndpointObject::of(fid)?;
        if level != abi::OPT_ENDPOINT || name != abi::OPT_MIN_MULTI_RECV {
            return Err(Errno(abi::ENOPROTOOPT));
        }
        let mut state = endpoint.shared.lock();
        let bytes = state.engine.endpoints.get_mut(endpoint.number.into()).ok_or(Errno(abi::EBADF))?.least_room;
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
        state.engine.endpoints.get_mut(endpoint.number.into()).ok_or(Errno(abi::EBADF))?.least_room =
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

/// A message to send, as the functions of libfabric describe it.
pub struct Outgoing {
    pub to: u64,
    pub tag: Option<u64>,
    pub data: Option<u64>,
    pub memory: Memory,
    pub context: Opaque,
    /// The flags of the operation; `None` for those of the endpoint.
    pub flags: Option<u64>,
    /// A message that is injected has no entry in the completion queue.
    pub is_silent: bool,
}

/// A receive, as the functions of libfabric describe it.
struct Incoming {
    from: u64,
    /// The tag and the bits of it that do not count.
    tag: Option<[u64; 2]>,
    memory: Memory,
    context: Opaque,
    flags: Option<u64>,
}

/// Returns what the program wants to know of an operation.
pub fn wants(used: &Use, flags: Option<u64>, is_silent: bool) -> Wants {
    let side = Side::Transmit as usize;
    let flags = flags.unwrap_or(used.flags[side]);
    Wants {
        is_reported: !is_silent && (!used.is_selective[side] || flags & abi::COMPLETION != 0),
        is_delivery: flags & (abi::DELIVERY_COMPLETE | abi::MATCH_COMPLETE) != 0 && !is_silent,
        is_injected: is_silent || flags & abi::INJECT != 0,
    }
}

/// Makes progress where an operation has found no room, so that there is some the next time.
pub fn or_progress<R>(state: &mut State, done: Result<R, engine::Refused>) -> Result<R, Errno> {
    done.map_err(|refused| {
        if refused == engine::Refused::Again {
            state.engine.progress();
        }
        refused.into()
    })
}

impl EndpointObject {
    fn send(&self, outgoing: Outgoing) -> Result<isize, Errno> {
        let Outgoing { to, tag, data, memory, context, flags, is_silent } = outgoing;
        if memory.len() > LONGEST_MESSAGE {
            return Err(Errno(abi::EMSGSIZE));
        }
        let mut state = self.shared.lock();
        let used = state.used(self.number)?;
        let to = state.target(&used, to)?;
        let wants = wants(&used, flags, is_silent);
        let context = context.expose_provenance();
        let sent = state.engine.send(self.number, Send { to, tag, data, memory, context, wants });
        or_progress(&mut state, sent)?;
        Ok(0)
    }

    fn receive(&self, incoming: Incoming) -> Result<isize, Errno> {
        let Incoming { from, tag, memory, context, flags } = incoming;
        let mut state = self.shared.lock();
        let used = state.used(self.number)?;
        let source = match from {
            abi::ADDR_UNSPEC => None,
            address => Some(state.target(&used, address)?),
        };
        let source = source.map(|target| engine::source(target.peer, target.endpoint));
        let [tag_bits, ignore] = tag.unwrap_or([0, u64::MAX]);
        let wanted = Wanted { source, tag: tag_bits, ignore };
        let side = Side::Receive as usize;
        let flags = flags.unwrap_or(used.flags[side]);
        let is_reported = !used.is_selective[side] || flags & abi::COMPLETION != 0;
        let context = context.expose_provenance();
        if flags & (abi::PEEK | abi::CLAIM | abi::DISCARD) != 0 {
            return self.look(&mut state, &wanted, (memory, context, is_reported), flags);
        }
        let is_of_several = flags & abi::MULTI_RECV != 0;
        let posting =
            Posting { wanted, is_tagged: tag.is_some(), memory, context, is_reported, is_of_several };
        state.engine.receive(self.number, posting)?;
        Ok(0)
    }

    /// Looks for a message without receiving it, or receives or discards one that was found before.
    fn look(
        &self,
        state: &mut State,
        wanted: &Wanted,
        (memory, context, is_reported): (Memory, usize, bool),
        flags: u64,
    ) -> Result<isize, Errno> {
        let (is_peek, is_claim) = (flags & abi::PEEK != 0, flags & abi::CLAIM != 0);
        if !is_peek && flags & abi::DISCARD == 0 {
            let is_done = state.engine.receive_claimed(self.number, memory, context, is_reported);
            return if is_done { Ok(0) } else { Err(Errno(abi::EINVAL)) };
        }
        if is_peek {
            // The message may have arrived and not been taken.
            state.engine.progress();
        }
        let found = if flags & abi::DISCARD != 0 {
            state.engine.discard(self.number, wanted, context, is_claim && !is_peek)
        } else {
            state.engine.find(self.number, wanted, true, is_claim.then_some(context))?
        };
        let completion = Completion::new(context, abi::RECV | abi::TAGGED);
        let completion = match found {
            Some(found) => Completion {
                len: found.len,
                tag: found.tag,
                data: found.data.unwrap_or(0),
                source: found.source,
                flags: completion.flags | if found.data.is_some() { abi::REMOTE_CQ_DATA } else { 0 },
                ..completion
            },
            None => Completion { tag: wanted.tag, failure: Some((Failure::NoMessage, 0)), ..completion },
        };
        state.engine.report(self.number, Op::Receive, completion, true);
        Ok(0)
    }
}

/// Returns memory of one segment.
///
/// # Safety
/// As for [`Memory::new`].
pub unsafe fn one(buf: *const c_void, len: usize) -> Memory {
    // SAFETY: as the caller has promised.
    unsafe { Memory::new([Segment { address: buf.expose_provenance() as u64, len: len as u64 }]) }
}

/// Returns memory of several segments.
///
/// # Safety
/// As for [`Memory::new`] and [`segments`].
pub unsafe fn several(iov: *const IoVec, count: usize) -> Result<Memory, Errno> {
    if count > MOST_SEGMENTS {
        return Err(Errno(abi::EINVAL));
    }
    // SAFETY: as the caller has promised.
    Ok(unsafe { Memory::new(segments(iov, count)) })
}

/// Returns the remote completion data of an operation with flags.
pub fn data_of(flags: u64, data: u64) -> Option<u64> {
    (flags & abi::REMOTE_CQ_DATA != 0).then_some(data)
}

fn outgoing(memory: Memory, to: u64, context: Opaque) -> Outgoing {
    Outgoing { to, tag: None, data: None, memory, context, flags: None, is_silent: false }
}

fn injected(memory: Memory, to: u64) -> Outgoing {
    Outgoing { is_silent: true, ..outgoing(memory, to, ptr::null_mut()) }
}

entries! {
    fn recv(ep: *mut Ep, buf: *mut c_void, len: usize, _desc: Opaque, from: u64, context: Opaque) -> isize {
        EndpointObject::of(ep)?.receive(Incoming { from, tag: None, memory: one(buf, len), context, flags: None })
    }

    fn recvv(
        ep: *mut Ep,
        iov: *const IoVec,
        _desc: *mut Opaque,
        count: usize,
        from: u64,
        context: Opaque,
    ) -> isize {
        let memory = several(iov, count)?;
        EndpointObject::of(ep)?.receive(Incoming { from, tag: None, memory, context, flags: None })
    }

    fn recvmsg(ep: *mut Ep, msg: *const Msg, flags: u64) -> isize {
        let msg = msg.as_ref().ok_or(Errno(abi::EINVAL))?;
        let memory = several(msg.msg_iov, msg.iov_count)?;
        let incoming = Incoming { from: msg.addr, tag: None, memory, context: msg.context, flags: Some(flags) };
        EndpointObject::of(ep)?.receive(incoming)
    }

    fn send(ep: *mut Ep, buf: *const c_void, len: usize, _desc: Opaque, to: u64, context: Opaque) -> isize {
        EndpointObject::of(ep)?.send(outgoing(one(buf, len), to, context))
    }

    fn sendv(ep: *mut Ep, iov: *const IoVec, _desc: *mut Opaque, count: usize, to: u64, context: Opaque) -> isize {
        EndpointObject::of(ep)?.send(outgoing(several(iov, count)?, to, context))
    }

    fn sendmsg(ep: *mut Ep, msg: *const Msg, flags: u64) -> isize {
        let msg = msg.as_ref().ok_or(Errno(abi::EINVAL))?;
        let sent = outgoing(several(msg.msg_iov, msg.iov_count)?, msg.addr, msg.context);
        EndpointObject::of(ep)?.send(Outgoing { data: data_of(flags, msg.data), flags: Some(flags), ..sent })
    }

    fn inject(ep: *mut Ep, buf: *const c_void, len: usize, to: u64) -> isize {
        EndpointObject::of(ep)?.send(injected(one(buf, len), to))
    }

    fn senddata(
        ep: *mut Ep,
        buf: *const c_void,
        len: usize,
        _desc: Opaque,
        data: u64,
        to: u64,
        context: Opaque,
    ) -> isize {
        EndpointObject::of(ep)?.send(Outgoing { data: Some(data), ..outgoing(one(buf, len), to, context) })
    }

    fn injectdata(ep: *mut Ep, buf: *const c_void, len: usize, data: u64, to: u64) -> isize {
        EndpointObject::of(ep)?.send(Outgoing { data: Some(data), ..injected(one(buf, len), to) })
    }

    fn trecv(
        ep: *mut Ep,
        buf: *mut c_void,
        len: usize,
        _desc: Opaque,
        from: u64,
        tag: u64,
        ignore: u64,
        context: Opaque,
    ) -> isize {
        let tag = Some([tag, ignore]);
        EndpointObject::of(ep)?.receive(Incoming { from, tag, memory: one(buf, len), context, flags: None })
    }

    fn trecvv(
        ep: *mut Ep,
        iov: *const IoVec,
        _desc: *mut Opaque,
        count: usize,
        from: u64,
        tag: u64,
        ignore: u64,
        context: Opaque,
    ) -> isize {
        let (tag, memory) = (Some([tag, ignore]), several(iov, count)?);
        EndpointObject::of(ep)?.receive(Incoming { from, tag, memory, context, flags: None })
    }

    fn trecvmsg(ep: *mut Ep, msg: *const TaggedMsg, flags: u64) -> isize {
        let msg = msg.as_ref().ok_or(Errno(abi::EINVAL))?;
        let (tag, memory) = (Some([msg.tag, msg.ignore]), several(msg.msg_iov, msg.iov_count)?);
        let incoming = Incoming { from: msg.addr, tag, memory, context: msg.context, flags: Some(flags) };
        EndpointObject::of(ep)?.receive(incoming)
    }

    fn tsend(
        ep: *mut Ep,
        buf: *const c_void,
        len: usize,
        _desc: Opaque,
        to: u64,
        tag: u64,
        context: Opaque,
    ) -> isize {
        EndpointObject::of(ep)?.send(Outgoing { tag: Some(tag), ..outgoing(one(buf, len), to, context) })
    }

    fn tsendv(
        ep: *mut Ep,
        iov: *const IoVec,
        _desc: *mut Opaque,
        count: usize,
        to: u64,
        tag: u64,
        context: Opaque,
    ) -> isize {
        EndpointObject::of(ep)?.send(Outgoing { tag: Some(tag), ..outgoing(several(iov, count)?, to, context) })
    }

    fn tsendmsg(ep: *mut Ep, msg: *const TaggedMsg, flags: u64) -> isize {
        let msg = msg.as_ref().ok_or(Errno(abi::EINVAL))?;
        let sent = outgoing(several(msg.msg_iov, msg.iov_count)?, msg.addr, msg.context);
        let (tag, data) = (Some(msg.tag), data_of(flags, msg.data));
        EndpointObject::of(ep)?.send(Outgoing { tag, data, flags: Some(flags), ..sent })
    }

    fn tinject(ep: *mut Ep, buf: *const c_void, len: usize, to: u64, tag: u64) -> isize {
        EndpointObject::of(ep)?.send(Outgoing { tag: Some(tag), ..injected(one(buf, len), to) })
    }

    fn tsenddata(
        ep: *mut Ep,
        buf: *const c_void,
        len: usize,
        _desc: Opaque,
        data: u64,
        to: u64,
        tag: u64,
        context: Opaque,
    ) -> isize {
        let sent = outgoing(one(buf, len), to, context);
        EndpointObject::of(ep)?.send(Outgoing { tag: Some(tag), data: Some(data), ..sent })
    }

    fn tinjectdata(ep: *mut Ep, buf: *const c_void, len: usize, data: u64, to: u64, tag: u64) -> isize {
        EndpointObject::of(ep)?.send(Outgoing { tag: Some(tag), data: Some(data), ..injected(one(buf, len), to) })
    }
}
