//! The messages of an endpoint, with tags (fi_tagged(3)) and without (fi_msg(3)).

use super::{EndpointObject, data_of, or_progress, wants};
use crate::abi::{self, Ep, IoVec, Msg, MsgOps, Opaque, TaggedMsg, TaggedOps};
use crate::engine::{self, Completion, Failure, Posting, Send};
use crate::matching::Wanted;
use crate::memory::Memory;
use crate::skin::guard::{Errno, entries};
use crate::skin::info::LONGEST_MESSAGE;
use crate::skin::object::Object;
use crate::skin::segments::{one, several};
use crate::skin::state::{Side, State};
use core::ffi::c_void;
use std::ptr;

pub static MSG_OPS: MsgOps = MsgOps {
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
pub static TAGGED_OPS: TaggedOps = TaggedOps {
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

/// A message to send, as the functions of libfabric describe it.
struct Outgoing {
    to: u64,
    tag: Option<u64>,
    data: Option<u64>,
    memory: Memory,
    context: Opaque,
    /// The flags of the operation; `None` for those of the endpoint.
    flags: Option<u64>,
    /// A message that is injected has no entry in the completion queue.
    is_silent: bool,
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
        self.shared.make_room(&mut state, to.peer);
        let sent = state.engine.send(self.number, Send { to, tag, data, memory, context, wants });
        or_progress(&mut state, sent)?;
        state.wake();
        drop(state);
        self.shared.wait_until_acknowledged(to.peer);
        Ok(0)
    }

    fn receive(&self, incoming: Incoming) -> Result<isize, Errno> {
        let Incoming { from, tag, memory, context, flags: explicit } = incoming;
        let mut state = self.shared.lock();
        let used = state.used(self.number)?;
        let source = match from {
            abi::ADDR_UNSPEC => None,
            _ if !used.is_directed => None,
            address => Some(state.target(&used, address)?),
        };
        let source = source.map(|target| engine::source(target.peer, target.endpoint));
        let [tag_bits, ignore] = tag.unwrap_or([0, u64::MAX]);
        let wanted = Wanted { source, tag: tag_bits, ignore };
        let side = Side::Receive as usize;
        let flags = explicit.unwrap_or(used.flags[side]);
        let is_reported = !used.is_selective[side] || flags & abi::COMPLETION != 0;
        let context = context.expose_provenance();
        if flags & (abi::PEEK | abi::CLAIM | abi::DISCARD) != 0 {
            let target = (memory, context, is_reported);
            return self.look(&mut state, (&wanted, tag.is_some()), target, flags);
        }
        // Buffers for several messages are those of untagged messages.
        if tag.is_some() && explicit.is_some_and(|flags| flags & abi::MULTI_RECV != 0) {
            return Err(Errno(abi::EINVAL));
        }
        let is_of_several = flags & abi::MULTI_RECV != 0 && tag.is_none();
        let posting =
            Posting { wanted, is_tagged: tag.is_some(), memory, context, is_reported, is_of_several };
        state.engine.receive(self.number, posting)?;
        state.wake();
        Ok(0)
    }

    /// Looks for a message without receiving it, or receives or discards one that was found before.
    fn look(
        &self,
        state: &mut State,
        (wanted, is_tagged): (&Wanted, bool),
        (memory, context, is_reported): (Memory, usize, bool),
        flags: u64,
    ) -> Result<isize, Errno> {
        let (is_peek, is_claim) = (flags & abi::PEEK != 0, flags & abi::CLAIM != 0);
        if !is_peek && flags & abi::DISCARD == 0 {
            let is_done = state.engine.receive_claimed(self.number, memory, context, is_reported);
            state.wake();
            return if is_done { Ok(0) } else { Err(Errno(abi::EINVAL)) };
        }
        if is_peek {
            // The message may have arrived and not been taken.
            state.progress();
        }
        let found = if flags & abi::DISCARD != 0 {
            state.engine.discard(self.number, wanted, is_tagged, (is_claim && !is_peek).then_some(context))
        } else {
            state.engine.find(self.number, wanted, is_tagged, is_claim.then_some(context))?
        };
        let completion = match found {
            Some(arrival) => Completion { len: arrival.len, ..arrival.completion(context) },
            None => Completion {
                tag: wanted.tag,
                failure: Some((Failure::NoMessage, 0)),
                ..Completion::new(context, abi::RECV | if is_tagged { abi::TAGGED } else { abi::MSG })
            },
        };
        state.engine.report_look(self.number, completion);
        state.wake();
        Ok(0)
    }
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
