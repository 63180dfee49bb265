//! The functions for two-sided messages that the hook replaces.

use super::{Counts, End, Endpoint, Operation, behind, bytes_of};
use crate::abi::{self, Address, Ep, IoVec, Msg, Opaque, TaggedMsg};
use crate::guard::entries;
use crate::patch::{self, call};
use core::ffi::c_void;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

/// Returns when a send with flags completes: its flags replace the endpoint's. A program that asks for
/// the delivery of one send waits for it.
fn sent_with(flags: u64) -> End {
    if flags & abi::DELIVERY_COMPLETE != 0 { End::Back } else { End::Sent }
}

fn message(to: Address, bytes: usize, end: End, context: Opaque) -> Operation {
    Operation { to, bytes, end, counts: Counts::Sends, context }
}

/// Defines replacements of the functions that send.
macro_rules! messages {
    ($table:ident $msg:ident; $send:ident $sendv:ident $sendmsg:ident $inject:ident $senddata:ident $injectdata:ident; $($tag:ident)?) => { entries! {
        pub(super) fn $send(ep: *mut Ep, buf: *const c_void, len: usize, desc: Opaque, to: Address, $($tag: u64,)? context: Opaque) -> isize, Send {
            let (state, theirs) = behind!(ep.$table);
            hook: state.hook,
            pass: call!(theirs.send(ep, buf, len, desc, to, $($tag,)? context)),
            |provider| state.send(&message(to, len, state.sent(), context), None, provider, |data| match data {
                Some(data) => call!(theirs.senddata(ep, buf, len, desc, data, to, $($tag,)? context)),
                None => call!(theirs.send(ep, buf, len, desc, to, $($tag,)? context)),
            }),
        }

        pub(super) fn $senddata(ep: *mut Ep, buf: *const c_void, len: usize, desc: Opaque, data: u64, to: Address, $($tag: u64,)? context: Opaque) -> isize, Send {
            let (state, theirs) = behind!(ep.$table);
            hook: state.hook,
            pass: call!(theirs.senddata(ep, buf, len, desc, data, to, $($tag,)? context)),
            |provider| state.send(&message(to, len, state.sent(), context), Some(data), provider, |stamped| {
                call!(theirs.senddata(ep, buf, len, desc, stamped.unwrap_or(data), to, $($tag,)? context))
            }),
        }

        pub(super) fn $inject(ep: *mut Ep, buf: *const c_void, len: usize, to: Address $(, $tag: u64)?) -> isize, Send {
            let (state, theirs) = behind!(ep.$table);
            hook: state.hook,
            pass: call!(theirs.inject(ep, buf, len, to $(, $tag)?)),
            |provider| state.send(&message(to, len, End::Sent, ptr::null_mut()), None, provider, |data| match data {
                Some(data) => call!(theirs.injectdata(ep, buf, len, data, to $(, $tag)?)),
                None => call!(theirs.inject(ep, buf, len, to $(, $tag)?)),
            }),
        }

        pub(super) fn $injectdata(ep: *mut Ep, buf: *const c_void, len: usize, data: u64, to: Address $(, $tag: u64)?) -> isize, Send {
            let (state, theirs) = behind!(ep.$table);
            hook: state.hook,
            pass: call!(theirs.injectdata(ep, buf, len, data, to $(, $tag)?)),
            |provider| state.send(&message(to, len, End::Sent, ptr::null_mut()), Some(data), provider, |stamped| {
                call!(theirs.injectdata(ep, buf, len, stamped.unwrap_or(data), to $(, $tag)?))
            }),
        }

        // No function sends a vector with data but `sendmsg`, whose flags would replace the endpoint's.
        // So a vector is sent without a stamp.
        pub(super) fn $sendv(ep: *mut Ep, iov: *const IoVec, desc: *mut Opaque, count: usize, to: Address, $($tag: u64,)? context: Opaque) -> isize, Send {
            let (state, theirs) = behind!(ep.$table);
            hook: state.hook,
            pass: call!(theirs.sendv(ep, iov, desc, count, to, $($tag,)? context)),
            |provider| state.send(&message(to, bytes_of(iov, count), state.sent(), context), None, provider, |data| match data {
                Some(_) => -abi::ENOSYS,
                None => call!(theirs.sendv(ep, iov, desc, count, to, $($tag,)? context)),
            }),
        }

        pub(super) fn $sendmsg(ep: *mut Ep, msg: *const $msg, flags: u64) -> isize, Send {
            let (state, theirs) = behind!(ep.$table);
            hook: state.hook,
            pass: call!(theirs.sendmsg(ep, msg, flags)),
            |provider| {
                let data = (flags & abi::REMOTE_CQ_DATA != 0).then_some((*msg).data);
                let bytes = bytes_of((*msg).msg_iov, (*msg).iov_count);
                state.send(&message((*msg).addr, bytes, sent_with(flags), (*msg).context), data, provider, |stamped| match stamped {
                    Some(data) => {
                        let msg = $msg { data, ..*msg };
                        call!(theirs.sendmsg(ep, &raw const msg, flags | abi::REMOTE_CQ_DATA))
                    }
                    None => call!(theirs.sendmsg(ep, msg, flags)),
                })
            },
        }
    } };
}

messages!(msg Msg; send sendv sendmsg inject senddata injectdata; );
messages!(tagged TaggedMsg; tsend tsendv tsendmsg tinject tsenddata tinjectdata; tag);

/// Defines replacements of the functions that post receives. The message of a receive may have arrived
/// earlier.
macro_rules! receives {
    ($($table:ident: $ours:ident => $theirs:ident($($argument:ident: $kind:ty),*);)*) => { entries! {$(
        pub(super) fn $ours(ep: *mut Ep, $($argument: $kind),*) -> isize, Receive {
            let (state, theirs) = behind!(ep.$table);
            hook: state.hook,
            pass: call!(theirs.$theirs(ep, $($argument),*)),
            |provider| {
                state.note_receive();
                provider.call(|| call!(theirs.$theirs(ep, $($argument),*)))
            },
        }
    )*} };
}

receives! {
    msg: recv => recv(buf: Opaque, len: usize, desc: Opaque, from: Address, context: Opaque);
    msg: recvv => recvv(iov: *const IoVec, desc: *mut Opaque, count: usize, from: Address, context: Opaque);
    msg: recvmsg => recvmsg(msg: *const Msg, flags: u64);
    tagged: trecv => recv(buf: Opaque, len: usize, desc: Opaque, from: Address, tag: u64, ignore: u64, context: Opaque);
    tagged: trecvv => recvv(iov: *const IoVec, desc: *mut Opaque, count: usize, from: Address, tag: u64, ignore: u64, context: Opaque);
}

entries! {
    pub(super) fn trecvmsg(ep: *mut Ep, msg: *const TaggedMsg, flags: u64) -> isize, Receive {
        let (state, theirs) = behind!(ep.tagged);
        hook: state.hook,
        pass: call!(theirs.recvmsg(ep, msg, flags)),
        |provider| {
            let queue = state.arrivals().filter(|_| flags & abi::PEEK != 0);
            match queue {
                Some(queue) => queue.expect_peek((*msg).context, flags & (abi::CLAIM | abi::DISCARD) != 0),
                None => state.note_receive(),
            }
            let result = provider.call(|| call!(theirs.recvmsg(ep, msg, flags)));
            if let Some(queue) = queue.filter(|_| result != 0) {
                queue.forget_peek((*msg).context);
            }
            result
        },
    }
}
